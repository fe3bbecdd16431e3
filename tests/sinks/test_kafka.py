"""Kafka, on the broker inside librdkafka; `KAFKA_BOOTSTRAP=127.0.0.1:9092` runs the same on a real one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from penstock.domain.outcomes import Accepted, Rejected, Unknown
from penstock.domain.states import Reason
from penstock.ports.events import SinkFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, Sink, SinkUnavailable
from penstock.sinks.kafka import open_kafka
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.brokers import Kafka
from tests.sinks.carrier import Carrier, messages
from tests.sinks.line import Came, line
from tests.sinks.network import (
    Network,
    answers_late,
    answers_lost,
    cut_meanwhile,
    cut_off,
    meanwhile,
    network,
)
from tests.sinks.opening import complaint, opened, supplies

NAMES = count()


class Bed:
    """A topic of its own, read by librdkafka's consumer past the network."""

    largest = 900_000

    def __init__(self, broker: Kafka, net: Network, executor: ThreadExecutor) -> None:
        self.broker = broker
        self.net = net
        self.executor = executor
        self.supplies = supplies(executor)
        self.writer = self.supplies.writer("kafka", format="full")
        self.topic = f"topic-{next(NAMES)}"
        self.consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{broker.port}",
                "group.id": self.topic,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        self.seen: list[Message] = []

    async def open(self, **options: str) -> Sink:
        given = {"url": f"127.0.0.1:{self.net.port}", "timeout": "2s", "queue": self.topic} | options
        return await open_kafka(given, self.supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(queue=self.topic, format="payload", group="g", mode="next_on_error")

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    def _assign(self) -> None:
        """Begin at the beginning of every partition."""
        if not self.consumer.assignment():
            found = self.consumer.list_topics(self.topic, timeout=60).topics[self.topic].partitions
            self.consumer.assign([TopicPartition(self.topic, number, 0) for number in found])

    def _poll(self, timeout: float) -> list[Message]:
        self._assign()
        found = self.consumer.consume(1000, timeout)
        assert [message.error() for message in found if message.error()] == []
        return found

    async def messages(self, number: int) -> list[Message]:
        while len(self.seen) < number:
            self.seen += await self.executor.run(lambda: self._poll(0.05))
        return self.seen

    async def everything(self) -> list[Message]:
        """Return all that the topic has by now."""
        return await self.messages(await self.executor.run(self._size))

    def _size(self) -> int:
        self._assign()
        places = self.consumer.assignment()
        return sum(self.consumer.get_watermark_offsets(place, timeout=60)[1] for place in places)

    async def arrived(self, number: int) -> Sequence[Arrived]:
        return [Arrived(_job(one), bytes(one.value() or b"")) for one in await self.messages(number)]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(headers='{"a b": "x"}', group="spoilt")

    def stall(self) -> AbstractContextManager[None]:
        return self.net.holding_answers()

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True


def _job(message: Message) -> str:
    return dict(message.headers() or [])["X-Penstock-Job-Id"].decode()


def _send(message: Message) -> int:
    return int(dict(message.headers() or [])["X-Penstock-Send"])


@pytest.fixture
async def bed(kafka_broker: Kafka, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with network(kafka_broker.port, kafka_broker.rewrite) as net:
        bed = Bed(kafka_broker, net, executor)
        yield bed
        await executor.run(bed.consumer.close)


class TestKafka(SinkSuite):
    pass


def envelope(number: int = 1, **more: str) -> Envelope:
    return Envelope(f"01KAFKA{number:019}", 1, "orders", 1, "{}", **more)  # type: ignore[arg-type]


async def test_a_record_is_keyed_by_its_group_and_says_what_it_is(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        assert (sink.keeps_order, sink.format, sink.complete_on) == (True, "full", "sent")
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]
        message = envelope(1, group="g é", mode="block_on_error", headers='{"X-Trace":"t"}')
        receipts = await sink.send([message, envelope(2)])
        came = {_job(one): one for one in await bed.messages(2)}

    one = came[message.id]
    assert receipts[0] == Accepted(f"{bed.topic}/{one.partition()}/{one.offset()}")
    assert one.key() == "g é".encode()
    assert one.value() == bed.body(message)
    headers = dict(one.headers() or [])
    assert (headers["X-Penstock-Send"], headers["X-Trace"]) == (b"1", b"t")
    assert came[envelope(2).id].key() is None


async def test_groups_keep_their_order_each_on_its_partition(bed: Bed) -> None:
    given = messages(20, 10)
    async with opened(bed.open()) as sink:
        receipts = await sink.send(given)
        came = await bed.messages(len(given))

    assert [type(receipt) for receipt in receipts] == [Accepted] * len(given)
    assert len({one.partition() for one in came}) > 1
    Carrier(sink).judge(given, [_job(one) for one in came], dedups=True)


async def test_what_is_too_large_is_refused_and_the_rest_goes(bed: Bed) -> None:
    large = envelope(2, format="payload")._replace(payload='"' + "x" * 1024 + '"')
    async with opened(bed.open(max_message="1KiB")) as sink:
        receipts = await sink.send([envelope(1), large, envelope(3)])

    assert [type(receipt) for receipt in receipts] == [Accepted, Rejected, Accepted]
    assert isinstance(receipts[1], Rejected)
    assert receipts[1].reason is Reason.TOO_LARGE


async def test_a_topic_that_cannot_be_found_costs_no_attempt(bed: Bed) -> None:
    async with opened(bed.open(timeout="2s")) as sink:
        await bed.net.go_down()
        with pytest.raises(SinkUnavailable, match="Kafka does not answer"):
            await sink.send(
                [envelope(1, queue=f"{bed.topic}-other"), envelope(2, queue=f"{bed.topic}-other")]
            )
        await bed.net.come_up()
        await Carrier(sink).carry([envelope(3)])


async def test_without_an_acknowledgement_nobody_knows_and_what_was_held_is_given_up(bed: Bed) -> None:
    """Nothing of it comes later, when the next call has gone past it."""
    async with opened(bed.open(timeout="1s")) as sink:
        await sink.send([envelope(1)])
        with bed.net.holding_answers():
            receipts = await sink.send([envelope(2, group="a"), envelope(3, group="b")])
            assert [type(receipt) for receipt in receipts] == [Unknown] * 2
            with pytest.raises(SinkUnavailable, match="cannot be reached"):
                await sink.send([envelope(4)])
        await Carrier(sink).carry([envelope(5)])
        came = [_job(one) for one in await bed.everything()]

    assert sorted(set(came)) == sorted(envelope(n).id for n in (1, 2, 3, 5))
    assert [came.count(envelope(n).id) for n in (1, 2, 3)] == [1, 1, 1]


async def test_a_node_loses_nothing_through_cuts_and_silence_and_every_group_is_in_order(
    bed: Bed, tmp_path: Path
) -> None:
    """Kafka slows clients down by answering late. One that restarts goes away in the middle of a batch."""

    async def restart() -> None:
        bed.net.sent.clear()
        await bed.net.sent.wait()
        await bed.net.go_down()
        await asyncio.sleep(0.3)  # it has work to do before it is back
        await bed.net.come_up()

    async with opened(bed.open(timeout="1s")) as sink:
        troubles = [
            meanwhile(restart()),
            answers_lost(bed.net),
            cut_off(bed.net),
            cut_meanwhile(bed.net),
            answers_late(bed.net),
        ]
        async with line(tmp_path, sink, dict(zip((2, 4, 6, 8, 10), troubles, strict=True))) as ours:
            await ours.carry(groups=8, per_group=12)
            came = [Came(_job(one), _send(one), one.value()) for one in await bed.everything()]
            if not bed.broker.is_real:  # it takes what an idempotent producer repeats as new
                came = list(dict.fromkeys(came))
            ours.judge(came, dedups=False)

            assert ours.tried["unanswered"] + len(ours.engine.seen(SinkFailed))


async def test_what_is_wrong_is_said_when_it_is_opened(executor: ThreadExecutor) -> None:
    assert 'write url = "127.0.0.1:9092"' in await complaint(open_kafka, executor)
    for unfit in ("kafka://host:9092", "host", "host:9092,", ":9092"):
        assert "is not a list of brokers" in await complaint(open_kafka, executor, url=unfit)
    assert "cannot be reached" in await complaint(open_kafka, executor, url="127.0.0.1:1")
    assert "they go together" in await complaint(open_kafka, executor, url="x:1", username="a")
    assert "is none of PLAIN" in await complaint(open_kafka, executor, url="x:1", sasl_mechanism="GSSAPI")
    assert "ca_file" in await complaint(open_kafka, executor, url="x:1", tls=True, ca_file="/nowhere")
