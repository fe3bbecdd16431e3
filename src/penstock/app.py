"""From settings to a running node: the only module that knows all the parts."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from asyncio import Event, TaskGroup
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from litestar.handlers import HTTPRouteHandler
from prometheus_client import CollectorRegistry

from penstock import __version__
from penstock.api.access import Guarded, check_hosts
from penstock.api.app import make_app, make_metrics_app
from penstock.api.callers import Callers
from penstock.api.desk import Desk
from penstock.api.dispatch import PROCESS, dispatch_routes
from penstock.api.entrance import check_entrance
from penstock.api.login import Door
from penstock.api.messages import message_routes
from penstock.api.server import Sockets, open_sockets, serve_on, url_of
from penstock.api.stats import Stats
from penstock.client import Client
from penstock.config.keys import LIVE_KEYS, masked
from penstock.config.settings import Settings
from penstock.delivery.processing import Processor
from penstock.domain.durations import format_duration, parse_duration
from penstock.domain.names import unknown
from penstock.errors import InvalidConfig, StoreUnavailable
from penstock.garbage import spare_what_is_loaded
from penstock.observability import logs
from penstock.observability.deliveries import Deliveries
from penstock.observability.depths import Depths
from penstock.observability.health import Health
from penstock.observability.hour import Hour
from penstock.observability.live import Live
from penstock.observability.loop import watch_loop
from penstock.observability.metrics import Metrics
from penstock.observability.otel import start_tracing
from penstock.observability.process import process_figures
from penstock.observability.story import Story, keep_telling
from penstock.observability.subscribers import emit_to
from penstock.observability.supervisor import Supervisor
from penstock.ports.clock import SystemClock
from penstock.ports.events import Emit, ignore
from penstock.ports.executor import Executor, ThreadExecutor
from penstock.ports.queue import Queue
from penstock.ports.sink import OpenSink
from penstock.ports.store import Store
from penstock.routing import Routing, make_routing
from penstock.scheduler.ground import Ground
from penstock.scheduler.node import Node, NodeOptions
from penstock.scheduler.scouting import Scout
from penstock.scheduler.standby import RedisLease
from penstock.scheduler.threads import Threads
from penstock.sinks.open import make_open
from penstock.sources.embedded import RungQueue
from penstock.stores.connect import connect, file_of, open_queues
from penstock.stores.health import missing_keys, worries
from penstock.tokens import Tokens
from penstock.ui.figures import Figures
from penstock.ui.login import login_pages
from penstock.ui.pages import pages

if TYPE_CHECKING:
    from penstock.observability.tracing import Tracing  # its library is an extra

STORE_THREADS: Final = 6
API_THREADS: Final = 4
PAGE_THREADS: Final = 2  # people who look are not to hold up programs, nor to crowd out what is sent:
PAGES_REST: Final = 20.0  # together they compute less than a tenth of the time,
PAGES_SPARE_S: Final = 1.0  # but the first few come at once
WEDGED_AFTER: Final = timedelta(minutes=2)
WEDGED: Final = 70  # the exit code of a process that no longer gets anywhere
WAIT_FOR_NEWS: Final = timedelta(seconds=2)
_LOG: Final = logging.getLogger("penstock")


# What runs beside the node until `over`: (the store, threads to call it on, ready, stop, over).
# Nothing is sent before it says that it is ready.
Companion = Callable[[Store, Executor, Event, Event, Event], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class App:
    """One process: a node, its HTTP server, its threads."""

    settings: Settings
    url: str
    host: str
    port: int
    grace: timedelta = timedelta(seconds=30)
    started: Callable[[str], None] = lambda _: None
    companion: Companion | None = None
    read_again: Callable[[], Settings] | None = None
    routes: bool = False
    wedged_after: timedelta = WEDGED_AFTER
    clock: SystemClock = field(default_factory=SystemClock)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    tracing: "Tracing | None" = None
    supervisor: Supervisor = field(init=False)
    _pulse: float = 0.0
    _broken: BaseException | None = None
    _looking: ThreadExecutor = field(
        default_factory=lambda: ThreadExecutor(
            PAGE_THREADS, name="penstock-pages", rest=PAGES_REST, spare=PAGES_SPARE_S
        )
    )

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(os.environ, self.clock.monotonic)

    async def run(self) -> None:
        """Serve until a signal says stop; raise what broke the node."""
        login, metrics = bool(self.settings["login"]), self.settings["metrics_port"]
        check_hosts(self.settings.hosts(), login=login)
        socks = open_sockets(self.host, self.port, metrics if isinstance(metrics, int) else None, login=login)
        store = connect(self.url, clock=self.clock.now)
        executor = ThreadExecutor(STORE_THREADS, name="penstock-store")
        api_threads = ThreadExecutor(API_THREADS, name="penstock-api")
        self.tracing, last_spans = start_tracing(os.environ, version=__version__, now=self.clock.now)
        try:
            store.check_schema()
            check_entrance(store, host=self.host, login=login)
            for worry in worries(store, now=self.clock.now, file=file_of(self.url)):
                _LOG.warning("store: %s", worry)
            for lack in missing_keys(store):
                _LOG.warning("keys: %s", lack)
            for name in missing(self._lanes_served(), store.lanes()):
                _LOG.warning("lanes_served: %s; it is served as soon as there is one", name)
            await self._serve(socks, store, executor, api_threads)
        finally:
            for threads in (executor, api_threads, self._looking):
                threads.close()
            for close in (socks.close, store.close, last_spans):
                close()
        if self._broken is not None:
            raise self._broken

    async def _serve(
        self, socks: Sockets, store: Store, executor: ThreadExecutor, api_threads: ThreadExecutor
    ) -> None:
        now, registry, health = self.clock.monotonic, CollectorRegistry(), Health(stops=self.stop.is_set)
        live, story, hour = Live(now), Story(_LOG, now), Hour(now)
        metrics, deliveries = Metrics(registry, version=__version__), Deliveries(registry)
        emit = emit_to(live, hour, health, story, metrics, deliveries, self.tracing or ignore)
        registry.register(_depths(store, self.clock))
        ground = Ground(store, api_threads, self.clock, Random(), emit)  # noqa: S311 - spreads retries
        routing = self._routing(ground, socks.api, deliveries)
        tokens = Tokens(store, executor=api_threads, clock=self.clock)
        queue = store if routing is None else RungQueue(store, routing.ring)
        open_sink = self._open_sink(store, queue, executor, tokens, socks.api)
        node = self._node(store, executor, emit, open_sink)
        node.figures = partial(process_figures, live)
        processor = Processor(ground, open_sink, tokens)
        client = Client(store, actor="api", clock=self.clock)
        stats = Stats(client, live=live, health=health, version=__version__, monotonic=self.clock.monotonic)
        figures = Figures(stats, hour, monotonic=self.clock.monotonic)
        callers = Callers(store, executor=api_threads, clock=self.clock, login=bool(self.settings["login"]))
        door = Door(store, callers, executor=api_threads, clock=self.clock)
        desk, http_over = Desk(client, self._looking), asyncio.Event()
        screens = pages(desk, figures, live=live, health=health)
        app = make_app(
            client,
            executor=api_threads,
            health=health,
            metrics=registry,
            live=live,
            clock=self.clock,
            rng=Random(),  # noqa: S311 - spreads retries
            stats=stats,
            callers=callers,
            hosts=self.settings.hosts(),
            pages=[*screens.handlers, *login_pages(door), *dispatch_routes(processor), *_ways_in(routing)],
            lost=screens.lost,
            over=http_over,
        )
        self._listen_for_signals()
        self._pulse = self.clock.monotonic()
        watching = (node.scout,)
        threading.Thread(target=self._watch, args=watching, name="penstock-watchdog", daemon=True).start()
        async with aclosing(processor), asyncio.TaskGroup() as tasks:
            tasks.create_task(tokens.keep_fresh(http_over))
            tasks.create_task(serve_on(app, socks.api, http_over))
            if socks.metrics is not None:
                apart = self._metrics_app(client, api_threads, registry, callers)
                tasks.create_task(serve_on(apart, socks.metrics, http_over))
            tasks.create_task(watch_loop(partial(self._turned, live, metrics), monotonic=now, stop=http_over))
            tasks.create_task(keep_telling(story, http_over))
            tasks.create_task(figures.keep_sampling(api_threads, http_over))
            hearing = (store, asyncio.get_running_loop(), node.wake, self.stop)
            threading.Thread(target=hear, args=hearing, name="penstock-wakeups", daemon=True).start()
            await self._accompanied(tasks, store, api_threads, http_over)
            self._up(url_of(socks.api))
            async with asyncio.TaskGroup() as engines:
                engines.create_task(node.run())
                if routing is not None:
                    engines.create_task(routing.router.run())
            http_over.set()

    async def _accompanied(self, tasks: TaskGroup, store: Store, threads: Executor, over: Event) -> None:
        if self.companion is not None:
            ready = Event()
            tasks.create_task(self.companion(store, threads, ready, self.stop, over))
            await ready.wait()

    def _up(self, url: str) -> None:
        spare_what_is_loaded()
        self.started(url)
        self.supervisor.ready(url)

    def _routing(self, ground: Ground, sock: socket.socket, deliveries: Deliveries) -> Routing | None:
        if not self.routes:
            return None
        routing = make_routing(
            self.settings,
            ground,
            endpoint=self._endpoint(sock),
            own_listeners=[sock.getsockname()[:2]],
            grace=self.grace,
            stop=self.stop,
            hurry=self.hurry,
        )
        deliveries.watch(lambda: routing.router.held)
        return routing

    def _endpoint(self, sock: socket.socket) -> str:
        return str(self.settings["router.processing_endpoint"] or f"{url_of(sock)}{PROCESS}")

    def _open_sink(
        self, store: Store, queue: Queue, executor: ThreadExecutor, tokens: Tokens, sock: socket.socket
    ) -> OpenSink:
        networks = self.settings["http.allow_networks"]
        opened = make_open(
            self.settings.sinks(),
            executor=executor,
            clock=self.clock,
            queue=queue,
            open_queues=open_queues,
            secrets=store,
            allow_networks=networks if isinstance(networks, tuple) else (),
            own_listeners=[sock.getsockname()[:2]],
            endpoint=self._endpoint(sock),
            default_pool=str(self.settings["router.default_pool"]),
            sign=tokens.sign,
            stream=sys.stdout,
        )
        return opened if self.tracing is None else self.tracing.traced(opened)

    def _lanes_served(self) -> tuple[str, ...]:
        served = self.settings["lanes_served"]
        return served if isinstance(served, tuple) else ("*",)

    def _node(self, store: Store, executor: ThreadExecutor, emit: Emit, open_sink: OpenSink) -> Node:
        ground = Ground(store, executor, self.clock, Random(), emit)  # noqa: S311 - spreads waits
        threads = Threads(lambda: connect(self.url, clock=self.clock.now), self.clock, emit, self._break)
        options = NodeOptions(
            name=f"{socket.gethostname()}:{os.getpid()}",
            store=str(masked("store", self.url)),
            lanes=self._lanes_served(),
            standby=bool(self.settings["standby.enabled"]),
            grace=self.grace,
        )
        node = Node(ground, open_sink, threads, options, stop=self.stop, hurry=self.hurry)
        if options.standby and self.settings["standby.redis_url"]:
            node.standby = RedisLease(
                str(self.settings["standby.redis_url"]),
                key=str(self.settings["standby.lock_key"]),
                ttl=parse_duration(self.settings["standby.ttl"]),
                every=parse_duration(self.settings["standby.refresh"]),
                token=f"{options.name}:{secrets.token_hex(8)}",
                clock=self.clock,
                emit=emit,
            )
        return node

    def _metrics_app(
        self, client: Client, threads: Executor, registry: CollectorRegistry, callers: Callers
    ) -> Guarded:
        hosts = self.settings.hosts()
        return make_metrics_app(client, executor=threads, metrics=registry, callers=callers, hosts=hosts)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled)
        if self.read_again is not None:
            loop.add_signal_handler(signal.SIGHUP, self._hung_up, self.read_again)

    def _signalled(self) -> None:
        """The first signal asks, the second insists."""
        if self.stop.is_set():
            _LOG.warning("told to stop again: giving back what has not begun to be sent")
            self.hurry.set()
        else:
            _LOG.info("stopping: finishing what is claimed, at most %s", format_duration(self.grace))
            self.supervisor.stopping()
        self.stop.set()

    def _hung_up(self, read_again: Callable[[], Settings]) -> None:
        """Read the configuration again: what is logged changes at once, all else waits for a restart."""
        try:
            settings = read_again()
        except InvalidConfig as error:
            _LOG.error("the configuration is not used, it stays as it was: %s", error)
            return
        configure_logs(settings)
        later = [name for name in self.settings.changed(settings) if name not in LIVE_KEYS]
        _LOG.info("read the configuration again%s", f"; needs a restart: {', '.join(later)}" if later else "")

    def _break(self, error: BaseException) -> None:
        _LOG.critical("a part of the node broke: %r", error)
        self._broken = error
        self.stop.set()
        self.hurry.set()

    def _turned(self, live: Live, metrics: Metrics, late: float) -> None:
        self._pulse = self.clock.monotonic()
        self.supervisor.alive()
        live.loop_delayed(late)
        metrics.loop_delay.observe(late)

    def _watch(self, scout: Scout) -> None:
        """End the process if it no longer gets anywhere: a wedged node must not look alive.

        Its event loop may not turn, or the store may neither answer nor fail: such a call cannot be given up.
        Looks are counted, not time: a process that was stopped for an hour is not wedged.
        """
        pause, looks, seen = threading.Event(), Counter[str](), dict[str, float | None]()
        while not pause.wait(1.0):
            pulses = {
                "the event loop has not turned": self._pulse,
                "the store has neither answered nor failed": scout.pulse,
            }
            for what, pulse in pulses.items():
                looks[what] = looks[what] + 1 if pulse is not None and pulse == seen.get(what) else 0
                if looks[what] > self.wedged_after.total_seconds():
                    after = format_duration(self.wedged_after)
                    _LOG.critical("%s for %s: giving up, to be started again", what, after)
                    os._exit(WEDGED)
            seen = pulses


def _depths(store: Store, clock: SystemClock) -> Depths:
    return Depths(store.counts, store.scout, store.vitals, now=clock.now, monotonic=clock.monotonic)


def missing(served: Collection[str], lanes: Collection[str]) -> list[str]:
    """Return a sentence for each lane that is to be served and is not there."""
    return [unknown("lane", name, lanes) for name in served if name != "*" and name not in lanes]


def _ways_in(routing: Routing | None) -> list[HTTPRouteHandler]:
    return [] if routing is None else message_routes(routing.posted)


def hear(
    store: Store, loop: asyncio.AbstractEventLoop, wake: Callable[[frozenset[str]], None], stop: asyncio.Event
) -> None:
    """Wait for news of the store and hand it to the loop; a connection that breaks is made again."""
    wakeups = store.wakeups()
    pause = threading.Event()
    while wakeups is not None and not stop.is_set():
        try:
            news = wakeups.wait(WAIT_FOR_NEWS)
            if news is not None:
                loop.call_soon_threadsafe(wake, news)
        except StoreUnavailable:
            pause.wait(1.0)
        except RuntimeError:  # the loop is closed
            return


def run(app: App) -> None:
    """Run the process until it is told to stop."""
    asyncio.run(app.run())


def configure_logs(settings: Settings) -> None:
    """Set up logging as the settings say."""
    logs.configure(level=str(settings["log_level"]), form=str(settings["log_format"]), stream=sys.stderr)
