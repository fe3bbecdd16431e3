"""The store's own queues as a sink: order, duplicates, and what a probe may say."""

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.domain.bodies import Writer
from penstock.domain.outcomes import Accepted, Duplicate, Receipt, Rejected
from penstock.domain.ulid import Ulids
from penstock.errors import InvalidSetting, StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.queue import Message
from penstock.ports.sink import RUNNING, UNKNOWN, Envelope, Probed
from penstock.ports.source import Supplies as SourceSupplies
from penstock.sinks.embedded import EmbeddedSink, open_embedded
from penstock.sources.embedded import open_embedded as open_source
from penstock.stores.connect import open_queues
from penstock.stores.memory import MemoryStore
from tests.sinks.opening import supplies

MINUTE = timedelta(minutes=1)
WRITER = Writer(format="pointer", kind="embedded", endpoint="http://node/process")


@pytest.fixture
def store() -> MemoryStore:
    ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
    return MemoryStore(clock=lambda: datetime.now(UTC), ids=ids)


@pytest.fixture
def sink(store: MemoryStore, executor: ThreadExecutor) -> EmbeddedSink:
    return EmbeddedSink(store, writer=WRITER, executor=executor)


def envelope(number: int, **said: object) -> Envelope:
    return Envelope(f"01JOB{number}", 1, "orders", 1, **said)  # type: ignore[arg-type]


async def test_the_queue_is_the_lanes_own_unless_it_names_one(store: MemoryStore, sink: EmbeddedSink) -> None:
    receipts = await sink.send([envelope(1), envelope(2, queue="other"), envelope(3)])

    assert [type(receipt) for receipt in receipts] == [Accepted] * 3
    assert [receipt.receipt.partition("/")[0] for receipt in receipts] == ["orders", "other", "orders"]  # type: ignore[union-attr]
    assert len(store.receive("orders", 10, visibility=MINUTE)) == 2
    [other] = store.receive("other", 10, visibility=MINUTE)
    assert other.body == WRITER.body(envelope(2)).decode()


async def test_a_group_keeps_its_order_and_a_label_does_not_make_one(
    store: MemoryStore, sink: EmbeddedSink
) -> None:
    ordered = [envelope(n, group="g", mode="block_on_error") for n in (1, 2)]
    labelled = [envelope(n, group="label", mode="immediate") for n in (3, 4)]
    await sink.send([*ordered, *labelled])

    found = store.receive("orders", 10, visibility=MINUTE)

    assert [delivery.group for delivery in found] == ["g", None, None]


async def test_a_repeated_send_is_a_duplicate_and_a_retry_is_not(sink: EmbeddedSink) -> None:
    again = envelope(1)
    await sink.send([again])

    receipts = await sink.send([again, again._replace(number=2)])

    assert [type(receipt) for receipt in receipts] == [Duplicate, Accepted]


async def test_what_cannot_be_written_is_rejected_in_its_place(sink: EmbeddedSink) -> None:
    bad = envelope(2, format="full", headers="[]")

    receipts: list[Receipt] = list(await sink.send([envelope(1), bad, envelope(3)]))

    assert [type(receipt) for receipt in receipts] == [Accepted, Rejected, Accepted]


async def test_queued_means_do_not_repeat_and_gone_means_nobody_knows(
    store: MemoryStore, sink: EmbeddedSink
) -> None:
    waiting, working, done, never = (envelope(n, queue="q") for n in range(4))
    await sink.send([done, working])
    first, second = store.receive("q", 2, visibility=MINUTE)
    store.ack([first])
    await sink.send([waiting])

    fates = await sink.probe([waiting, working, done, never, waiting._replace(number=2)])

    assert second.receives == 1
    assert fates == [
        Probed(RUNNING),
        Probed(RUNNING),
        Probed(UNKNOWN),
        Probed(UNKNOWN),
        Probed(UNKNOWN),
    ]


async def test_a_store_that_is_gone_leaves_the_fate_open(executor: ThreadExecutor) -> None:
    """What it raises is not "nothing was sent": the push may have taken effect."""

    class Gone(MemoryStore):
        def push(self, *_: object) -> list[int | None]:
            raise StoreUnavailable("push")

    ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
    sink = EmbeddedSink(Gone(clock=lambda: datetime.now(UTC), ids=ids), writer=WRITER, executor=executor)

    with pytest.raises(StoreUnavailable):
        await sink.send([envelope(1)])


def test_a_message_names_its_send() -> None:
    assert Message("body", None, envelope(1).dedup).dedup == "01JOB1:1"


async def test_queues_may_have_a_file_of_their_own(
    store: MemoryStore, executor: ThreadExecutor, tmp_path: Path
) -> None:
    """The sink fills it, the source empties it, the store knows of neither; closing gives the file up."""
    url = f"sqlite:///{tmp_path / 'queues.db'}"
    ours = replace(supplies(executor), queue=store, open_queues=open_queues)
    theirs = SourceSupplies(
        name="own",
        queues=lambda: ["orders"],
        executor=executor,
        clock=SystemClock(),
        queue=store,
        open_queues=open_queues,
    )
    sink = await open_embedded({"kind": "embedded", "url": url}, ours)
    source = await open_source({"kind": "embedded", "url": url, "visibility": "5s"}, theirs)
    sent = [envelope(1, group="g", mode="block_on_error"), envelope(2, group="g", mode="block_on_error")]
    receipts = [*await sink.send(sent), *await sink.send(sent[:1])]
    assert [type(receipt) for receipt in receipts] == [Accepted, Accepted, Duplicate]
    assert await sink.probe(sent[:1]) == [Probed(RUNNING)]

    for number in (1, 2):
        [message] = await source.receive(10)
        assert f'"id":"01JOB{number}"' in message.body
        await source.ack([message])

    assert await sink.probe(sent[:1]) == [Probed(UNKNOWN)]
    assert store.receive("orders", 10, visibility=MINUTE) == []
    for end in (sink, source):
        await end.close()
        await end.close()


async def test_queues_of_their_own_are_a_sqlite_file(executor: ThreadExecutor) -> None:
    ours = replace(supplies(executor), open_queues=open_queues)
    with pytest.raises(InvalidSetting, match=r"write sqlite:///queues\.db"):
        await open_embedded({"url": "postgresql://nowhere/x"}, ours)
