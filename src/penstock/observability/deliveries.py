"""What becomes of queued messages, and of the jobs they lead to: Prometheus series and log lines."""

import logging
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from penstock.domain.durations import format_duration
from penstock.observability.metrics import MOST_LANES, MOST_WORDS, bounded
from penstock.ports.events import Event, Processed, Routed, SourceFailed

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Deliveries:
    """Subscribes to events of the processing endpoint and of the router, and counts them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lane, self._source, self._word = bounded(MOST_LANES), bounded(MOST_LANES), bounded(MOST_WORDS)
        self._pool = bounded(MOST_LANES)
        self.processed = Counter(
            "penstock_processed",
            "Sends that the processing endpoint delivered or put off.",
            ("lane", "outcome"),
            registry=registry,
        )
        self.process_seconds = Histogram(
            "penstock_process_seconds",
            "Time of one delivery by the processing endpoint.",
            ("lane",),
            registry=registry,
            buckets=_SECONDS,
        )
        self.routed = Counter(
            "penstock_routed",
            "Messages that the router was done with, by what became of them.",
            ("source", "pool", "fate"),
            registry=registry,
        )
        self.route_seconds = Histogram(
            "penstock_route_seconds",
            "From when a message was received until the router was done with it.",
            ("source",),
            registry=registry,
            buckets=_SECONDS,
        )
        self.source_errors = Counter(
            "penstock_source_errors",
            "Times that a source could not be opened, read, or told what became of a message.",
            ("source",),
            registry=registry,
        )
        self.held = Gauge("penstock_router_held", "Messages that the router holds now.", registry=registry)

    def watch(self, held: Callable[[], int]) -> None:
        """Show how many messages are held."""
        self.held.set_function(held)

    def __call__(self, event: Event) -> None:
        """Count an event."""
        match event:
            case Processed(lane=lane, outcome=outcome, took=took):
                self.processed.labels(self._lane(lane), self._word(outcome)).inc()
                self.process_seconds.labels(self._lane(lane)).observe(took)
            case Routed(source=source, pool=pool, fate=fate, took=took):
                name = self._source(source)
                self.routed.labels(name, self._pool(pool), self._word(fate)).inc()
                self.route_seconds.labels(name).observe(took)
            case SourceFailed(source=source):
                self.source_errors.labels(self._source(source)).inc()
            case _:
                pass


def delivery_line(event: Processed | Routed | SourceFailed) -> tuple[int, str]:
    """Return what a log says of it, and at which level: what needs a person is a warning."""
    match event:
        case Routed(source=source, fate="buried", why=why):
            return logging.WARNING, f"source {source}: a message was put aside for a person: {why}"
        case Routed(source=source, fate=fate, why=why, took=took):
            return logging.DEBUG, f"source {source}: {fate} after {took:.3f} s" + _because(why)
        case SourceFailed(source=source, error=error, pause=pause):
            again = format_duration(pause)
            return logging.WARNING, f"source {source}: {error}; next try in {again}"
        case Processed(lane=lane, job=job, outcome=outcome, took=took, error=error):
            return logging.DEBUG, f"{lane}: job {job} {outcome} after {took:.3f} s" + _because(error)


def _because(why: str | None) -> str:
    return f": {why}" if why else ""
