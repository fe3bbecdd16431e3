"""ActiveMQ, the real one, over STOMP."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import stomp

from penstock.domain.outcomes import Accepted, Rejected, Throttled, TryAgain, Unsent
from penstock.domain.states import Reason
from penstock.ports.events import SinkFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, Sink, SinkUnavailable
from penstock.sinks.activemq import Session, open_activemq
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.brokers import ActiveMq
from tests.sinks.carrier import Carrier, messages
from tests.sinks.line import PATIENCE_S, Came, Trouble, line
from tests.sinks.network import Network, answers_lost, cut_meanwhile, cut_off, meanwhile, network
from tests.sinks.opening import complaint, opened, supplies

NAMES = count()


class Reader(stomp.ConnectionListener):
    """Takes everything from a queue, past the network."""

    def __init__(
        self, port: int, queue: str, selector: str | None = None, *, news: threading.Condition | None = None
    ) -> None:
        self.frames: list[Any] = []
        self.news = news or threading.Condition()
        self.connection = stomp.StompConnection12([("127.0.0.1", port)], auto_decode=False)
        self.connection.set_listener("reader", self)
        self.connection.connect(wait=True)
        headers = {} if selector is None else {"selector": selector}
        self.connection.subscribe(f"/queue/{queue}", id="1", ack="auto", headers=headers)

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        with self.news:
            self.frames.append(frame)
            self.news.notify_all()

    def wait(self, number: int) -> list[Any]:
        with self.news:
            self.news.wait_for(lambda: len(self.frames) >= number, timeout=60)
            return list(self.frames)

    def rest(self, ids: Collection[str]) -> list[Any]:
        """Return everything, once all of these have come and the queue has been quiet for a while."""
        with self.news:
            self.news.wait_for(lambda: set(ids) <= {_job(frame) for frame in self.frames}, timeout=60)
            known = -1
            while len(self.frames) != known:
                known = len(self.frames)
                self.news.wait(0.5)
            return list(self.frames)


@contextmanager
def reading(port: int, queue: str, selector: str | None = None) -> Iterator[Reader]:
    reader = Reader(port, queue, selector)
    try:
        yield reader
    finally:
        reader.connection.disconnect("bye")


class Bed:
    """A queue of its own."""

    largest = 4 * 1024 * 1024

    def __init__(self, server: ActiveMq, net: Network, executor: ThreadExecutor) -> None:
        self.server = server
        self.net = net
        self.executor = executor
        self.supplies = supplies(executor)
        self.writer = self.supplies.writer("activemq", format="pointer")
        self.queue = f"queue-{next(NAMES)}"
        self.reader: Reader | None = None

    async def open(self, **options: str) -> Sink:
        given = {"url": f"stomp://127.0.0.1:{self.net.port}", "queue": self.queue} | options
        return await open_activemq(given, self.supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(format="payload", group="g", mode="next_on_error")

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def frames(self, number: int) -> list[Any]:
        if self.reader is None:
            self.reader = await self.executor.run(lambda: Reader(self.server.port, self.queue))
        reader = self.reader
        return await self.executor.run(lambda: reader.wait(number))

    async def came(self, ids: Collection[str]) -> list[Came]:
        """Return everything, once all of these have come and the queue has been quiet for a while."""
        await self.frames(1)
        reader = self.reader
        assert reader is not None
        found = await self.executor.run(lambda: reader.rest(ids))
        return [
            Came(_job(frame), int(frame.headers["X-Penstock-Send"]), bytes(frame.body)) for frame in found
        ]

    async def arrived(self, number: int) -> Sequence[Arrived]:
        return [Arrived(_job(frame), bytes(frame.body)) for frame in await self.frames(number)]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(headers='{"a b": "x"}', group="spoilt")

    def stall(self) -> AbstractContextManager[None]:
        return self.net.holding_answers()

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True


def _job(frame: Any) -> str:  # noqa: ANN401
    return str(frame.headers["X-Penstock-Job-Id"])


@asynccontextmanager
async def bed_on(server: ActiveMq, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with network(server.port) as net:
        bed = Bed(server, net, executor)
        yield bed
        if bed.reader is not None:
            await executor.run(lambda: bed.reader.connection.disconnect("bye"))


@pytest.fixture
async def bed(activemq_server: ActiveMq, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with bed_on(activemq_server, executor) as bed:
        yield bed


class TestActiveMq(SinkSuite):
    pass


def envelope(number: int = 1, **more: str) -> Envelope:
    return Envelope(f"01ACTIVE{number:018}", 1, "orders", 1, "{}", **more)  # type: ignore[arg-type]


async def test_a_message_is_persistent_and_says_what_it_is(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        assert (sink.keeps_order, sink.format, sink.complete_on) == (True, "pointer", "reported")
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]
        hostile = '{"X-Trace":"t: é\\\\","receipt":"no","AMQ_SCHEDULED_DELAY":"99999","JMSXGroupID":"theirs"}'
        message = envelope(group="g: é\\", mode="block_on_error", headers=hostile)
        [receipt] = await sink.send([message])
        [came] = await bed.frames(1)

    assert receipt == Accepted(f"/queue/{bed.queue}")
    assert bytes(came.body) == bed.body(message)
    assert came.headers["persistent"] == "true"
    assert came.headers["X-Trace"] == "t: é\\"
    assert unquote(came.headers["X-Penstock-Group"]) == "g: é\\"
    assert came.headers["X-Penstock-Send"] == "1"
    assert "AMQ_SCHEDULED_DELAY" not in came.headers


async def test_the_group_is_the_brokers_too_unless_there_is_no_order_to_keep(bed: Bed) -> None:
    """ActiveMQ tells nobody a message's group, but it can be asked for."""
    ordered = envelope(1, group="g: é\\", mode="block_on_error")
    async with opened(bed.open()) as sink:
        await sink.send([ordered, envelope(2), envelope(3, group="label", mode="immediate")])

    def asked(selector: str, number: int) -> set[str]:
        with reading(bed.server.port, bed.queue, selector) as reader:
            return {frame.headers["X-Penstock-Job-Id"] for frame in reader.wait(number)}

    assert await bed.executor.run(lambda: asked("JMSXGroupID = 'g: é\\'", 1)) == {ordered.id}
    assert await bed.executor.run(lambda: asked("JMSXGroupID IS NULL", 2)) == {envelope(2).id, envelope(3).id}


