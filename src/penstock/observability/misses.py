"""What calls of each lane failed of lately, on this node: kinds of errors, without what targets said.

Minutes are counted one by one and forgotten after ten; lanes and kinds beyond a limit are not kept apart.
"""

from collections import Counter, deque
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from penstock.domain.fingerprints import pattern_of
from penstock.domain.masking import without_words
from penstock.observability.words import SENT, spelled
from penstock.ports.events import Called

MINUTE_S: Final = 60
MINUTES: Final = 10
MOST_LANES: Final = 500
MOST_KINDS: Final = 20
OTHER: Final = "something else"


class Miss(NamedTuple):
    """A kind of error, what sinks called it, and how many jobs met it."""

    error: str
    outcome: str
    jobs: int


class Misses:
    """Counts failed calls by lane and kind of error; safe to ask from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._minutes: dict[str, deque[tuple[int, Counter[tuple[str, str]]]]] = {}
        self._lock = Lock()

    def note(self, event: Called) -> None:
        """Take notice of a call; of several errors that it met the first one counts for all."""
        failed = {word: jobs for word, jobs in event.outcomes.items() if word not in SENT and jobs}
        if not failed:
            return
        error = pattern_of(without_words(event.error))
        with self._lock:
            kinds = self._kinds(event.lane)
            for word, jobs in failed.items():
                kind = (error or spelled(word), spelled(word))
                known = kind in kinds or len(kinds) < MOST_KINDS
                kinds[kind if known else (OTHER, spelled(word))] += jobs

    def lately(self, lane: str) -> list[Miss]:
        """Return what calls of a lane failed of within the last minutes, the most frequent first."""
        with self._lock:
            since = self._now() - MINUTES
            kinds: Counter[tuple[str, str]] = Counter()
            for at, counted in self._minutes.get(lane, ()):
                if at > since:
                    kinds.update(counted)
        return [Miss(error, outcome, jobs) for (error, outcome), jobs in kinds.most_common()]

    def _kinds(self, lane: str) -> Counter[tuple[str, str]]:
        minutes, now = self._minutes.pop(lane, None), self._now()
        if minutes is None:
            while len(self._minutes) >= MOST_LANES:
                del self._minutes[next(iter(self._minutes))]
            minutes = deque(maxlen=MINUTES)
        self._minutes[lane] = minutes  # the last one now
        if not minutes or minutes[-1][0] != now:
            minutes.append((now, Counter()))
        return minutes[-1][1]

    def _now(self) -> int:
        return int(self._monotonic()) // MINUTE_S
