"""The last hour of a node, for charts: what each lane sent, what failed and how late it was, in short steps.

A step that is over is kept as four numbers, so an hour of a lane costs a few kilobytes; lanes beyond a limit
are counted in the sum only. Beside it, how calls to each target went in the last minutes,
and what those of each lane failed of.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from penstock.observability.live import percentile, step_of
from penstock.observability.misses import Misses
from penstock.observability.targets import Targets
from penstock.observability.words import SENT
from penstock.ports.events import Called, Event

STEP_S: Final = 10
STEPS: Final = 360
MOST_LANES: Final = 500
ALL: Final = ""  # no lane has this name


class Step(NamedTuple):
    """Ten seconds: when they began, jobs sent and failed, lags in seconds (None = nothing was called)."""

    at: int
    sent: int
    failed: int
    lag_p50: float | None
    lag_p99: float | None


@dataclass(slots=True)
class _Open:
    at: int
    sent: int = 0
    failed: int = 0
    lags: Counter[int] = field(default_factory=Counter)

    def closed(self) -> Step:
        return Step(self.at, self.sent, self.failed, percentile(self.lags, 0.50), percentile(self.lags, 0.99))


class Hour:
    """Subscribes to events; safe to ask from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = self._step()
        self._closed: dict[str, deque[Step]] = {}
        self._open: dict[str, _Open] = {}
        self._lock = Lock()
        self.targets, self.misses = Targets(monotonic), Misses(monotonic)

    def __call__(self, event: Event) -> None:
        """Take notice of an event."""
        if isinstance(event, Called):
            with self._lock:
                for name in (ALL, event.lane):
                    self._note(name, event.outcomes, event.lag)
            self.targets.note(event)
            self.misses.note(event)

    def steps(self, lane: str = ALL, *, last: int = STEPS) -> list[Step]:
        """Return the last steps that are over, oldest first; a quiet one is all zero.

        `at` counts backwards from now: -10 began ten seconds ago.
        """
        with self._lock:
            now = self._step()
            found = {step.at: step for step in self._closed.get(lane, ())}
            running = self._open.get(lane)
        if running is not None and running.at < now:
            found[running.at] = running.closed()
        first = max(now - last, self._began)
        quiet = Step(0, 0, 0, None, None)
        return [found.get(at, quiet)._replace(at=(at - now) * STEP_S) for at in range(first, now)]

    def _note(self, name: str, outcomes: Mapping[str, int], lag: float) -> None:
        at = self._step()
        running = self._open.get(name)
        if running is None:
            if len(self._open) >= MOST_LANES:
                return
            running = self._open[name] = _Open(at)
        elif running.at != at:
            self._closed.setdefault(name, deque(maxlen=STEPS)).append(running.closed())
            running = self._open[name] = _Open(at)
        jobs = sum(outcomes.values())
        sent = sum(count for word, count in outcomes.items() if word in SENT)
        running.sent += sent
        running.failed += jobs - sent
        running.lags[step_of(lag)] += jobs

    def _step(self) -> int:
        return int(self._monotonic()) // STEP_S
