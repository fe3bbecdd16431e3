"""A node that stood still must not take its targets for silent, nor what it knew before for what is."""

import asyncio
from datetime import timedelta
from typing import Final

import pytest

from penstock.scheduler.board import LOOKS, OLD_S, Board
from penstock.scheduler.ground import Ground
from penstock.scheduler.pulse import ASLEEP_S, EVERY_S, Pulse
from penstock.testing.sim.faults import CallFault, FaultPlan, Port, Span
from penstock.testing.sim.world import NodeEnv, World
from tests.api.conftest import memory_store

TIMEOUT_S: Final = 15.0


def pulse_of(env: NodeEnv) -> Pulse:
    return Pulse(Ground(memory_store(), env.executor, env.clock, env.rng, lambda _: None))


def slept_through(freeze_at: float, seconds: float, seed: int) -> bool:
    """Say what the pulse makes of a call that got no answer, by a node that was frozen meanwhile."""
    heard: list[bool] = []

    async def main(env: NodeEnv) -> None:
        pulse = pulse_of(env)
        stop, started = asyncio.Event(), env.clock.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pulse.run(stop))
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await asyncio.Event().wait()
            except TimeoutError:
                heard.append(pulse.stood_still(since=started))
            stop.set()

    with World(seed, FaultPlan()) as world:
        world.spawn_node("a", main)
        if seconds:
            world.loop.call_later(freeze_at, world.pause, "a", timedelta(seconds=seconds))
        world.run()
    return heard[0]


@pytest.mark.parametrize("seconds", [2.0, 14.6, 14.9, 15.5, 60.0])
def test_a_silence_that_was_slept_through_is_none(seconds: float) -> None:
    """However near to the time-out it wakes, and whatever of pulse and time-out comes first then."""
    assert {slept_through(0.3, seconds, seed) for seed in range(20)} == {True}


@pytest.mark.parametrize("seconds", [0.0, ASLEEP_S - EVERY_S - 0.01])
def test_a_silence_that_was_listened_to_is_one(seconds: float) -> None:
    assert {slept_through(14.7, seconds, seed) for seed in range(20)} == {False}


def test_a_sleep_before_the_call_does_not_matter() -> None:
    async def main(env: NodeEnv) -> None:
        pulse = pulse_of(env)
        pulse.beat()
        await asyncio.sleep(ASLEEP_S * 2)
        pulse.beat()
        await asyncio.sleep(EVERY_S)
        assert pulse.stood_still(since=0.0)
        assert not pulse.stood_still(since=env.clock.monotonic())

    with World(1, FaultPlan()) as world:
        world.spawn_node("a", main)
        world.run()


def test_settings_that_were_seen_before_a_sleep_are_not_those_of_now() -> None:
    """A node that woke with them claimed by them: a limit may have been lowered long ago."""
    seen: list[bool] = []

    async def main(env: NodeEnv) -> None:
        board = Board(Ground(memory_store(), env.executor, env.clock, env.rng, lambda _: None))
        for _ in range(2):
            assert board.blind
            seen.append(await board.refresh())
            assert board.blind == seen[-1]
        await asyncio.sleep(OLD_S * 2)
        assert board.blind

    asleep = FaultPlan(exact={(Port.STORE, 1): CallFault.PAUSE_AFTER}, pause=Span(20, 20))
    with World(1, asleep) as world:
        world.spawn_node("a", main)
        world.run()

    assert seen == [True, False]


def test_settings_of_a_store_that_is_far_away_are_known() -> None:
    """A look takes longer than settings are trusted where it is near: the node is slow, but it sends."""
    blind: list[bool] = []
    seconds = 3.0

    async def main(env: NodeEnv) -> None:
        board = Board(Ground(memory_store(), env.executor, env.clock, env.rng, lambda _: None))
        for _ in range(6):
            await board.refresh()
            await asyncio.sleep(0.5)
            blind.append(board.blind)
        await asyncio.sleep(seconds * LOOKS + OLD_S)
        assert board.blind

    with World(1, FaultPlan(latency=Span(seconds, seconds))) as world:
        world.spawn_node("a", main)
        world.run()

    assert blind == [True] * (LOOKS - 1) + [False] * (7 - LOOKS)
