"""The numbers that all screens share: kept for a second, sampled every few, however many people look.

The store is asked by one caller at a time and at most once a second; a page that only shows these figures
costs it nothing. Samples of the depths are kept for an hour, to say when a lane will be empty.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final, NamedTuple

from penstock.api.stats import Stats
from penstock.observability.hour import STEP_S, Hour, Step
from penstock.observability.misses import Miss
from penstock.observability.targets import Calls
from penstock.ports.executor import Executor
from penstock.ui.cluster import Cluster, Sum

SAMPLE_S: Final = 5
SAMPLES: Final = 720
DRAIN_S: Final = 60  # how far back the rate of a forecast looks
SPARK: Final = 60
GROWS: Final = 0.5  # jobs a second; less is no growth to speak of


class Sample(NamedTuple):
    """Jobs that wait, by lane, at one time."""

    at: float
    waiting: Mapping[str, int]


class Forecast(NamedTuple):
    """When a lane will have nothing due left: `at`, or never while it grows or stands (`at` None)."""

    per_s: float
    at: datetime | None

    @property
    def grows(self) -> bool:
        """Whether more comes in than goes out."""
        return self.per_s < 0


class Throughput(NamedTuple):
    """An hour of steps as columns for a chart: jobs a second, over that many nodes."""

    nodes: int
    at: Sequence[int]
    sent: Sequence[float]
    failed: Sequence[float]


class Figures:
    """What the node knows and what the store said last."""

    def __init__(self, stats: Stats, hour: Hour, *, monotonic: Callable[[], float]) -> None:
        self._stats, self._hour, self.monotonic = stats, hour, monotonic
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._cluster = Cluster(monotonic)
        self._lock = Lock()

    def now(self) -> dict[str, Any]:
        """Return the figures, at most a second old, with a spark and a forecast for each lane."""
        found: dict[str, Any] = json.loads(self._stats())
        self._sample(found["lanes"])
        self._cluster.learn(found["nodes"])
        at = None if found["now"] is None else datetime.fromisoformat(found["now"])
        for lane in found["lanes"]:
            self._add_pace(lane, at)
        found["at"] = at
        found["trouble"] = sorted(found["lanes"], key=_trouble)
        return found

    def lane(self, name: str, figures: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the figures of one lane, of one that is not listed too; None = it was not there."""
        listed: dict[str, Any] | None = next((x for x in figures["lanes"] if x["lane"] == name), None)
        if listed is not None:
            return listed
        found = self._stats.lane(name)
        return found and self._add_pace(found, figures["at"])

    def _add_pace(self, lane: dict[str, Any], now: datetime | None) -> dict[str, Any]:
        steps = self._hour.steps(lane["lane"], last=SPARK)
        lane["spark"] = [step.sent + step.failed for step in steps]
        lane["calls"], lane["failed"] = self._hour.misses.tally(lane["lane"])
        lane["forecast"] = None if now is None else self.forecast(lane["lane"], lane, now)
        fires = lane.get("next_at")
        lane["fires"] = datetime.fromisoformat(fires) if isinstance(fires, str) else fires
        return lane

    def targets(self) -> dict[str, Calls]:
        """Return how calls of this node to each target went in the last ten minutes."""
        return self._hour.targets.lately()

    def misses(self, lane: str) -> list[Miss]:
        """Return what calls of this node for a lane failed of in the last ten minutes."""
        return self._hour.misses.lately(lane)

    def forget(self) -> None:
        """Ask the store anew the next time: somebody changed something and wants to see it."""
        self._stats.forget()

    def forecast(self, name: str, lane: Mapping[str, Any], now: datetime) -> Forecast | None:
        """Return when what is due of a lane will be gone, at the last minute's rate; None = nothing is."""
        if not lane["due"] or lane["due_capped"]:  # nobody counted how many of those that wait are due
            return None
        drain = self._drain(name)
        if drain < -GROWS:
            return Forecast(drain, None)
        per_s = max(drain, lane["sent_per_s"])
        return Forecast(per_s, now + timedelta(seconds=lane["due"] / per_s) if per_s > 0 else None)

    def chart(self, lane: str, now: datetime) -> dict[str, Any]:
        """Return an hour of steps and samples as columns for a chart; times are seconds since 1970."""
        steps: Sequence[Step] = self._hour.steps(lane)
        base = now.timestamp()
        return {
            "step": STEP_S,
            "at": [round(base + step.at) for step in steps],
            "sent": [round(step.sent / STEP_S, 2) for step in steps],
            "failed": [round(step.failed / STEP_S, 2) for step in steps],
            "p50": [_ms(step.lag_p50) for step in steps],
            "p99": [_ms(step.lag_p99) for step in steps],
        }

    def throughput(self, now: datetime) -> Throughput:
        """Return what was sent in the last hour: by all nodes, or by this one while it is the only one."""
        several = self._cluster.nodes > 1
        steps: Sequence[Sum | Step] = self._cluster.steps() if several else self._hour.steps()
        base = now.timestamp()
        return Throughput(
            self._cluster.nodes if several else 1,
            at=[round(base + step.at) for step in steps],
            sent=[round(step.sent / STEP_S, 2) for step in steps],
            failed=[round(step.failed / STEP_S, 2) for step in steps],
        )

    def waiting(self, lane: str, now: datetime) -> list[tuple[int, int]]:
        """Return how many jobs of a lane waited, over the hour; of all lanes for the empty name."""
        base = now.timestamp() - self.monotonic()
        with self._lock:
            return [
                (round(base + s.at), s.waiting.get(lane, 0) if lane else sum(s.waiting.values()))
                for s in self._samples
            ]

    async def keep_sampling(self, executor: Executor, stop: asyncio.Event) -> None:
        """Ask every few seconds, also while nobody looks: a chart begins before somebody opens it."""
        while not stop.is_set():
            await executor.run(self.now)
            with suppress(TimeoutError):
                async with asyncio.timeout(SAMPLE_S):
                    await stop.wait()

    def _sample(self, lanes: Sequence[Mapping[str, Any]]) -> None:
        at = self.monotonic()
        with self._lock:
            if lanes and (not self._samples or at - self._samples[-1].at >= SAMPLE_S - 1):
                waiting = {lane["lane"]: lane["pending"] for lane in lanes if lane["pending"]}
                self._samples.append(Sample(at, waiting))

    def _drain(self, lane: str) -> float:
        """Return by how many jobs a second the waiting ones became fewer lately; 0 = nobody knows yet."""
        with self._lock:
            recent = [s for s in self._samples if s.at >= self.monotonic() - DRAIN_S]
        if len(recent) < 3:
            return 0.0
        first, last = recent[0], recent[-1]
        return (first.waiting.get(lane, 0) - last.waiting.get(lane, 0)) / (last.at - first.at)


def _trouble(lane: Mapping[str, Any]) -> tuple[bool, bool, bool, float, str]:
    """Lanes in trouble come first: with dead jobs, stopped, failing, then those that are late."""
    failing = lane["calls"] > 0 and lane["failed"] * 20 > lane["calls"]
    return (not lane["dead"], not lane["stopped"], not failing, -lane["oldest_due_s"], lane["lane"])


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)
