"""The last minute of a node in numbers: how much it sends, how late, who leads, what is in trouble.

Seconds are counted one by one and forgotten after a minute, so the cost is that of the lanes at work. Lags
are kept as a histogram with steps of a quarter: a percentile is right to within that.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from penstock.observability.words import SENT
from penstock.ports.events import (
    Called,
    Event,
    JobDied,
    LaneFailed,
    LeaderChanged,
    NodeStarted,
    SettledBatch,
    SinkFailed,
    TargetChanged,
)

KEPT_S: Final = 60
RATE_S: Final = 10
STEP: Final = 1.25
FIRST_S: Final = 0.0001
TROUBLES: Final = 20


class Pace(NamedTuple):
    """How a lane did lately, on this node; lags are in seconds, None = nothing was sent."""

    sent_per_s: float
    failed_per_s: float
    lag_p50: float | None
    lag_p99: float | None
    died: int


class Trouble(NamedTuple):
    """Something that does not work now: `kind` is sink, lane or target."""

    kind: str
    name: str
    text: str


@dataclass(slots=True)
class _Second:
    at: int
    sent: int = 0
    failed: int = 0
    died: int = 0
    lags: Counter[int] = field(default_factory=Counter)


class Live:
    """Subscribes to events and answers for the last minute; safe to ask from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._lanes: dict[str, deque[_Second]] = {}
        self._delays: deque[tuple[float, float]] = deque(maxlen=4 * KEPT_S)
        self._troubles: dict[tuple[str, str], str] = {}
        self._lock = Lock()
        self.node: int | None = None
        self.name = ""
        self.store = ""
        self.leads = False
        self.term: int | None = None

    @property
    def uptime(self) -> float:
        """How many seconds the process has been at it."""
        return self._monotonic() - self._began

    def __call__(self, event: Event) -> None:
        """Take notice of an event."""
        with self._lock:
            match event:
                case Called(lane=lane, outcomes=outcomes, lag=lag, sink=sink):
                    self._called(lane, outcomes, lag)
                    self._troubles.pop(("sink", sink), None)
                case JobDied(lane=lane):
                    self._second(lane).died += 1
                case SettledBatch(lane=lane):
                    self._troubles.pop(("lane", lane), None)
                case NodeStarted(node=node, name=name, store=store):
                    self.node, self.name, self.store = node, name, store
                case LeaderChanged(leads=leads, term=term):
                    self.leads, self.term = leads, term
                case SinkFailed(sink=sink, error=error):
                    self._trouble("sink", sink, f"cannot be opened: {error}")
                case LaneFailed(lane=lane, error=error):
                    self._trouble("lane", lane, f"its pass failed: {error}")
                case TargetChanged(target=target, state="closed", wait=None):
                    self._troubles.pop(("target", target), None)
                case TargetChanged(target=target, state=state, failures=failures):
                    text = (
                        "asked to go slow" if state == "closed" else f"breaker {state}, {failures} failures"
                    )
                    self._trouble("target", target, text)
                case _:
                    pass

    def loop_delayed(self, seconds: float) -> None:
        """Note how late the event loop woke up."""
        with self._lock:
            self._delays.append((self._monotonic(), seconds))

    def loop_delay(self) -> float:
        """Return the longest delay of the last minute, in seconds."""
        with self._lock:
            since = self._monotonic() - KEPT_S
            return max((delay for at, delay in self._delays if at >= since), default=0.0)

    def troubles(self) -> list[Trouble]:
        """Return what does not work now, the latest last."""
        with self._lock:
            return [Trouble(kind, name, text) for (kind, name), text in self._troubles.items()]

    def paces(self) -> dict[str, Pace]:
        """Return how each lane that did anything within the last minute went."""
        with self._lock:
            now = int(self._monotonic())
            for lane in [lane for lane, seconds in self._lanes.items() if seconds[-1].at <= now - KEPT_S]:
                del self._lanes[lane]
            return {lane: self._pace(seconds, now) for lane, seconds in self._lanes.items()}

    def _called(self, lane: str, outcomes: Mapping[str, int], lag: float) -> None:
        second = self._second(lane)
        jobs = sum(outcomes.values())
        sent = sum(count for word, count in outcomes.items() if word in SENT)
        second.sent += sent
        second.failed += jobs - sent
        second.lags[step_of(lag)] += jobs

    def _second(self, lane: str) -> _Second:
        at = int(self._monotonic())
        seconds = self._lanes.get(lane)
        if seconds is None:
            seconds = self._lanes[lane] = deque(maxlen=KEPT_S)
        if not seconds or seconds[-1].at != at:
            seconds.append(_Second(at))
        return seconds[-1]

    def _pace(self, seconds: deque[_Second], now: int) -> Pace:
        kept = [second for second in seconds if second.at > now - KEPT_S]
        # The running second is not over, so a rate is over whole ones.
        lately = [second for second in kept if now - RATE_S <= second.at < now]
        span = max(1, min(RATE_S, now - int(self._began)))
        lags = sum((second.lags for second in kept), Counter[int]())
        return Pace(
            sent_per_s=sum(second.sent for second in lately) / span,
            failed_per_s=sum(second.failed for second in lately) / span,
            lag_p50=percentile(lags, 0.50),
            lag_p99=percentile(lags, 0.99),
            died=sum(second.died for second in kept),
        )

    def _trouble(self, kind: str, name: str, text: str) -> None:
        self._troubles.pop((kind, name), None)
        self._troubles[kind, name] = text
        if len(self._troubles) > TROUBLES:
            del self._troubles[next(iter(self._troubles))]


def step_of(seconds: float) -> int:
    """Return the number of the step that covers a lag; the first one is all up to FIRST_S."""
    return 0 if seconds <= FIRST_S else math.ceil(math.log(seconds / FIRST_S, STEP))


def percentile(lags: Counter[int], share: float) -> float | None:
    """Return the upper end of the step that a share of the lags does not pass."""
    wanted = math.ceil(lags.total() * share)
    for step in sorted(lags):
        wanted -= lags[step]
        if wanted <= 0:
            return float(FIRST_S * STEP**step)
    return None
