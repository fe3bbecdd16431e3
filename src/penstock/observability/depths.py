"""What a scrape asks the store: jobs per lane and state, how long the oldest due job has waited, how it does.

Both come from counters and indexes, never from a scan, and are kept for a second: ten scrapers cost as much
as one. A store that does not answer leaves its series out, and says so in `penstock_store_up`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.domain.states import LIVE, JobState
from penstock.errors import PenstockError
from penstock.observability.dues import oldest_due
from penstock.observability.metrics import MOST_LANES, OTHER
from penstock.ports.flow import Scouted
from penstock.ports.vitals import Vitals

Counts = Mapping[tuple[str, JobState], int]
FRESH_S: Final = 1.0
ALWAYS: Final = tuple(state.label for state in sorted(LIVE | {JobState.DEAD}))
VITALS: Final[Mapping[str, str]] = {
    "penstock_lapsed_claim_seconds": "How long the most overdue claim has been without a lease.",
    "penstock_store_oldest_transaction_seconds": "PostgreSQL: how long its oldest transaction is open.",
    "penstock_store_dead_rows": "PostgreSQL: dead rows not vacuumed yet.",
}


class Depths(Collector):
    """A collector for a registry: `registry.register(Depths(client.counts, ...))`.

    `scout` and `vitals` may be None for a store that cannot say such things.
    """

    def __init__(
        self,
        counts: Callable[[], Counts],
        scout: Callable[[], Scouted] | None,
        vitals: Callable[[], Vitals] | None = None,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._counts, self._scout, self._vitals = counts, scout, vitals
        self._now, self._monotonic = now, monotonic
        self._lock = Lock()
        self._kept: list[Metric] = []
        self._until = monotonic()

    def describe(self) -> Iterable[Metric]:
        """Name the series without asking the store."""
        return [
            _jobs(),
            _oldest(),
            _skew(),
            _up(),
            *(_vital(name) for name in VITALS),
            _put_back(),
            _saturation(),
        ]

    def collect(self) -> Iterator[Metric]:
        """Ask the store, or repeat what it said within the last second."""
        with self._lock:
            if self._monotonic() >= self._until:
                self._kept = self._asked()
                self._until = self._monotonic() + FRESH_S
            yield from self._kept

    def _asked(self) -> list[Metric]:
        up = _up()
        try:
            counts = self._counts()
            found = [_counted(counts)]
            if self._scout is not None:
                before = self._now()
                scouted = self._scout()
                found += [
                    _waited(scouted, {lane for lane, _ in counts}),
                    _skewed(scouted.now, before, self._now()),
                ]
            if self._vitals is not None:
                found += _signs(self._vitals())
        except PenstockError:
            up.add_metric([], 0)
            return [up]
        up.add_metric([], 1)
        return [up, *found]


def _counted(counts: Counts) -> Metric:
    metric = _jobs()
    summed: dict[tuple[str, str], int] = {}
    kept = frozenset(sorted({lane for lane, _ in counts})[:MOST_LANES])
    for (lane, state), number in counts.items():
        name = lane if lane in kept else OTHER
        for shown in ALWAYS:  # a series that ended with its last job would show what was for minutes
            summed.setdefault((name, shown), 0)
        # Deltas are folded by and by: for a moment a counter may be below nothing.
        summed[name, state.label] = summed.get((name, state.label), 0) + max(0, number)
    for labels, number in sorted(summed.items()):
        metric.add_metric(labels, number)
    return metric


def _waited(scouted: Scouted, lanes: Iterable[str]) -> Metric:
    metric = _oldest()
    waited = dict.fromkeys(lanes, 0.0) | oldest_due(scouted)
    for lane in sorted(waited)[:MOST_LANES]:
        metric.add_metric([lane], waited[lane])
    return metric


def _skewed(store: datetime, before: datetime, after: datetime) -> Metric:
    """The store's clock against the middle of the time it took to ask."""
    metric = _skew()
    metric.add_metric([], (store - (before + (after - before) / 2)).total_seconds())
    return metric


def _signs(vitals: Vitals) -> list[Metric]:
    """What the store says of itself; what it has not is left out."""
    found: list[Metric] = []
    values = (vitals.lapsed_s, vitals.oldest_transaction_s, vitals.dead_rows)
    for name, value in zip(VITALS, values, strict=True):
        if value is not None:
            metric = _vital(name)
            metric.add_metric([], value)
            found.append(metric)
    kept = _put_back()
    for lane in sorted(vitals.put_back_s)[:MOST_LANES]:
        kept.add_metric([lane], vitals.put_back_s[lane])
    saturation = _saturation()
    for pool in sorted(vitals.pools)[:MOST_LANES]:
        saturation.add_metric([pool], vitals.pools[pool].saturation)
    return [*found, kept, saturation]


def _vital(name: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, VITALS[name], labels=[])


def _put_back() -> GaugeMetricFamily:
    about = "How long the first of the jobs that pools put back has been due; none of a lane = none waits."
    return GaugeMetricFamily("penstock_put_back_seconds", about, labels=["lane"])


def _saturation() -> GaugeMetricFamily:
    about = "How much of a pool is taken, of its fullest key: 1 = jobs wait for it."
    return GaugeMetricFamily("penstock_pool_saturation", about, labels=["pool"])


def _jobs() -> GaugeMetricFamily:
    return GaugeMetricFamily("penstock_jobs", "Jobs by lane and state.", labels=["lane", "state"])


def _oldest() -> GaugeMetricFamily:
    about = "How long the earliest job or ready group of a lane has been due."
    return GaugeMetricFamily("penstock_oldest_due_seconds", about, labels=["lane"])


def _skew() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "penstock_node_clock_skew_seconds", "The store's clock minus this machine's.", labels=[]
    )


def _up() -> GaugeMetricFamily:
    return GaugeMetricFamily("penstock_store_up", "1 if the store answered the last scrape.", labels=[])
