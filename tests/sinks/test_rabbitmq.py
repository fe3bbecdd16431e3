"""RabbitMQ, the real one, with publisher confirms."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage

from penstock.domain.outcomes import Accepted, Rejected, Throttled, Unsent
from penstock.domain.states import Reason
from penstock.ports.events import SinkFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, Sink, SinkUnavailable
from penstock.sinks.rabbitmq import open_rabbitmq
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.brokers import RabbitMq
from tests.sinks.line import PATIENCE_S, Came, Trouble, line
from tests.sinks.network import Network, answers_lost, cut_meanwhile, cut_off, meanwhile, network
from tests.sinks.opening import complaint, opened, supplies

NAMES = count()


class Bed:
    """A durable queue of its own, on a connection past the network."""

    largest = 4 * 1024 * 1024

    def __init__(self, server: RabbitMq, net: Network, executor: ThreadExecutor) -> None:
        self.server = server
        self.net = net
        self.supplies = supplies(executor)
        self.writer = self.supplies.writer("rabbitmq", format="pointer")
        self.queue = f"queue-{next(NAMES)}"
        self.seen: list[AbstractIncomingMessage] = []

    async def declare(self, **arguments: str | int) -> None:
        async with await aio_pika.connect(self.server.url) as connection, connection.channel() as channel:
            await channel.declare_queue(self.queue, durable=True, arguments=arguments)

    async def open(self, **options: str) -> Sink:
        url = f"amqp://guest:guest@127.0.0.1:{self.net.port}/"
        return await open_rabbitmq({"url": url} | options, self.supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(queue=self.queue, format="payload")

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def messages(self, number: int) -> list[AbstractIncomingMessage]:
        """Take messages until so many have come."""
        async with await aio_pika.connect(self.server.url) as connection, connection.channel() as channel:
            queue = await channel.get_queue(self.queue)
            while len(self.seen) < number:
                found = await queue.get(fail=False)
                if found is not None:
                    await found.ack()
                    self.seen.append(found)
        return self.seen

    async def everything(self) -> list[AbstractIncomingMessage]:
        async with await aio_pika.connect(self.server.url) as connection, connection.channel() as channel:
            queue = await channel.get_queue(self.queue)
            while (found := await queue.get(fail=False)) is not None:
                await found.ack()
                self.seen.append(found)
        return self.seen

    async def arrived(self, number: int) -> Sequence[Arrived]:
        return [
            Arrived(str(message.message_id).partition(":")[0], message.body)
            for message in await self.messages(number)
        ]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(headers='{"a b": "x"}')

    def stall(self) -> AbstractContextManager[None]:
        return self.net.holding_answers()

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True


@pytest.fixture
async def bed(rabbitmq_server: RabbitMq, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with network(rabbitmq_server.port) as net:
        bed = Bed(rabbitmq_server, net, executor)
        await bed.declare()
        yield bed


class TestRabbitMq(SinkSuite):
    pass


def envelope(number: int = 1, **more: str) -> Envelope:
    return Envelope(f"01RABBIT{number:018}", 1, "orders", 1, "{}", **more)  # type: ignore[arg-type]


async def test_a_message_is_persistent_and_says_what_it_is(bed: Bed) -> None:
    async with opened(bed.open(queue=bed.queue)) as sink:
        assert (sink.keeps_order, sink.format, sink.complete_on) == (False, "pointer", "reported")
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]
        message = envelope(group="g é", mode="block_on_error", headers='{"X-Trace":"t"}')
        [receipt] = await sink.send([message])
        [came] = await bed.messages(1)

    assert receipt == Accepted(f"{message.id}:1")
    assert came.body == bed.body(message)
    assert came.delivery_mode is aio_pika.DeliveryMode.PERSISTENT
    assert (came.message_id, came.app_id, came.content_type) == (
        f"{message.id}:1",
        "penstock",
        "application/json",
    )
    assert came.headers["X-Penstock-Group"] == "g %C3%A9"
    assert came.headers["X-Penstock-Send"] == "1"
    assert came.headers["X-Trace"] == "t"


async def test_an_exchange_routes_by_the_lanes_queue(bed: Bed) -> None:
    async with await aio_pika.connect(bed.server.url) as connection, connection.channel() as channel:
        exchange = await channel.declare_exchange("shop", aio_pika.ExchangeType.TOPIC, durable=True)
        await (await channel.get_queue(bed.queue)).bind(exchange, "orders.*")
    async with opened(bed.open(exchange="shop")) as sink:
        assert [type(r) for r in await sink.send([envelope(queue="orders.new")])] == [Accepted]
        with pytest.raises(SinkUnavailable, match='no queue takes messages for "invoices"'):
            await sink.send([envelope(queue="invoices")])

    assert [came.routing_key for came in await bed.messages(1)] == ["orders.new"]


async def test_what_no_queue_takes_is_not_lost_and_its_mates_go(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        with pytest.raises(
            SinkUnavailable, match='no queue takes messages for "orders": declare or bind one'
        ):
            await sink.send([envelope()])

        receipts = await sink.send([envelope(1), envelope(2, queue=bed.queue)])
        assert [type(receipt) for receipt in receipts] == [Unsent, Accepted]


async def test_a_queue_that_is_full_is_left_alone_for_a_while(bed: Bed) -> None:
    bed.queue += "-short"
    await bed.declare(**{"x-max-length": 1, "x-overflow": "reject-publish"})
    async with opened(bed.open(queue=bed.queue)) as sink:
        receipts = [*await sink.send([envelope(1)]), *await sink.send([envelope(2)])]

    assert [type(receipt) for receipt in receipts] == [Accepted, Throttled]


async def test_what_is_too_large_or_unfit_is_refused_and_the_rest_goes(bed: Bed) -> None:
    large = envelope(2, format="payload")._replace(payload='"' + "x" * 1024 + '"')
    bad = [
        envelope(3, headers='{"' + "n" * 256 + '":"x"}'),
        envelope(4, headers='{"Big":"' + "x" * 65536 + '"}'),
        envelope(5, queue="q" * 256),
    ]
    async with opened(bed.open(queue=bed.queue, max_message="1KiB")) as sink:
        receipts = await sink.send([envelope(1), large, *bad, envelope(6)])

    assert [type(receipt) for receipt in receipts] == [Accepted, *[Rejected] * 4, Accepted]
    assert [r.reason for r in receipts if isinstance(r, Rejected)] == [
        Reason.TOO_LARGE,
        *[Reason.PERMANENT] * 3,
    ]


async def test_a_brokers_alarm_defers_what_comes_after_it(bed: Bed, executor: ThreadExecutor) -> None:
    """The first message into an alarm gets no answer; from then on nothing is sent until it is over."""
    async with opened(bed.open(queue=bed.queue)) as sink:
        await executor.run(lambda: bed.server.control("set_vm_memory_high_watermark", "0.000001"))
        try:
            async with asyncio.TaskGroup() as tasks:
                given_up = tasks.create_task(sink.send([envelope(1)]))
                while not await sink._is_blocked():  # type: ignore[attr-defined]
                    await asyncio.wait({given_up}, timeout=0.01)
                given_up.cancel()
            [receipt] = await sink.send([envelope(2)])
        finally:
            await executor.run(lambda: bed.server.control("set_vm_memory_high_watermark", "0.4"))
        assert isinstance(receipt, Throttled)
        assert "short of memory" in str(receipt.error)


async def test_a_node_loses_nothing_through_cuts_a_crash_and_a_full_queue(
    bed: Bed, executor: ThreadExecutor, tmp_path: Path
) -> None:
    def crash() -> Trouble:
        """Kill the broker during this call, and have it back before the next."""
        return meanwhile(executor.run(bed.server.restart))

    bed.queue += "-short"
    await bed.declare(**{"x-max-length": 70, "x-overflow": "reject-publish"})  # it is full after the crash
    async with opened(bed.open(queue=bed.queue)) as sink:
        troubles = [answers_lost(bed.net), cut_off(bed.net), cut_meanwhile(bed.net), crash()]
        async with line(tmp_path, sink, dict(zip((2, 4, 6, 8), troubles, strict=True))) as ours:
            async with asyncio.TaskGroup() as tasks:
                carrying = tasks.create_task(ours.carry(groups=8, per_group=12))
                await ours.engine.until(lambda: bool(ours.tried["deferred"]), seconds=PATIENCE_S)
                while not carrying.done():
                    await bed.everything()
                    await asyncio.wait({carrying}, timeout=0.1)
            found = await bed.everything()
            came = [
                Came(job, int(send), message.body)
                for message in found
                for job, _, send in [str(message.message_id).partition(":")]
            ]
            ours.judge(came, dedups=False)

            assert ours.tried["unanswered"]
            assert ours.tried["deferred"]
            assert ours.engine.seen(SinkFailed)


async def test_what_is_wrong_is_said_when_it_is_opened(bed: Bed, executor: ThreadExecutor) -> None:
    url = bed.server.url

    assert 'write url = "amqp://127.0.0.1:5672/"' in await complaint(open_rabbitmq, executor)
    assert "write amqp://host:5672/vhost" in await complaint(open_rabbitmq, executor, url="http://x")
    assert "cannot be reached" in await complaint(open_rabbitmq, executor, url="amqp://127.0.0.1:1/")
    assert "there is no exchange" in await complaint(open_rabbitmq, executor, url=url, exchange="nowhere")
    assert "amqps" in await complaint(open_rabbitmq, executor, url=url, ca_file="/nowhere")
    text = await complaint(open_rabbitmq, executor, url=url, username="shop", password="secret")  # noqa: S106
    assert "check username, password" in text
    assert "secret" not in text
