"""What a scrape asks the store: jobs per lane and state, and how long the oldest due job has waited.

Both come from counters and indexes, never from a scan, and are kept for a second: ten scrapers cost as much
as one. A store that does not answer leaves its series out, and says so in `penstock_store_up`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.domain.states import JobState
from penstock.errors import PenstockError
from penstock.observability.metrics import MOST_LANES, OTHER
from penstock.ports.flow import Scouted

Counts = Mapping[tuple[str, JobState], int]
FRESH_S: Final = 1.0


class Depths(Collector):
    """A collector for a registry: `registry.register(Depths(client.counts, ...))`.

    `scout` may be None for a store that cannot say what is due.
    """

    def __init__(
        self,
        counts: Callable[[], Counts],
        scout: Callable[[], Scouted] | None,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._counts, self._scout = counts, scout
        self._now, self._monotonic = now, monotonic
        self._lock = Lock()
        self._kept: list[Metric] = []
        self._until = monotonic()

    def describe(self) -> Iterable[Metric]:
        """Name the series without asking the store."""
        return [_jobs(), _oldest(), _skew(), _up()]

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
            found = [_counted(self._counts())]
            if self._scout is not None:
                before = self._now()
                scouted = self._scout()
                found += [_waited(scouted), _skewed(scouted.now, before, self._now())]
        except PenstockError:
            up.add_metric([], 0)
            return [up]
        up.add_metric([], 1)
        return [up, *found]


def oldest_due(scouted: Scouted) -> dict[str, float]:
    """Return how many seconds the earliest thing each lane could do has been due; 0 = nothing is due."""
    waited = {}
    for lane, work in scouted.work.items():
        at = min((at for at in work if at is not None), default=None)
        waited[lane] = 0.0 if at is None else max(0.0, (scouted.now - at).total_seconds())
    return waited


def _counted(counts: Counts) -> Metric:
    metric = _jobs()
    summed: dict[tuple[str, str], int] = {}
    kept = frozenset(sorted({lane for lane, _ in counts})[:MOST_LANES])
    for (lane, state), number in counts.items():
        name = lane if lane in kept else OTHER
        summed[name, state.label] = summed.get((name, state.label), 0) + number
    for labels, number in sorted(summed.items()):
        metric.add_metric(labels, number)
    return metric


def _waited(scouted: Scouted) -> Metric:
    metric = _oldest()
    waited = oldest_due(scouted)
    for lane in sorted(waited)[:MOST_LANES]:
        metric.add_metric([lane], waited[lane])
    return metric


def _skewed(store: datetime, before: datetime, after: datetime) -> Metric:
    """The store's clock against the middle of the time it took to ask."""
    metric = _skew()
    metric.add_metric([], (store - (before + (after - before) / 2)).total_seconds())
    return metric


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
