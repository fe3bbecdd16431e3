"""How calls of each lane went lately, on this node: how many, and kinds of errors, without what targets said.

Minutes are counted one by one and forgotten after ten, as those of targets are; lanes and kinds beyond
a limit are not kept apart.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from penstock.domain.fingerprints import pattern_of
from penstock.domain.masking import without_words
from penstock.observability.words import NO_CALL, SENT, spelled
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


@dataclass(slots=True)
class _Minute:
    at: int
    calls: int = 0
    failed: int = 0
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)


class Misses:
    """Counts calls by lane, failed ones by kind of error; safe to ask from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._minutes: dict[str, deque[_Minute]] = {}
        self._lock = Lock()

    def note(self, event: Called) -> None:
        """Take notice of a call; of several errors that it met the first one counts for all."""
        failed = {word: jobs for word, jobs in event.outcomes.items() if word not in SENT and jobs}
        error = pattern_of(without_words(event.error)) if failed else None
        with self._lock:
            minute = self._minute(event.lane)
            kinds = minute.kinds
            minute.calls += sum(jobs for word, jobs in event.outcomes.items() if word not in NO_CALL)
            minute.failed += sum(jobs for word, jobs in failed.items() if word not in NO_CALL)
            for word, jobs in failed.items():
                kind = (error or spelled(word), spelled(word))
                known = kind in kinds or len(kinds) < MOST_KINDS
                kinds[kind if known else (OTHER, spelled(word))] += jobs

    def lately(self, lane: str) -> list[Miss]:
        """Return what calls of a lane failed of within the last minutes, the most frequent first."""
        with self._lock:
            since = self._now() - MINUTES
            kinds: Counter[tuple[str, str]] = Counter()
            for minute in self._minutes.get(lane, ()):
                if minute.at > since:
                    kinds.update(minute.kinds)
        return [Miss(error, outcome, jobs) for (error, outcome), jobs in kinds.most_common()]

    def tally(self, lane: str) -> tuple[int, int]:
        """Return how many calls of a lane were made within the same minutes, and how many of them failed."""
        with self._lock:
            since = self._now() - MINUTES
            kept = [minute for minute in self._minutes.get(lane, ()) if minute.at > since]
            return sum(minute.calls for minute in kept), sum(minute.failed for minute in kept)

    def _minute(self, lane: str) -> _Minute:
        minutes, now = self._minutes.pop(lane, None), self._now()
        if minutes is None:
            while len(self._minutes) >= MOST_LANES:
                del self._minutes[next(iter(self._minutes))]
            minutes = deque(maxlen=MINUTES)
        self._minutes[lane] = minutes  # the last one now
        if not minutes or minutes[-1].at != now:
            minutes.append(_Minute(now))
        return minutes[-1]

    def _now(self) -> int:
        return int(self._monotonic()) // MINUTE_S
