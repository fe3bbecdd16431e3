"""Pointers to a router, the real one, over HTTP."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from penstock import Client
from penstock.api.app import make_router_app
from penstock.api.callers import Callers
from penstock.api.messages import message_routes
from penstock.api.server import listen, serve_on
from penstock.domain.job import Job
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, Unknown
from penstock.domain.states import JobState
from penstock.domain.ulid import Ulids
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ports.clock import SystemClock
from penstock.ports.events import SinkFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, Sink, SinkUnavailable
from penstock.sinks.router import open_router
from penstock.sources.posted import PostedSource
from penstock.stores.memory import MemoryStore
from penstock.testing.receiver import Answer, receiver
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.servers import free_port
from tests.sinks.line import PATIENCE_S, Came, line
from tests.sinks.network import Network, cut_meanwhile, network, slow_down
from tests.sinks.opening import complaint, opened, supplies


class Bed:
    """A router that takes messages and delivers none."""

    largest = 200 * 1024

    def __init__(self, net: Network, source: PostedSource, executor: ThreadExecutor) -> None:
        self.net = net
        self.source = source
        self.supplies = supplies(executor)
        self.writer = self.supplies.writer("router", format="pointer")
        self.seen: list[str] = []

    async def open(self) -> Sink:
        return await open_router({"url": f"http://127.0.0.1:{self.net.port}"}, self.supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(group="g", mode="next_on_error")

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def arrived(self, number: int) -> Sequence[Arrived]:
        while len(self.seen) < number:
            found = await self.source.receive(1000)
            self.seen += [message.body for message in found]
            await self.source.ack(found)
        return [Arrived(json.loads(body)["id"], body.encode()) for body in self.seen]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(format="payload", group="spoilt")

    def stall(self) -> AbstractContextManager[None]:
        return self.net.holding_answers()

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True


@asynccontextmanager
async def routing(executor: ThreadExecutor, port: int) -> AsyncIterator[PostedSource]:
    """Run a router that delivers nothing, and give what it took."""
    clock = SystemClock()
    ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
    client = Client(MemoryStore(clock=lambda: datetime.now(UTC), ids=ids), actor="test", clock=clock)
    source = PostedSource(clock)
    app = make_router_app(
        client,
        executor=executor,
        health=Health(),
        metrics=CollectorRegistry(),
        live=Live(clock.monotonic),
        clock=clock,
        routes=message_routes(source),
        callers=Callers(client.store, executor=executor, clock=clock, login=False),
    )
    sock, over = listen("127.0.0.1", port), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_on(app, sock, over))
        try:
            yield source
        finally:
            over.set()


@pytest.fixture
async def bed(executor: ThreadExecutor) -> AsyncIterator[Bed]:
    port = free_port()
    async with routing(executor, port) as source, network(port) as net:
        yield Bed(net, source, executor)


class TestRouter(SinkSuite):
    pass


def envelope(number: int = 1, group: str | None = None, **more: str) -> Envelope:
    return Envelope(f"01ROUTED{number:018}", 1, "orders", 1, "{}", group=group, mode="next_on_error", **more)  # type: ignore[arg-type]


async def test_it_says_what_it_keeps(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        assert (sink.keeps_order, sink.format, sink.complete_on) == (False, "pointer", "reported")
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]


async def test_a_node_loses_nothing_through_cuts_restarts_and_throttling(
    executor: ThreadExecutor, tmp_path: Path
) -> None:
    """What a router had in memory when it died is noticed by its ack timeout and sent again.

    A trouble lasts until it is on record: the report of a send may be faster than what the node learns of it.
    """
    came: list[Came] = []

    async def until_more(count: Callable[[Job], int]) -> None:
        def total() -> int:
            return sum(count(job) for job in ours.jobs())

        before = total()
        await ours.engine.until(lambda: total() > before, seconds=PATIENCE_S)

    def failures(job: Job) -> int:
        return job.live.attempt - (job.state is JobState.SUCCEEDED)

    async def trouble() -> None:
        with net.losing_answers():
            await until_more(failures)
        await net.go_down()
        await ours.engine.until(lambda: bool(ours.engine.seen(SinkFailed)), seconds=PATIENCE_S)
        await net.come_up()
        async with slow_down(net, b"HTTP/1.1 503 Full\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"):
            await until_more(lambda job: job.live.deferrals)
        async with cut_meanwhile(net):
            pass
        await up.aclose()
        await until_more(failures)
        async with routing(executor, port):  # it takes everything, and dies with it
            await until_more(lambda job: job.live.recoveries)
        routers.append(await up.enter_async_context(routing(executor, port)))

    def report(pointer: dict[str, Any]) -> None:
        ours.engine.client.report(pointer["id"], pointer["send"], "succeeded")

    async def deliver() -> None:
        """Do what a router does: everything it gets, once."""
        while True:
            source = routers[-1]
            found = await source.receive(100)
            for message in found:
                pointer = json.loads(message.body)
                came.append(Came(pointer["id"], pointer["send"]))
                await executor.run(lambda p=pointer: report(p))  # type: ignore[misc]
            await source.ack(found)

    port, routers = free_port(), list[PostedSource]()
    async with AsyncExitStack() as up, network(port) as net:
        routers.append(await up.enter_async_context(routing(executor, port)))
        async with opened(open_router({"url": f"http://127.0.0.1:{net.port}"}, supplies(executor))) as sink:
            reported = {"complete_on": "reported", "format": "pointer", "ack_timeout": "1s"}
            async with (
                line(tmp_path, sink, {}, max_recoveries=100, **reported) as ours,
                asyncio.TaskGroup() as tasks,
            ):
                delivering, troubling = tasks.create_task(deliver()), tasks.create_task(trouble())
                await ours.carry(groups=8, per_group=14, recover_every=timedelta(milliseconds=200))
                delivering.cancel()
                await troubling
                ours.judge(came, dedups=False)

                assert {"unanswered", "deferred", "lapsed"} <= set(ours.tried)


async def test_a_router_that_is_full_is_left_alone_for_a_while(bed: Bed) -> None:
    bed.source._most = 2
    async with opened(bed.open()) as sink:
        receipts = await sink.send([envelope(n) for n in range(3)])
        assert [type(receipt) for receipt in receipts] == [Throttled] * 3

        assert [type(r) for r in await sink.send([envelope(n) for n in range(2)])] == [Accepted] * 2


async def test_one_bad_pointer_is_refused_alone(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        receipts = await sink.send([envelope(1, "a"), envelope(2, "b", format="payload"), envelope(3, "c")])

    assert receipts == [Accepted("202"), Rejected("its id is no text"), Accepted("202")]


async def answered(executor: ThreadExecutor, answer: Answer) -> list[Receipt]:
    """Return what two messages get from a router that answers so, and took nothing before."""
    answers: list[Answer] = [Answer(), answer]
    decide: Callable[[object], Answer] = lambda _: answers.pop(0)  # noqa: E731
    async with receiver(answer=decide) as received:
        opening = open_router({"url": received.url, "authorization": "Bearer x"}, supplies(executor))
        async with opened(opening) as sink:
            receipts = list(await sink.send([envelope(1), envelope(2)]))
    assert {request.headers["authorization"] for request in received.requests} == {"Bearer x"}
    assert {request.path for request in received.requests} == {"/api/router/messages"}
    return receipts


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(status=200), Accepted),
        (Answer(status=202, body=b"[]"), Accepted),
        (Answer(body=b'{"ack":false,"delaySeconds":3}'), Throttled),
        (Answer(status=429, headers={"Retry-After": "7"}), Throttled),
        (Answer(status=503, headers={"Retry-After": "7"}), Throttled),
        (Answer(status=500), Unknown),
        (Answer(status=422, body=b"no"), Rejected),
        (Answer(body=b'{"results":[]}'), Unknown),
    ],
)
async def test_what_an_answer_means(executor: ThreadExecutor, answer: Answer, kind: type[Receipt]) -> None:
    assert [type(receipt) for receipt in await answered(executor, answer)] == [kind] * 2


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "check authorization"), (404, "check url"), (302, "check url")]
)
async def test_a_router_that_is_none_says_what_to_do(
    executor: ThreadExecutor, status: int, advice: str
) -> None:
    with pytest.raises(SinkUnavailable, match=advice):
        await answered(executor, Answer(status=status))


async def test_what_is_wrong_is_said_when_it_is_opened(executor: ThreadExecutor) -> None:
    assert 'write url = "http://127.0.0.1:7070"' in await complaint(open_router, executor)
    for unfit in ("nonsense", "ftp://host", "http://user:secret@host/", "http://[x"):
        text = await complaint(open_router, executor, url=unfit)
        assert text == "url: is not the address of a router: write http://host:7070"
    assert "does not answer" in await complaint(open_router, executor, url="http://127.0.0.1:1")
    assert "authorization" in await complaint(open_router, executor, url="http://x", authorization="a\nb")
    assert "ca_file" in await complaint(open_router, executor, url="https://x", ca_file="/nowhere")
    async with receiver(answer=lambda _: Answer(status=403)) as received:
        assert "check authorization" in await complaint(open_router, executor, url=received.url)
