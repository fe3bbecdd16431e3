"""From settings to a running router, inside a node (`penstock dev`) or as a process of its own."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Final

from prometheus_client import CollectorRegistry

from penstock import __version__
from penstock.api.app import make_router_app
from penstock.api.callers import Callers
from penstock.api.entrance import check_entrance
from penstock.api.messages import message_routes
from penstock.api.server import listen, serve_on, url_of
from penstock.client import Client
from penstock.config.keys import masked
from penstock.config.settings import Settings
from penstock.delivery.mediation import Mediator
from penstock.delivery.opening import LateSource, queues_of, sources_of
from penstock.delivery.router import Router, RouterOptions
from penstock.errors import InvalidSetting
from penstock.observability.deliveries import Deliveries
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.observability.metrics import Metrics
from penstock.observability.story import Story, keep_telling
from penstock.observability.subscribers import emit_to
from penstock.ports.clock import SystemClock
from penstock.ports.events import NodeStarted
from penstock.ports.executor import ThreadExecutor
from penstock.ports.source import Options, Source, Supplies
from penstock.scheduler.board import Board
from penstock.scheduler.ground import Ground
from penstock.sources.embedded import EmbeddedSource, embedded_source
from penstock.sources.posted import PostedSource
from penstock.stores.connect import connect, open_queues

THREADS: Final = 4
EMBEDDED: Final = "embedded"
_LOG: Final = logging.getLogger("penstock.router")


@dataclass(slots=True)
class Routing:
    """A router and its ways in; `posted` takes messages by HTTP, `ring` has it look at the store's queues."""

    router: Router
    posted: PostedSource
    embedded: Sequence[EmbeddedSource]

    def ring(self) -> None:
        """Look at the store's own queues now."""
        for source in self.embedded:
            source.ring()


def make_routing(
    settings: Settings,
    ground: Ground,
    *,
    endpoint: str,
    own_listeners: Sequence[tuple[str, int]],
    sources: Sequence[str] = (),
    grace: timedelta = timedelta(seconds=30),
    stop: asyncio.Event | None = None,
    hurry: asyncio.Event | None = None,
) -> Routing:
    """Return a router for the queues of these sinks; none named = of all that can be received from."""
    board, posted, sinks = Board(ground), PostedSource(ground.clock), settings.sinks()
    known = sources_of(sinks)
    for name in sources:
        if name not in known:
            raise InvalidSetting("source", f'"{name}" cannot be received from: there are {", ".join(known)}')
    opened: list[Source] = []
    for name in sources or known:
        options = sinks.get(name)
        supplies = Supplies(
            name=name,
            queues=queues_of(board, name, _queue(options)),
            executor=ground.executor,
            clock=ground.clock,
            queue=ground.store,
            open_queues=open_queues,
        )
        kind = name if options is None else options.get("kind")
        embedded = kind == EMBEDDED and not (options or {}).get("url")
        opened.append(embedded_source(options or {}, supplies) if embedded else LateSource(options, supplies))
    networks = settings["http.allow_networks"]
    mediator = Mediator(
        endpoint,
        clock=ground.clock,
        allow_networks=networks if isinstance(networks, tuple) else (),
        own_listeners=own_listeners,
    )
    chosen = RouterOptions(
        name=f"router:{socket.gethostname()}:{os.getpid()}",
        default_pool=str(settings["router.default_pool"]),
        grace=grace,
    )
    router = Router(
        ground,
        board,
        [*opened, posted],
        mediator,
        chosen,
        stop=stop or asyncio.Event(),
        hurry=hurry or asyncio.Event(),
    )
    return Routing(router, posted, [one for one in opened if isinstance(one, EmbeddedSource)])


def _queue(options: Options | None) -> str | None:
    """Return the queue of lanes that name none, if the sink has one."""
    queue = (options or {}).get("queue")
    return str(queue) if queue else None


@dataclass(slots=True)
class RouterApp:
    """One process that only routes, with `/api/router/messages`, health and metrics."""

    settings: Settings
    url: str
    host: str
    port: int
    sources: Sequence[str] = ()
    grace: timedelta = timedelta(seconds=30)
    started: Callable[[str], None] = lambda _: None
    clock: SystemClock = field(default_factory=SystemClock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Route until a signal says stop."""
        login = bool(self.settings["login"])
        sock = listen(self.host, self.port, login=login)
        store = connect(self.url, clock=self.clock.now)
        executor = ThreadExecutor(THREADS, name="penstock-router")
        try:
            store.check_schema()
            check_entrance(store, host=self.host, login=login)
            client = Client(store, actor="router", clock=self.clock)
            await self._serve(sock, client, executor)
        finally:
            executor.close()
            store.close()

    async def _serve(self, sock: socket.socket, client: Client, executor: ThreadExecutor) -> None:
        registry, health = CollectorRegistry(), Health(stops=self.stop.is_set)
        live = Live(self.clock.monotonic)
        story, deliveries = Story(_LOG, self.clock.monotonic), Deliveries(registry)
        emit = emit_to(live, health, story, Metrics(registry, version=__version__), deliveries)
        ground = Ground(client.store, executor, self.clock, Random(), emit)  # noqa: S311 - spreads waits
        routing = make_routing(
            self.settings,
            ground,
            endpoint=endpoint_of(self.settings),
            own_listeners=[sock.getsockname()[:2]],
            sources=self.sources,
            grace=self.grace,
            stop=self.stop,
            hurry=self.hurry,
        )
        deliveries.watch(lambda: routing.router.held)
        app = make_router_app(
            client,
            executor=executor,
            health=health,
            metrics=registry,
            live=live,
            clock=self.clock,
            routes=message_routes(routing.posted),
            callers=Callers(
                client.store, executor=executor, clock=self.clock, login=bool(self.settings["login"])
            ),
            hosts=self.settings.hosts(),
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve_on(app, sock, over))
            tasks.create_task(keep_telling(story, over))
            emit(NodeStarted(node=0, name="router", store=str(masked("store", self.url))))
            self.started(url_of(sock))
            await routing.router.run()
            over.set()

    def _signalled(self) -> None:
        """The first signal asks, the second insists."""
        if self.stop.is_set():
            _LOG.warning("told to stop again: giving up calls, their messages come again")
            self.hurry.set()
        else:
            _LOG.info("stopping: waiting for calls, at most %s", self.grace)
        self.stop.set()


def endpoint_of(settings: Settings) -> str:
    """Return the processing endpoint: the one configured, else that of a node with the same settings."""
    given, host = settings["router.processing_endpoint"], str(settings["host"])
    place = f"[{host}]" if ":" in host else host
    return str(given) if given else f"http://{place}:{settings['port']}/api/dispatch/process"


def run(app: RouterApp) -> None:
    """Run the process until it is told to stop."""
    asyncio.run(app.run())
