"""The document of the API, made from the routes themselves: those of a node that is never started."""

from random import Random

from prometheus_client import CollectorRegistry

from penstock import __version__
from penstock.api.app import api_routes
from penstock.api.desk import Desk
from penstock.api.dispatch import dispatch_routes
from penstock.api.messages import message_routes
from penstock.api.openapi import described
from penstock.api.stats import Stats
from penstock.client import Client
from penstock.delivery.processing import Processor
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ports.clock import SystemClock
from penstock.ports.events import ignore
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Sink, SinkUnavailable
from penstock.scheduler.ground import Ground
from penstock.sources.posted import PostedSource
from penstock.stores.memory.store import MemoryStore
from penstock.tokens import Tokens


def api_document() -> str:
    """Return the document as JSON."""
    clock, health = SystemClock(), Health()
    live, rng = Live(clock.monotonic), Random()  # noqa: S311 - nothing is drawn
    with ThreadExecutor(1) as executor, Client(MemoryStore(clock.now, str), notify=False) as client:
        ground = Ground(client.store, executor, clock, rng, ignore)
        tokens = Tokens(client.store, executor=executor, clock=clock)
        stats = Stats(client, live=live, health=health, version=__version__, monotonic=clock.monotonic)
        own = api_routes(
            Desk(client, executor),
            health=health,
            metrics=CollectorRegistry(),
            live=live,
            clock=clock,
            rng=rng,
            stats=stats,
        )
        processor = Processor(ground, _no_sink, tokens)
        routes = [*own, *dispatch_routes(processor), *message_routes(PostedSource(clock))]
        return described(routes, version=__version__)[1]


async def _no_sink(name: str) -> Sink:
    raise SinkUnavailable(f"{name}: nothing is sent from here")
