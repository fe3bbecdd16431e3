"""The HTTP side of a node, served for real by uvicorn in a thread, on a free port."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from random import Random
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from penstock import Client
from penstock.api.app import make_app
from penstock.api.callers import Callers
from penstock.api.desk import Desk
from penstock.api.login import Door
from penstock.api.server import serve_http
from penstock.api.stats import Stats
from penstock.observability.depths import Depths
from penstock.observability.health import Check, Health
from penstock.observability.hour import Hour
from penstock.observability.live import Live
from penstock.observability.metrics import Metrics
from penstock.observability.subscribers import emit_to
from penstock.ports.clock import SystemClock
from penstock.ports.events import NodeStarted
from penstock.ports.executor import ThreadExecutor
from penstock.ui.figures import Figures
from penstock.ui.login import login_pages
from penstock.ui.pages import pages

VERSION = "1.2.3"


class Node:
    """A client, what subscribes to events, and an HTTP client that talks to the server."""

    def __init__(
        self, client: Client, *, hosts: Sequence[str], checks: dict[str, Check], login: bool = False
    ) -> None:
        clock = SystemClock()
        self.client = client
        self.registry = CollectorRegistry()
        self.live = Live(clock.monotonic)
        self.health = Health(checks)
        self.metrics = Metrics(self.registry, version=VERSION)
        self.registry.register(
            Depths(client.counts, client.store.scout, now=clock.now, monotonic=clock.monotonic)
        )
        self.executor = ThreadExecutor(4, name="test-api")
        self.hour = Hour(clock.monotonic)
        self.emit = emit_to(self.metrics, self.live, self.hour, self.health)
        stats = Stats(client, live=self.live, health=self.health, version=VERSION, monotonic=clock.monotonic)
        self.figures = Figures(stats, self.hour, monotonic=clock.monotonic)
        desk = Desk(client, self.executor)
        self.callers = Callers(client.store, executor=self.executor, clock=clock, login=login)
        self.door = Door(client.store, self.callers, executor=self.executor, clock=clock)
        screens = pages(desk, self.figures, live=self.live, health=self.health)
        self.over = asyncio.Event()
        self.app = make_app(
            client,
            executor=self.executor,
            health=self.health,
            metrics=self.registry,
            live=self.live,
            clock=clock,
            rng=Random(1),  # noqa: S311
            stats=stats,
            callers=self.callers,
            hosts=hosts,
            pages=[*screens.handlers, *login_pages(self.door)],
            lost=screens.lost,
            over=self.over,
        )
        self.url = ""
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Say that the node serves: until then it is not ready."""
        self.emit(NodeStarted(node=7, name="host:1", store="sqlite:///penstock.db"))

    def stop(self) -> None:
        """Let the server end, if it has not."""
        assert self.loop is not None
        with suppress(RuntimeError):  # its loop is closed: a test stopped it before
            self.loop.call_soon_threadsafe(self.over.set)


class Http:
    """`http.get(...)`, `http.post(path, json)`: answers of the node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._http = httpx.Client(base_url=node.url, timeout=30)

    def get(self, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401
        return self._http.get(path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> httpx.Response:  # noqa: ANN401
        """POST an object, or text and bytes as they are."""
        if isinstance(body, str | bytes):
            headers = {"Content-Type": "application/json", **options.pop("headers", {})}
            return self._http.post(path, content=body, headers=headers, **options)
        return self._http.post(path, json=body, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401
        return self._http.request(method, path, **options)

    def stream(self, method: str, path: str, **options: Any) -> AbstractContextManager[httpx.Response]:  # noqa: ANN401
        """Ask for something whose end need not be waited for."""
        return self._http.stream(method, path, **options)

    def close(self) -> None:
        self._http.close()


@contextmanager
def served(
    client: Client,
    *,
    hosts: Sequence[str] = (),
    checks: dict[str, Check] | None = None,
    login: bool = False,
) -> Iterator[Http]:
    """Serve until the block ends; the node has started unless told otherwise."""
    node = Node(client, hosts=hosts, checks=checks or {}, login=login)
    listening, stopping = threading.Event(), threading.Event()

    async def serve() -> None:
        node.loop = asyncio.get_running_loop()

        def up(url: str) -> None:
            node.url = url
            listening.set()

        await serve_http(node.app, "127.0.0.1", 0, node.over, listening=up)
        stopping.set()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="test-node")
    thread.start()
    assert listening.wait(10)
    http = Http(node)
    try:
        yield http
    finally:
        http.close()
        node.stop()
        thread.join(15)
        node.executor.close()
        assert stopping.is_set()
