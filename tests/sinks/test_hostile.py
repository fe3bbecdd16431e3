"""Whatever a receiver does, the sink stays within its time and its memory, and goes on."""

import asyncio
import io
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from penstock.domain.answers import KEPT
from penstock.domain.outcomes import Accepted, Receipt, Unknown
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Envelope, Sink, Supplies
from penstock.sinks.http import open_http
from penstock.testing.receiver import receiver
from tests.sinks import hostile as manners
from tests.sinks.hostile import Hostile, Manners, hostile

LIMIT_S = 0.3
MEMORY = 6 * 1024 * 1024
IN_FLIGHT = 16 * 1024 * 1024  # what two kernels may hold for a reader who has stopped


@pytest.fixture
async def sink(executor: ThreadExecutor) -> AsyncIterator[Sink]:
    supplies = Supplies(
        executor=executor, clock=SystemClock(), stream=io.StringIO(), allow_networks=["127.0.0.0/8"]
    )
    sink = await open_http({}, supplies)
    yield sink
    await sink.close()


def envelope(server: Hostile, number: int = 1) -> Envelope:
    return Envelope(f"01JOB{number}", 1, "orders", 1, '{"n": 1}', server.url)


async def still_works(sink: Sink) -> None:
    async with receiver() as received, asyncio.timeout(60):
        assert await sink.send([Envelope("01", 1, "l", 1, "{}", received.url)]) == [Accepted("200")]


@pytest.mark.parametrize(
    "behaviour",
    [manners.silent, manners.dripping, manners.dripping_head],
    ids=lambda value: value.__name__,
)
async def test_a_receiver_that_never_ends_is_cut_off_by_the_callers_limit(
    sink: Sink, behaviour: Manners
) -> None:
    async with hostile(behaviour) as server, asyncio.timeout(60):
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(sink.send([envelope(server)]))
            await server.met.wait()
            await asyncio.wait({sending}, timeout=LIMIT_S)
            assert sending.cancel()

        await server.victims[0].gone.wait()  # the connection is given up too
    assert sending.cancelled()
    await still_works(sink)


def kept(receipt: Receipt) -> str:
    """Return the status of an answer that was taken for yes; what is kept of it is short."""
    assert isinstance(receipt, Accepted)
    assert receipt.receipt is not None
    assert len(receipt.receipt) <= len("200 ") + KEPT
    return receipt.receipt.partition(" ")[0]


@pytest.mark.parametrize(
    "behaviour",
    [manners.endless_chunks, manners.huge_body, manners.huge_chunk],
    ids=lambda value: value.__name__,
)
async def test_of_an_endless_answer_only_the_beginning_is_read(sink: Sink, behaviour: Manners) -> None:
    """Its status counts: 200 means that it was taken."""
    async with hostile(behaviour) as server, asyncio.timeout(60):
        tracemalloc.start()
        receipts = await sink.send([envelope(server)])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await server.victims[0].gone.wait()

        assert kept(receipts[0]) == "200"
        assert server.sent < IN_FLIGHT
        assert peak < MEMORY
    await still_works(sink)


@pytest.mark.parametrize(
    "behaviour",
    [manners.endless_headers, manners.endless_line, manners.continues],
    ids=lambda value: value.__name__,
)
async def test_an_answer_that_never_begins_is_refused(sink: Sink, behaviour: Manners) -> None:
    async with hostile(behaviour) as server, asyncio.timeout(60):
        [receipt] = await sink.send([envelope(server)])
        await server.victims[0].gone.wait()

        assert isinstance(receipt, Unknown)
        assert server.sent < IN_FLIGHT
    await still_works(sink)


async def test_a_bomb_is_not_unpacked(sink: Sink) -> None:
    async with hostile(manners.bomb) as server, asyncio.timeout(60):
        tracemalloc.start()
        receipts = await sink.send([envelope(server)])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert receipts == [Accepted("200 (packed with gzip, not read)")]
        assert peak < MEMORY
        await sink.close()


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (manners.reset_in_the_body, "the answer broke off"),
        (manners.close_in_the_body, "the answer broke off"),
        (manners.reset_at_once, "no answer from 127.0.0.1:"),
        (manners.garbage, "no answer from 127.0.0.1:"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_after_an_answer_that_is_none_nobody_knows(sink: Sink, behaviour: Manners, error: str) -> None:
    async with hostile(behaviour) as server, asyncio.timeout(60):
        [receipt] = await sink.send([envelope(server)])

        assert isinstance(receipt, Unknown)
        assert error in receipt.error
        assert receipt.error.isprintable()
        assert len(receipt.error) < 600
    await still_works(sink)


async def test_an_answer_nobody_asked_for_is_not_taken_for_the_next(sink: Sink) -> None:
    async with hostile(manners.two_answers) as server, asyncio.timeout(60):
        for number in range(5):
            assert await sink.send([envelope(server, number)]) == [Accepted("200 ok")]
        await sink.close()


async def test_other_targets_do_not_notice(sink: Sink) -> None:
    """Fifty calls hang; a hundred to somebody else go through meanwhile."""
    async with hostile(manners.silent) as bad, receiver() as good, asyncio.timeout(60):
        async with asyncio.TaskGroup() as tasks:
            hanging = [tasks.create_task(sink.send([envelope(bad, number)])) for number in range(50)]
            for number in range(100):
                message = Envelope(f"01GOOD{number}", 1, "l", 1, "{}", good.url)
                assert await sink.send([message]) == [Accepted("200")]
            for task in hanging:
                task.cancel()

        assert all(task.cancelled() for task in hanging)
