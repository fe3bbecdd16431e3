"""How calls of this node to each target went lately: how many, how many were told to slow down, how long.

Minutes are counted one by one and forgotten after ten. Of very many targets those called last are kept.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from penstock.observability.live import percentile, step_of
from penstock.observability.words import NO_CALL, SENT
from penstock.ports.events import Called

MINUTE_S: Final = 60
MINUTES: Final = 10
MOST_TARGETS: Final = 1000


class Calls(NamedTuple):
    """Ten minutes of calls to a target; latencies are in seconds."""

    calls: int = 0
    failed: int = 0
    throttled: int = 0
    took_p50: float | None = None
    took_p99: float | None = None


@dataclass(slots=True)
class _Minute:
    at: int
    calls: int = 0
    sent: int = 0
    throttled: int = 0
    took: Counter[int] = field(default_factory=Counter)


class Targets:
    """Counts calls by target; safe to ask from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._minutes: dict[str, deque[_Minute]] = {}
        self._lock = Lock()

    def note(self, event: Called) -> None:
        """Take notice of a call, if it was to one target."""
        calls = sum(jobs for word, jobs in event.outcomes.items() if word not in NO_CALL)
        if event.target is None or not calls:
            return
        with self._lock:
            minute = self._minute(event.target)
            minute.calls += calls
            minute.sent += sum(jobs for word, jobs in event.outcomes.items() if word in SENT)
            minute.throttled += event.outcomes.get("throttled", 0)
            minute.took[step_of(event.took)] += calls

    def lately(self) -> dict[str, Calls]:
        """Return the targets that were called within the last minutes."""
        with self._lock:
            since = self._now() - MINUTES
            kept = {name: [m for m in minutes if m.at > since] for name, minutes in self._minutes.items()}
            return {name: _together(minutes) for name, minutes in kept.items() if minutes}

    def _minute(self, target: str) -> _Minute:
        minutes, now = self._minutes.pop(target, None), self._now()
        if minutes is None:
            while len(self._minutes) >= MOST_TARGETS:
                del self._minutes[next(iter(self._minutes))]
            minutes = deque(maxlen=MINUTES)
        self._minutes[target] = minutes  # the last one now
        if not minutes or minutes[-1].at != now:
            minutes.append(_Minute(now))
        return minutes[-1]

    def _now(self) -> int:
        return int(self._monotonic()) // MINUTE_S


def _together(minutes: list[_Minute]) -> Calls:
    took = sum((minute.took for minute in minutes), Counter[int]())
    calls, throttled = sum(minute.calls for minute in minutes), sum(minute.throttled for minute in minutes)
    return Calls(
        calls,
        calls - throttled - sum(minute.sent for minute in minutes),
        throttled,
        percentile(took, 0.50),
        percentile(took, 0.99),
    )
