"""Prometheus series `penstock_*`, counted from events as they happen.

Labels are bounded: lane, sink, and words of our own (outcome, reason, part ...), each up to a number of
values beyond which all others are counted as `_other`. A group, tenant, target or job is never a label: a
series stays in memory for ever, here and in Prometheus. docs/reference/metrics.md lists what there is.
"""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from penstock.observability.exemplars import exemplar
from penstock.observability.words import SENT, spelled
from penstock.ports.events import (
    Called,
    Claimed,
    Event,
    Housekept,
    JobDied,
    LaneFailed,
    LeaderChanged,
    LeaseLost,
    NodeStarted,
    Recovered,
    ReturnedJobs,
    SettledBatch,
    SinkFailed,
    StoreFailed,
    TargetChanged,
)

OTHER: Final = "_other"  # no lane or sink can be named so
MOST_LANES: Final = 1000
MOST_WORDS: Final = 50
_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LAGS: Final = (0.001, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0)


def bounded(most: int) -> Callable[[str], str]:
    """Return a function that keeps the first `most` different values and calls all others `_other`."""
    known: set[str] = set()

    def label(value: str) -> str:
        if value not in known:
            if len(known) >= most:
                return OTHER
            known.add(value)
        return value

    return label


class Metrics:
    """Subscribes to events and counts them in a registry."""

    def __init__(self, registry: CollectorRegistry, *, version: str) -> None:
        def count(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"penstock_{name}", about, labels, registry=registry)

        def time(name: str, about: str, *labels: str, buckets: tuple[float, ...] = _SHORT) -> Histogram:
            return Histogram(f"penstock_{name}", about, labels, registry=registry, buckets=buckets)

        def gauge(name: str, about: str) -> Gauge:
            return Gauge(f"penstock_{name}", about, registry=registry)

        self._lane, self._sink, self._word = bounded(MOST_LANES), bounded(MOST_LANES), bounded(MOST_WORDS)
        self._open: set[str] = set()

        self.claimed = count("claimed", "Jobs leased by this node.", "lane")
        self.claim_seconds = time("claim_seconds", "Time of one claim.", "lane")
        self.dispatched = count("dispatched", "Jobs that a sink took.", "lane", "sink")
        self.attempts = count("attempts", "Jobs handed to a sink, by what came of it.", "lane", "outcome")
        self.duplicates = count("duplicates", "Jobs that a sink had already.", "lane")
        self.send_seconds = time("send_seconds", "Time of one call of a sink.", "lane", "sink")
        self.lag = time(
            "schedule_lag_seconds",
            "From when a job was due to the call of its sink.",
            "lane",
            buckets=_LAGS,
        )
        self.settled = count("settled", "Jobs whose outcome was written.", "lane", "outcome")
        self.settle_seconds = time("settle_seconds", "Time of one settle.", "lane")
        self.fenced = count("fenced_writes", "Outcomes refused because the claim was no longer ours.", "lane")
        self.died = count("dead", "Jobs that became dead letters.", "lane", "reason")
        self.returned = count("returned", "Claimed jobs that went back unsent.", "lane")
        self.recovered = count("recovered", "Jobs of dead nodes and silent executors.", "lane", "fate")
        self.leases_lost = count("leases_lost", "Claims that ended before their jobs were sent.", "lane")
        self.store_errors = count("store_errors", "Calls of the store that failed.", "part")
        self.lane_errors = count("lane_errors", "Passes that ended in a bug.", "lane")
        self.sink_errors = count("sink_errors", "Sinks that could not be opened.", "sink")
        self.housekept = count("housekept", "What the leader's rounds did.", "what")
        self.housekeeping_seconds = time("housekeeping_seconds", "Time of a part of a round.", "part")
        self.breakers = gauge("breaker_open", "Targets whose breaker is not closed.")
        self.leader = gauge("leader", "1 while this node leads.")
        self.term = gauge("leader_term", "The term this node last led.")
        self.loop_delay = time("loop_delay_seconds", "How late the event loop woke up.")
        self._info = Info("penstock_node", "This process.", registry=registry)
        self._version = version
        self._info.info({"version": version})

    def __call__(self, event: Event) -> None:
        """Count an event."""
        match event:
            case Claimed() | Called() | SettledBatch() | ReturnedJobs() | Recovered():
                self._pass(event)
            case JobDied(lane=lane, reason=reason):
                self.died.labels(self._lane(lane), self._word(reason)).inc()
            case LeaseLost(lane=lane):
                self.leases_lost.labels(self._lane(lane)).inc()
            case StoreFailed(part=part):
                self.store_errors.labels(self._word(part)).inc()
            case LaneFailed(lane=lane):
                self.lane_errors.labels(self._lane(lane)).inc()
            case SinkFailed(sink=sink):
                self.sink_errors.labels(self._sink(sink)).inc()
            case NodeStarted(node=node, name=name):
                self._info.info({"version": self._version, "node": str(node), "name": name})
            case LeaderChanged(leads=leads, term=term):
                self.leader.set(int(leads))
                self.term.set(term)
            case TargetChanged(target=target, state=state):
                (self._open.discard if state == "closed" else self._open.add)(target)
                self.breakers.set(len(self._open))
            case Housekept():
                self._round(event)
            case _:
                pass

    def _pass(self, event: Claimed | Called | SettledBatch | ReturnedJobs | Recovered) -> None:
        lane = self._lane(event.lane)
        match event:
            case Claimed(jobs=jobs, took=took):
                self.claimed.labels(lane).inc(jobs)
                self.claim_seconds.labels(lane).observe(took)
            case Called():
                self._call(lane, event)
            case SettledBatch(refused=refused, outcomes=outcomes, took=took):
                self.settle_seconds.labels(lane).observe(took)
                if refused:
                    self.fenced.labels(lane).inc(refused)
                for outcome, jobs in outcomes.items():
                    self.settled.labels(lane, self._word(spelled(outcome))).inc(jobs)
            case ReturnedJobs(jobs=jobs):
                # Why is no label: it may name a target.
                self.returned.labels(lane).inc(jobs)
            case Recovered(fates=fates):
                for fate, jobs in fates.items():
                    self.recovered.labels(lane, self._word(fate)).inc(jobs)

    def _call(self, lane: str, event: Called) -> None:
        sink, span = self._sink(event.sink), exemplar()
        self.send_seconds.labels(lane, sink).observe(event.took, span)
        self.lag.labels(lane).observe(max(0.0, event.lag), span)
        for outcome, jobs in event.outcomes.items():
            self.attempts.labels(lane, self._word(spelled(outcome))).inc(jobs)
            if outcome in SENT:
                self.dispatched.labels(lane, sink).inc(jobs)
            if outcome == "duplicate":
                self.duplicates.labels(lane).inc(jobs)

    def _round(self, event: Housekept) -> None:
        for what, number in event.did.items():
            self.housekept.labels(self._word(what)).inc(number)
        for part, seconds in event.phases.items():
            self.housekeeping_seconds.labels(self._word(part)).observe(seconds)
