"""Threads that rest after they computed."""

import asyncio
from time import monotonic, thread_time

from penstock.ports.executor import ThreadExecutor

COMPUTES_S = 0.02


def _compute() -> float:
    began = thread_time()
    while thread_time() - began < COMPUTES_S:
        pass
    return thread_time()


async def test_a_thread_that_is_asked_on_and_on_rests_in_between() -> None:
    with ThreadExecutor(1, rest=3.0) as executor:
        began = monotonic()
        await executor.run(_compute)
        first = monotonic() - began
        for _ in range(2):
            await executor.run(_compute)
        took = monotonic() - began

    assert took - first >= 2 * 4 * COMPUTES_S


async def test_what_one_thread_computed_all_of_them_rest_for() -> None:
    """Of the half an hour that each of these calls is worth, every thread rests its part."""
    threads = 100_000
    with ThreadExecutor(threads, rest=float(threads)) as executor:
        began = monotonic()
        for _ in range(3):
            await executor.run(_compute)
        took = monotonic() - began

    assert took >= (3 + 2) * COMPUTES_S


async def test_a_thread_that_nobody_asked_has_rested_ahead() -> None:
    """An hour's worth of rest follows each call, and more was there before than the machine is up."""
    spare = monotonic() + 24 * 3_600.0
    with ThreadExecutor(1, rest=3_600 / COMPUTES_S, spare=spare) as executor:
        for _ in range(3):
            await executor.run(_compute)


async def test_waiting_is_no_computing() -> None:
    """A call that waits for a database leaves the others their turn by itself."""
    with ThreadExecutor(1, rest=1_000_000.0) as executor:
        assert await executor.run(lambda: asyncio.run(asyncio.sleep(0, "slept"))) == "slept"
    with ThreadExecutor(1) as executor:
        assert [await executor.run(_compute) > 0 for _ in range(2)] == [True, True]
