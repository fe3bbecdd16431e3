"""A node that leaves takes nothing with it."""

import random
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from penstock.ports.sink import Sink, SinkUnavailable
from penstock.scheduler.ground import Ground
from penstock.scheduler.leader import ROLE
from penstock.scheduler.node import Node, NodeOptions
from penstock.testing.sim.engine import Stoppable
from penstock.testing.sim.faults import FaultPlan
from penstock.testing.sim.world import NodeEnv, World
from tests.api.conftest import memory_store

TTL = timedelta(minutes=1)
EAGER = NodeOptions(leader_ttl=TTL, leader_every=timedelta(milliseconds=1))


@pytest.mark.parametrize("seed", range(10))
def test_whoever_comes_next_leads_at_once(seed: int) -> None:
    """A leader that resigned while its service still ran was elected once more, and left with that term."""
    store = memory_store()

    async def no_sink(name: str) -> Sink:
        raise SinkUnavailable(name)

    async def main(env: NodeEnv) -> None:
        ground = Ground(store, env.executor, env.clock, env.rng, lambda _: None)

        def beside(name: str, what: Callable[[Ground], Coroutine[Any, Any, None]]) -> Stoppable:
            return Stoppable(env.beside(name, partial(what, ground)))

        await Node(ground, no_sink, beside, EAGER, stop=env.stop, hurry=env.hurry).run()

    with World(seed, FaultPlan()) as world:
        world.spawn_node("a", main)
        world.loop.call_later(random.Random(seed).uniform(0.5, 1.0), world.ask_to_stop, "a")  # noqa: S311
        world.run()

    next_one = store.register_node("b")
    term = store.elect(ROLE, next_one, TTL)
    assert term is not None
    assert term.number > 1, "somebody led before"