async def test_of_two_consumers_one_has_a_group_and_gets_it_in_order(bed: Bed) -> None:
    given = messages(6, 10, queue=bed.queue)

    news = threading.Condition()

    def readers() -> tuple[Reader, Reader]:
        port, queue = bed.server.port, bed.queue
        return Reader(port, queue, news=news), Reader(port, queue, news=news)

    def both() -> list[list[Any]]:
        with news:
            news.wait_for(lambda: len(first.frames) + len(second.frames) >= len(given), timeout=60)
            return [list(first.frames), list(second.frames)]

    first, second = await bed.executor.run(readers)
    try:
        async with opened(bed.open()) as sink:
            await sink.send(given)
        shares = await bed.executor.run(both)
    finally:
        for reader in (first, second):
            await bed.executor.run(lambda r=reader: r.connection.disconnect("bye"))  # type: ignore[misc]

    ids = [[frame.headers["X-Penstock-Job-Id"] for frame in share] for share in shares]
    groups = [{frame.headers["X-Penstock-Group"] for frame in share} for share in shares]
    assert all(groups)
    assert not groups[0] & groups[1]
    Carrier(sink).judge(given, ids[0] + ids[1], dedups=True)


async def test_a_destination_may_be_named_in_full(bed: Bed) -> None:
    async with opened(bed.open(queue="elsewhere")) as sink:
        await sink.send([envelope(queue=f"/queue/{bed.queue}")])

    assert len(await bed.frames(1)) == 1


async def test_what_is_too_large_or_unfit_is_refused_and_the_rest_goes(bed: Bed) -> None:
    large = envelope(2, format="payload")._replace(payload='"' + "x" * 1024 + '"')
    wide = envelope(3, headers='{"Wide":"' + "x" * 9000 + '"}')
    null = envelope(4, group="a\0b", mode="block_on_error")
    async with opened(bed.open(max_message="1KiB")) as sink:
        receipts = await sink.send([envelope(1), large, wide, null, envelope(5)])

    assert [type(receipt) for receipt in receipts] == [Accepted, *[Rejected] * 3, Accepted]
    assert [r.reason for r in receipts if isinstance(r, Rejected)] == [
        Reason.TOO_LARGE,
        *[Reason.PERMANENT] * 2,
    ]


