"""A store, and a node's processing endpoint served for real on this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import aiohttp
from prometheus_client import CollectorRegistry

from penstock.api.app import make_app
from penstock.api.callers import Callers
from penstock.api.dispatch import dispatch_routes
from penstock.api.server import serve_http
from penstock.api.stats import Stats
from penstock.client import Client
from penstock.delivery.processing import Processor
from penstock.domain.envelopes import Envelope
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dispatched
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ports.clock import SystemClock
from penstock.ports.events import Event
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import OpenSink
from penstock.ports.store import Ask, Store
from penstock.scheduler.ground import Ground
from penstock.sinks.open import make_open
from penstock.tokens import Tokens

WAIT_S = 60
LOOPBACK = ("127.0.0.0/8",)
ACK = timedelta(minutes=15)


class ShiftedClock(SystemClock):
    """The clock of this machine, some time ahead for whoever asks what time it is."""

    shift = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.shift


@dataclass(slots=True)
class Bed:
    """What tests use."""

    store: Store
    executor: ThreadExecutor
    client: Client = field(init=False)
    clock: ShiftedClock = field(default_factory=ShiftedClock)
    tokens: Tokens = field(init=False)
    events: list[Event] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    http: aiohttp.ClientSession = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self.store, actor="test")
        self.tokens = Tokens(self.store, executor=self.executor, clock=self.clock)

    @property
    def endpoint(self) -> str:
        return f"{self.url}/api/dispatch/process"

    def ground(self) -> Ground:
        return Ground(self.store, self.executor, self.clock, Random(1), self.emit)  # noqa: S311

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.news.set()

    def seen(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def lane(self, name: str = "orders", **settings: object) -> None:
        defaults = {"sink": "embedded", "poll_interval": "50ms", "retry": ["0s", "1h"]}
        self.store.put_lane(lane(name, **{**defaults, **settings}), actor="test")

    def opener(self, **options: Any) -> OpenSink:  # noqa: ANN401
        return make_open(
            {},
            executor=self.executor,
            clock=self.clock,
            queue=self.store,
            secrets=self.store,
            allow_networks=LOOPBACK,
            endpoint=self.endpoint,
            sign=self.tokens.sign,
            **options,
        )

    def enqueue(self, *jobs: dict[str, Any]) -> list[str]:
        return [
            answer.id  # type: ignore[union-attr]
            for answer in self.client.enqueue_many([{"lane": "orders", **job} for job in jobs])
        ]

    def dispatch(self, lane: str = "orders", **job: Any) -> str:  # noqa: ANN401
        """Enqueue a job and have it be out, as if its pointer were in a queue."""
        [job_id] = self.enqueue({"lane": lane, **job})
        ask = Ask(lane=lane, node=1)
        claim = self.store.claim(ask) or self.store.claim_groups(ask)
        assert claim is not None
        self.store.settle(claim, {claimed.job.arrival: Dispatched(ACK) for claimed in claim.jobs})
        return job_id

    def token(self, job_id: str, send: int = 1) -> str:
        return self.tokens.sign(Envelope(job_id, send, "orders", 1))

    async def process(self, job_id: str, send: int = 1, **headers: str) -> tuple[int, Any]:
        """Ask the endpoint as the router does."""
        sent = {"Authorization": f"Bearer {self.token(job_id, send)}"} | headers
        body = {"messageId": job_id}
        async with self.http.post(self.endpoint, json=body, headers=sent) as answer:
            return answer.status, await answer.json(content_type=None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; whatever happens is a reason to look."""
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.news.clear()
                try:
                    async with asyncio.timeout(0.05):
                        await self.news.wait()
                except TimeoutError:
                    continue


@asynccontextmanager
async def served(bed: Bed, *, routes: tuple[Any, ...] = ()) -> AsyncIterator[Bed]:
    """Serve the processing endpoint until the block ends."""
    await bed.tokens.refresh()
    processor = Processor(bed.ground(), bed.opener(), bed.tokens)
    health, live = Health(), Live(bed.clock.monotonic)
    app = make_app(
        bed.client,
        executor=bed.executor,
        health=health,
        metrics=CollectorRegistry(),
        live=live,
        clock=bed.clock,
        rng=Random(1),  # noqa: S311
        stats=Stats(bed.client, live=live, health=health, version="1", monotonic=bed.clock.monotonic),
        callers=Callers(bed.client.store, executor=bed.executor, clock=bed.clock, login=False),
        pages=[*dispatch_routes(processor), *routes],
    )
    stop, up = asyncio.Event(), asyncio.Event()

    def listening(url: str) -> None:
        bed.url = url
        up.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_http(app, "127.0.0.1", 0, stop, listening=listening))
        await up.wait()
        async with aiohttp.ClientSession() as bed.http:
            yield bed
        stop.set()
    await processor.aclose()
