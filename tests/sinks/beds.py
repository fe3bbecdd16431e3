"""The other ends of our own sinks: real receivers on this machine."""

import asyncio
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from itertools import count

from penstock.domain.bodies import Writer
from penstock.domain.outcomes import Receipt, Rejected
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.queue import Delivery, Queue
from penstock.ports.sink import Envelope, Sink, Supplies
from penstock.sinks.console import ConsoleSink
from penstock.sinks.embedded import EmbeddedSink
from penstock.sinks.http import open_http
from penstock.sinks.python import PythonSink
from penstock.testing.receiver import Answer, Received, Request
from penstock.testing.sink_suite import Arrived

NAMES = count()
PAYLOAD = Writer(format="payload", kind="http")


class HttpBed:
    largest = 4 * 1024 * 1024

    received: Received

    def __init__(self, executor: ThreadExecutor) -> None:
        self.executor = executor
        self.gate: asyncio.Event | None = None
        self.broken = False

    def decide(self, _: Request) -> Answer:
        return Answer(gate=self.gate)

    async def open(self) -> Sink:
        supplies = Supplies(
            executor=self.executor,
            clock=SystemClock(),
            stream=io.StringIO(),
            allow_networks=["127.0.0.0/8"],
        )
        return await open_http({}, supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(target="http://127.0.0.1:1/" if self.broken else f"{self.received.url}/hook")

    def body(self, envelope: Envelope) -> bytes:
        return PAYLOAD.body(envelope)

    async def arrived(self, number: int) -> Sequence[Arrived]:
        return [Arrived(str(request.id), request.body) for request in await self.received.received(number)]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(target="http://10.0.0.1/")

    def stall(self) -> AbstractContextManager[None]:
        @contextmanager
        def stalled() -> Iterator[None]:
            self.gate = asyncio.Event()
            try:
                yield
            finally:
                self.gate.set()
                self.gate = None

        return stalled()

    async def break_down(self) -> bool:
        self.broken = True
        return True


class ConsoleBed:
    largest = 1024 * 1024
    line = re.compile(r"\S+Z suite (\S+) attempt=1 .*")

    def __init__(self, executor: ThreadExecutor) -> None:
        self.stream = io.StringIO()
        self.executor = executor

    async def open(self) -> Sink:
        return ConsoleSink(self.stream, clock=SystemClock(), executor=self.executor)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope

    def body(self, _: Envelope) -> None:
        return None

    async def arrived(self, _: int) -> Sequence[Arrived]:
        lines = self.stream.getvalue().splitlines()
        matches = [self.line.fullmatch(line) for line in lines]
        assert all(matches)
        return [Arrived(match[1]) for match in matches if match]

    def spoil(self, _: Envelope) -> None:
        return None

    def stall(self) -> AbstractContextManager[None] | None:
        return None

    async def break_down(self) -> bool:
        self.stream.close()
        return True


class EmbeddedBed:
    largest = 1024 * 1024

    def __init__(self, queue: Queue, executor: ThreadExecutor, *, format: str = "pointer") -> None:  # noqa: A002
        self.queue = queue
        self.name = f"q{next(NAMES)}"
        self.executor = executor
        self.writer = Writer(format=format, kind="embedded")

    async def open(self) -> Sink:
        return EmbeddedSink(self.queue, writer=self.writer, executor=self.executor)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(queue=self.name)

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def arrived(self, _: int) -> Sequence[Arrived]:
        found = await self.executor.run(self._receive)
        return [Arrived(_id(delivery.body), delivery.body.encode()) for delivery in found]

    def _receive(self) -> list[Delivery]:
        """Look without taking: what is received stays where it is."""
        found = self.queue.receive(self.name, 1000, visibility=timedelta(seconds=30))
        self.queue.nack(found, delay=timedelta(0))
        return found

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(format="nonsense")

    def stall(self) -> AbstractContextManager[None] | None:
        return None

    async def break_down(self) -> bool:
        return False


def _id(body: str) -> str:
    match = re.search(r'"id":"([^"]+)"', body)
    assert match is not None
    return match[1]


class PythonBed:
    largest = 1024 * 1024

    def __init__(self) -> None:
        self.came: list[Envelope] = []
        self.gate: asyncio.Event | None = None
        self.broken = False
        self.news = asyncio.Event()

    async def take(self, envelope: Envelope) -> Receipt | None:
        if self.broken:
            raise ConnectionError("gone")
        if envelope.target == "nowhere":
            return Rejected("no such place")
        self.came.append(envelope)
        self.news.set()
        if self.gate is not None:
            await self.gate.wait()
        return None

    async def open(self) -> Sink:
        return PythonSink(self.take, max_batch=3)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope

    def body(self, envelope: Envelope) -> bytes:
        return PAYLOAD.body(envelope)

    async def arrived(self, number: int) -> Sequence[Arrived]:
        while len(self.came) < number:
            self.news.clear()
            await self.news.wait()
        return [Arrived(envelope.id, PAYLOAD.body(envelope)) for envelope in self.came]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(target="nowhere")

    def stall(self) -> AbstractContextManager[None]:
        @contextmanager
        def stalled() -> Iterator[None]:
            self.gate = asyncio.Event()
            try:
                yield
            finally:
                self.gate = None

        return stalled()

    async def break_down(self) -> bool:
        self.broken = True
        return True