async def test_while_the_broker_is_away_nothing_is_sent_and_then_it_goes_on(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        await bed.net.go_down()
        while sink._session is not None and not sink._session.lost:  # type: ignore[attr-defined]
            await asyncio.wait([sink._session.connected], timeout=0.01)  # type: ignore[attr-defined]
            await bed.executor.run(lambda: None)
        with pytest.raises(SinkUnavailable, match="does not let us in"):
            await sink.send([envelope(1)])
        await bed.net.come_up()
        assert [type(receipt) for receipt in await sink.send([envelope(2)])] == [Accepted]


async def test_a_queue_that_is_full_is_left_alone_for_a_while(bed: Bed) -> None:
    bed.queue = f"small.{bed.queue}"
    async with opened(bed.open()) as sink:
        receipts = [r for n in range(10) for r in await sink.send([envelope(10 * n + m) for m in range(10)])]
        taken = [type(receipt) for receipt in receipts].count(Accepted)
        await bed.frames(taken)
        assert [type(receipt) for receipt in await sink.send([envelope(999)])] == [Accepted]

    assert 0 < taken < 100
    assert {type(receipt) for receipt in receipts} == {Accepted, Throttled}


@pytest.mark.soak
async def test_a_node_loses_nothing_through_cuts_a_crash_and_a_full_queue(
    executor: ThreadExecutor, tmp_path: Path
) -> None:
    with ActiveMq.running() as server:

        def crash() -> Trouble:
            """Kill the broker during this call, and have it back before the next."""
            return meanwhile(executor.run(server.restart))

        async with bed_on(server, executor) as bed:
            bed.queue = f"small.{bed.queue}"
            async with opened(bed.open()) as sink:
                troubles = [answers_lost(bed.net), cut_off(bed.net), cut_meanwhile(bed.net), crash()]
                places = dict(zip((2, 4, 6, 8), troubles, strict=True))
                async with line(tmp_path, sink, places, timeout="20s") as ours:
                    async with asyncio.TaskGroup() as tasks:
                        carrying = tasks.create_task(ours.carry(groups=8, per_group=14))
                        full = lambda: bool(ours.tried["deferred"]) and not ours.sink.left  # noqa: E731
                        await ours.engine.until(full, seconds=PATIENCE_S)
                        await bed.frames(1)  # from now on somebody takes them
                        await carrying
                    ours.judge(await bed.came(ours.ledger.accepted), dedups=False)

                    assert ours.tried["unanswered"]
                    assert ours.engine.seen(SinkFailed)


class Said:
    """A frame as stomp gives it."""

    def __init__(self, message: str, receipt: str | None) -> None:
        self.headers = {"message": message} | ({} if receipt is None else {"receipt-id": receipt})
        self.body = ""


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("javax.jms.ResourceAllocationException: Usage Manager Memory Limit reached", Throttled),
        ("User shop is not authorized to write to: queue://orders", Unsent),
        ("java.io.IOException: oh", TryAgain),
    ],
)
async def test_what_a_refusal_of_one_message_means(message: str, kind: type[object]) -> None:
    session = Session(asyncio.get_running_loop())
    name, answer = session.expect("/queue/x")
    session.on_error(Said(message, name))

    assert type(await answer) is kind


async def test_what_is_wrong_is_said_when_it_is_opened(bed: Bed, executor: ThreadExecutor) -> None:
    assert 'write url = "stomp://127.0.0.1:61613"' in await complaint(open_activemq, executor)
    for unfit in ("tcp://host:61616", "stomp://", "stomp://host:x", "stomp://host/queue"):
        assert "write stomp://host:61613" in await complaint(open_activemq, executor, url=unfit)
    assert "does not let us in" in await complaint(open_activemq, executor, url="stomp://127.0.0.1:1")
    assert "stomps" in await complaint(open_activemq, executor, url="stomp://x", ca_file="/nowhere")
    with bed.net.holding_answers(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await bed.open()


async def test_a_broker_that_asks_for_a_password_says_so(executor: ThreadExecutor) -> None:
    """What it says before it hangs up is in the error, without the password."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\0")
        writer.write(b"ERROR\nmessage:User name [shop] or password is invalid.\n\n\0")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"stomp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        text = await complaint(open_activemq, executor, url=url, username="shop", password="hush")  # noqa: S106

    assert "password is invalid.: check url, username and password" in text
    assert "hush" not in text


async def test_nothing_is_left_of_a_sink_that_was_closed(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        await sink.send([envelope()])
    with pytest.raises((SinkUnavailable, RuntimeError)):
        await sink.send([envelope(2)])
