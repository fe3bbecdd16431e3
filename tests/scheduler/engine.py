"""A node on a real store with a Python function as its sink, to see what the engine does."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import pytest

from penstock.client import Client
from penstock.domain.envelopes import Envelope
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Receipt
from penstock.domain.states import JobState
from penstock.ports.clock import SystemClock
from penstock.ports.events import Event
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Sink, SinkUnavailable
from penstock.ports.store import Store
from penstock.scheduler.ground import Ground
from penstock.scheduler.node import Node, NodeOptions
from penstock.scheduler.standby import Standby
from penstock.scheduler.threads import Threads
from penstock.sinks.python import PythonSink
from penstock.stores.connect import connect

WAIT_S = 60
BOTH = ("sqlite", "pg18")
ONE = ("sqlite", pytest.param("pg18", marks=pytest.mark.soak))
Answer = Callable[[Envelope], Receipt | Awaitable[Receipt | None] | None]


@dataclass(slots=True)
class Sent:
    """One call of the sink."""

    envelope: Envelope
    at: float


@dataclass(slots=True)
class Engine:
    """What tests use: a client, what arrived at the sink, what the node emitted."""

    url: str
    store: Store
    client: Client
    answers: dict[str, Answer] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    closed_sinks: dict[str, str] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    silent_sinks: set[str] = field(default_factory=set)
    opening: dict[str, list[Callable[[], object]]] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    clock: SystemClock = field(default_factory=SystemClock)

    def lane(self, name: str = "orders", **settings: object) -> None:
        """Make or change a lane; polls are short, so that tests are."""
        self.store.put_lane(lane(name, **{"poll_interval": "50ms", **settings}), actor="test")

    def enqueue(self, *jobs: dict[str, object]) -> list[str]:
        """Enqueue and return ids."""
        return [answer.id for answer in self.client.enqueue_many([{"lane": "orders", **job} for job in jobs])]  # type: ignore[union-attr]

    async def until(self, condition: Callable[[], bool], *, seconds: float = WAIT_S) -> None:
        """Wait until something is so; whatever the node does is a reason to look."""
        async with asyncio.timeout(seconds):
            while not condition():
                self.news.clear()
                try:
                    async with asyncio.timeout(0.05):
                        await self.news.wait()
                except TimeoutError:
                    continue

    async def ended(self, *ids: str, state: JobState = JobState.SUCCEEDED) -> None:
        """Wait until all these jobs are in that state."""
        await self.until(lambda: {job.state for job in self.store.find(ids).values()} == {state})

    def order(self) -> dict[str | None, list[str]]:
        """Return the ids that were sent, by group, in the order of the calls."""
        found: dict[str | None, list[str]] = defaultdict(list)
        for call in self.sent:
            found[call.envelope.group].append(call.envelope.id)
        return found

    def seen(self, kind: type[Event]) -> list[Event]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def answer(self, envelope: Envelope) -> Receipt | None:
        """Be the sink."""
        self.sent.append(Sent(envelope, self.clock.monotonic()))
        self.news.set()
        answer = self.answers.get(envelope.id) or self.answers.get(envelope.lane) or (lambda _: None)
        said = answer(envelope)
        return await said if isinstance(said, Awaitable) else said

    @asynccontextmanager
    async def node(self, *, lease: Standby | None = None, **options: object) -> AsyncIterator[Node]:
        """Run a node as long as the block lasts; it is told to stop, and waited for."""
        executor = ThreadExecutor(4)
        loop = asyncio.get_running_loop()

        def emit(event: Event) -> None:
            self.events.append(event)
            loop.call_soon_threadsafe(self.news.set)

        async def open_sink(name: str) -> Sink:
            if name in self.silent_sinks:
                await asyncio.Event().wait()
            if self.opening.get(name):
                self.opening[name].pop()()
            if name in self.closed_sinks:
                raise SinkUnavailable(self.closed_sinks[name])
            return self.sinks.get(name) or PythonSink(self.answer, keeps_order=name == "embedded")

        def failed(error: BaseException) -> None:
            raise error

        ground = Ground(self.store, executor, self.clock, Random(7), emit)  # noqa: S311 - spreads waits
        beside = Threads(lambda: connect(self.url, clock=self.clock.now), self.clock, emit, failed)
        node = Node(ground, open_sink, beside, NodeOptions(**options), standby=lease)  # type: ignore[arg-type]
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(node.run())
                try:
                    yield node
                finally:
                    node.stop.set()
        finally:
            executor.close()
