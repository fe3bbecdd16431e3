"""The cases."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from penstock.domain.outcomes import Accepted, Duplicate, Receipt, Rejected
from penstock.ports.sink import NOT_STARTED, UNKNOWN, Envelope, Probed, Sink
from penstock.testing.sink_suite.bed import SinkBed

PATIENCE_S: Final = 60.0
# What a reader and writer of JSON would change: blanks, escapes, digits, order, an exponent, characters
# outside the plane that two bytes reach.
EXACT: Final = '{ "é" : "\\u00e9\\/", "日本": "😀", "n":1.10, "z":1e2 ,"a":12345678901234567890 }'


def envelope(bed: SinkBed, number: int, *, payload: str | None = '{"n":1}', send: int = 1) -> Envelope:
    """Return a message of its own to this bed."""
    made = Envelope(f"01SINKSUITE{number:015}", send, "suite", 1, payload=payload, sequence=number)
    return bed.address(made)


@asynccontextmanager
async def opened(bed: SinkBed) -> AsyncIterator[Sink]:
    """Open a sink, close it at the end, and let nothing take for ever."""
    async with asyncio.timeout(PATIENCE_S):
        sink = await bed.open()
        try:
            yield sink
        finally:
            await sink.close()


async def send_all(sink: Sink, messages: Sequence[Envelope]) -> list[Receipt]:
    """Send in batches no larger than the sink takes."""
    receipts: list[Receipt] = []
    for begin in range(0, len(messages), sink.max_batch):
        batch = messages[begin : begin + sink.max_batch]
        answers = await sink.send(batch)
        assert len(answers) == len(batch), "one receipt per message"
        receipts += answers
    return receipts


@pytest.mark.asyncio
class SinkSuite:
    """Subclass it as `Test…` and give it a fixture `bed`."""

    async def test_it_says_what_it_is(self, bed: SinkBed) -> None:
        """What lanes use unless they say otherwise."""
        async with opened(bed) as sink:
            assert sink.max_batch >= 1
            assert isinstance(sink.keeps_order, bool)
            assert sink.format in {"payload", "full", "pointer", "app"}
            assert sink.complete_on in {"sent", "reported"}

    async def test_every_message_arrives_and_has_a_receipt(self, bed: SinkBed) -> None:
        """In the order in which they were sent."""
        async with opened(bed) as sink:
            messages = [envelope(bed, number) for number in range(20)]
            receipts = await send_all(sink, messages)

            assert [type(receipt) for receipt in receipts] == [Accepted] * 20
            assert [came.id for came in await bed.arrived(20)] == [message.id for message in messages]

    async def test_a_batch_of_nothing_is_nothing(self, bed: SinkBed) -> None:
        """No call, no receipt."""
        async with opened(bed) as sink:
            assert list(await sink.send([])) == []
            assert list(await sink.probe([])) == []

    async def test_bytes_arrive_as_they_are(self, bed: SinkBed) -> None:
        """A payload is never parsed and written again."""
        async with opened(bed) as sink:
            message = envelope(bed, 1, payload=EXACT)
            [receipt] = await send_all(sink, [message])
            [came] = await bed.arrived(1)

            assert isinstance(receipt, Accepted)
            assert came.body == bed.body(message)

    async def test_a_job_without_a_payload_arrives(self, bed: SinkBed) -> None:
        """There is something to be read all the same."""
        async with opened(bed) as sink:
            message = envelope(bed, 1, payload=None)
            [receipt] = await send_all(sink, [message])
            [came] = await bed.arrived(1)

            assert isinstance(receipt, Accepted)
            assert came.body == bed.body(message)

    async def test_a_large_payload_arrives_whole(self, bed: SinkBed) -> None:
        """As large as this kind takes."""
        async with opened(bed) as sink:
            message = envelope(bed, 1, payload='"' + "x" * (bed.largest - 2) + '"')
            [receipt] = await send_all(sink, [message])
            [came] = await bed.arrived(1)

            assert isinstance(receipt, Accepted)
            assert came.body == bed.body(message)

    async def test_a_message_that_cannot_be_sent_leaves_the_others_unhurt(self, bed: SinkBed) -> None:
        """Its receipt says so, theirs say that they were taken."""
        bad = bed.spoil(envelope(bed, 2))
        if bad is None:
            pytest.skip("this kind takes everything")
        async with opened(bed) as sink:
            receipts = await send_all(sink, [envelope(bed, 1), bad, envelope(bed, 3)])

            assert [type(receipt) for receipt in receipts] == [Accepted, Rejected, Accepted]
            assert len({came.id for came in await bed.arrived(2)} & {bad.id}) == 0

    async def test_the_same_send_again_is_a_success(self, bed: SinkBed) -> None:
        """Taken once more, or recognised: after a crash nobody knows whether the first one got through."""
        async with opened(bed) as sink:
            message = envelope(bed, 1)
            [first] = await send_all(sink, [message])
            [second] = await send_all(sink, [message])

            assert isinstance(first, Accepted)
            assert isinstance(second, Accepted | Duplicate)

    async def test_a_retry_is_not_taken_for_a_duplicate(self, bed: SinkBed) -> None:
        """It is the next send of the same job."""
        async with opened(bed) as sink:
            await send_all(sink, [envelope(bed, 1)])
            [again] = await send_all(sink, [envelope(bed, 1, send=2)])

            assert isinstance(again, Accepted)
            assert len(await bed.arrived(2)) == 2

    async def test_nothing_is_known_of_what_was_never_sent(self, bed: SinkBed) -> None:
        """A probe that guesses would lose work, or repeat it."""
        async with opened(bed) as sink:
            found = await sink.probe([envelope(bed, 1), envelope(bed, 2)])

            assert len(found) == 2
            assert {probed.fate for probed in found} <= {NOT_STARTED, UNKNOWN}

    async def test_what_was_taken_is_never_called_not_started(self, bed: SinkBed) -> None:
        """Whoever hears "not started" sends again."""
        async with opened(bed) as sink:
            message = envelope(bed, 1)
            await send_all(sink, [message])
            [probed] = await sink.probe([message])

            assert isinstance(probed, Probed)
            assert probed.fate != NOT_STARTED

    async def test_sends_at_the_same_time_do_not_mix(self, bed: SinkBed) -> None:
        """Each call gets the receipts of its own messages."""
        async with opened(bed) as sink:
            size = min(sink.max_batch, 5)
            batches = [[envelope(bed, 10 * b + n) for n in range(size)] for b in range(8)]
            async with asyncio.TaskGroup() as tasks:
                sending = [tasks.create_task(send_all(sink, batch)) for batch in batches]

            assert [len(task.result()) for task in sending] == [size] * 8
            came = [one.id for one in await bed.arrived(8 * size)]
            assert sorted(came) == sorted(message.id for batch in batches for message in batch)

    async def test_a_send_that_is_given_up_leaves_the_sink_usable(self, bed: SinkBed) -> None:
        """The caller limits the time by cancelling."""
        stalled = bed.stall()
        if stalled is None:
            pytest.skip("this kind cannot be kept waiting")
        async with opened(bed) as sink:
            with stalled:
                async with asyncio.TaskGroup() as tasks:
                    sending = tasks.create_task(sink.send([envelope(bed, 1)]))
                    await bed.arrived(1)
                    sending.cancel()
            assert sending.cancelled()

            [receipt] = await sink.send([envelope(bed, 2)])

            assert isinstance(receipt, Accepted)
            assert (await bed.arrived(2))[-1].id == envelope(bed, 2).id

    async def test_nothing_is_accepted_when_nobody_is_there(self, bed: SinkBed) -> None:
        """It says so, message by message or for the whole batch."""
        async with opened(bed) as sink:
            if not await bed.break_down():
                pytest.skip("this kind is always there")
            try:
                receipts = await sink.send([envelope(bed, 1)])
            except Exception:  # noqa: BLE001 - whatever it raises, it is not a yes
                return
            assert not [receipt for receipt in receipts if isinstance(receipt, Accepted | Duplicate)]

    async def test_it_can_be_closed_twice(self, bed: SinkBed) -> None:
        """Whoever shuts down must not have to know who did before."""
        async with opened(bed) as sink:
            await sink.send([envelope(bed, 1)])
            await sink.close()

    async def test_two_of_them_do_not_disturb_each_other(self, bed: SinkBed) -> None:
        """Closing one leaves the other at work."""
        async with opened(bed) as first, opened(bed) as second:
            await first.send([envelope(bed, 1)])
            await first.close()
            [receipt] = await second.send([envelope(bed, 2)])

            assert isinstance(receipt, Accepted)
