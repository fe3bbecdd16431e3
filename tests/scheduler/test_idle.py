"""What a node asks of its store while there is nothing to do."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any

from penstock.domain.lanes import lane
from penstock.ports.sink import Sink, SinkUnavailable
from penstock.scheduler.ground import Ground
from penstock.scheduler.node import Node
from penstock.testing.sim.engine import Stoppable
from penstock.testing.sim.faults import FaultPlan, Port
from penstock.testing.sim.world import NodeEnv, World
from tests.api.conftest import memory_store

WARM_S, LOOK_S = 20, 60
A_HANDFUL = 8


def calls_per_second(lanes: int) -> float:
    """Return how many calls of the store one node makes, with the defaults of production."""
    store = memory_store()
    for number in range(lanes):
        store.put_lane(lane(f"idle-{number}"), actor="test")
    counted: list[int] = []

    async def main(env: NodeEnv) -> None:
        ground = Ground(store, env.executor, env.clock, env.rng, lambda _: None)

        def beside(name: str, chore: Callable[[Ground], Coroutine[Any, Any, None]]) -> Stoppable:
            return Stoppable(env.beside(name, partial(chore, ground)))

        async def open_sink(name: str) -> Sink:
            raise SinkUnavailable(name)

        node = Node(ground, open_sink, beside, stop=env.stop, hurry=env.hurry)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(node.run())
            for wait in (WARM_S, LOOK_S):
                await asyncio.sleep(wait)
                counted.append(world.calls[Port.STORE])
            node.stop.set()

    with World(1, FaultPlan()) as world:
        world.spawn_node("a", main)
        world.run(until=timedelta(seconds=2 * (WARM_S + LOOK_S)))
    return (counted[1] - counted[0]) / LOOK_S


def test_a_thousand_idle_lanes_cost_a_handful_of_calls_a_second() -> None:
    few, many = calls_per_second(1), calls_per_second(1_000)
    assert many <= A_HANDFUL
    assert many <= few + 1
