"""Places of a host: who waits for one, who is told to come again, and when."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from penstock.sinks.hosts import HostBusy, Hosts

LONG_S = 600.0


async def test_a_place_that_is_freed_goes_to_who_waits_for_it() -> None:
    hosts = Hosts(1, patience=LONG_S)
    order: list[str] = []
    asks = asyncio.Event()

    async def use() -> None:
        asks.set()
        async with hosts.place("a"):
            order.append("second")

    async with hosts.place("a"):
        second = asyncio.create_task(use())
        await asks.wait()
        order.append("first")
    await second
    assert order == ["first", "second"]


async def test_a_host_that_has_freed_no_place_for_long_is_not_waited_for() -> None:
    """Each that waits would hold a slot of the lane that a job for another host could use."""
    hosts = Hosts(2, patience=0.05)
    async with AsyncExitStack() as silent:
        for _ in range(2):
            await silent.enter_async_context(hosts.place("silent"))
        with pytest.raises(HostBusy, match="silent has 2 calls"):
            await silent.enter_async_context(hosts.place("silent"))
        turns = asyncio.create_task(_turns_of_the_loop())
        with pytest.raises(HostBusy):  # nobody waits for it a second time
            await silent.enter_async_context(hosts.place("silent"))
        assert not turns.done()
        async with hosts.place("another"):
            pass
    await turns
    async with hosts.place("silent"):
        pass


async def test_who_has_little_time_for_its_call_waits_for_less() -> None:
    """The time is for the call: one that ran out while it waited would pass for a call that failed."""
    hosts = Hosts(1, patience=LONG_S)
    async with hosts.place("a"):
        with pytest.raises(HostBusy):
            async with hosts.place("a", timedelta(milliseconds=10)):
                pass
    async with hosts.place("a", timedelta(milliseconds=10)):
        pass


async def _turns_of_the_loop() -> None:
    """Take as many turns as a wait of 50 ms has many times over, however slow the machine."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("silent_s", "rest_s"), [(0.0, 2), (1.0, 2), (3.5, 3.5), (60.0, 5)])
def test_a_host_rests_as_long_as_it_was_silent_within_reason(silent_s: float, rest_s: float) -> None:
    assert HostBusy("a", 1, silent_s).rest == timedelta(seconds=rest_s)


async def test_the_places_of_a_host_are_divided_among_the_nodes() -> None:
    """By themselves three nodes would have three times as many calls out to a host that hangs."""
    hosts = Hosts(7, patience=0.01)
    hosts.divide(3)
    async with AsyncExitStack() as silent:
        for _ in range(2):
            await silent.enter_async_context(hosts.place("silent"))
        with pytest.raises(HostBusy, match="silent has 2 calls"):
            await silent.enter_async_context(hosts.place("silent"))
        hosts.divide(2)
        await silent.enter_async_context(hosts.place("silent"))
        with pytest.raises(HostBusy, match="silent has 3 calls"):
            await silent.enter_async_context(hosts.place("silent"))
        hosts.divide(100)
        async with hosts.place("another"):
            with pytest.raises(HostBusy, match="another has 1 calls"):
                await silent.enter_async_context(hosts.place("another"))
