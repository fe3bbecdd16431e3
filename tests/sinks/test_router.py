"""Pointers to a router, the real one, over HTTP."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry

from penstock import Client
from penstock.api.app import make_router_app
from penstock.api.callers import Callers
from penstock.api.messages import message_routes
from penstock.api.server import listen, serve_on
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, Unknown
from penstock.domain.ulid import Ulids
from penstock.observability.health import Health
from penstock.observability.live import Live
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, Sink, SinkUnavailable
from penstock.sinks.router import open_router
from penstock.sources.posted import PostedSource
from penstock.stores.memory import MemoryStore
from penstock.testing.receiver import Answer, receiver
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.sinks.carrier import Carrier, messages
from tests.sinks.network import Network, answers_lost, cut_meanwhile, cut_off, network
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


@pytest.fixture
async def bed(executor: ThreadExecutor) -> AsyncIterator[Bed]:
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
    sock, over = listen("127.0.0.1", 0), asyncio.Event()
    async with asyncio.TaskGroup() as tasks, network(sock.getsockname()[1]) as net:
        tasks.create_task(serve_on(app, sock, over))
        yield Bed(net, source, executor)
        over.set()


class TestRouter(SinkSuite):
    pass


def envelope(number: int = 1, group: str | None = None, **more: str) -> Envelope:
    return Envelope(f"01ROUTED{number:018}", 1, "orders", 1, "{}", group=group, mode="next_on_error", **more)  # type: ignore[arg-type]


async def test_it_says_what_it_keeps(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        assert (sink.keeps_order, sink.format, sink.complete_on) == (False, "pointer", "reported")
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]


async def test_through_cuts_nothing_is_lost_and_what_the_router_still_has_is_not_taken_twice(
    bed: Bed,
) -> None:
    given = [message._replace(format="pointer") for message in messages(8, 6)]
    async with opened(bed.open()) as sink:
        carrier = Carrier(sink)
        troubles = [answers_lost(bed.net), cut_off(bed.net), cut_meanwhile(bed.net)]
        await carrier.carry(given, dict(zip((2, 4, 6), troubles, strict=True)))
        came = await bed.arrived(len(given))

    carrier.judge(given, [one.id for one in came], dedups=True)
    assert carrier.doubtful
    assert carrier.said["Unsent"]


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
