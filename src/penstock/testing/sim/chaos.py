"""The disasters of a plan: what strikes a world from outside, at any moment."""

import asyncio
import random
from typing import TYPE_CHECKING, assert_never

from penstock.testing.sim.faults import Disaster, FaultPlan, Span

if TYPE_CHECKING:
    from penstock.testing.sim.world import World

_BREATH = Span(0, 2)
_QUICK = Span(0, 0.5)


async def chaos(world: "World", rng: random.Random) -> None:
    """Let disasters strike as often as the plan says, until cancelled."""
    while (coming := world.plan.next_disaster(rng)) is not None:
        wait, disaster = coming
        await asyncio.sleep(wait.total_seconds())
        victims = world.up()
        if victims:
            await _strike(world, disaster, rng.choice(victims), rng)


async def _strike(world: "World", disaster: Disaster, victim: str, rng: random.Random) -> None:
    plan = world.plan
    match disaster:
        case Disaster.CRASH:
            world.lose(victim)
        case Disaster.STORM:
            await _storm(world, rng)
        case Disaster.PAUSE:
            world.pause(victim, plan.pause.draw(rng))
        case Disaster.BUSY:
            world.keep_busy(victim, plan.pause.draw(rng))
        case Disaster.CUT:
            world.cut_off(victim, plan.outage.draw(rng))
        case Disaster.OUTAGE:
            world.cut_off(None, plan.outage.draw(rng))
        case Disaster.FULL | Disaster.READ_ONLY:
            world.refuse_writes(disaster, plan.outage.draw(rng))
        case Disaster.NODE_CLOCK_STEP:
            world.step_clock(victim, plan.step.draw(rng))
        case Disaster.STORE_CLOCK_STEP:
            world.step_clock(None, plan.step.draw(rng))
        case Disaster.STORE_CLOCK_DRIFT:
            world.drift(_rate(plan, rng))
        case _:
            assert_never(disaster)


async def _storm(world: "World", rng: random.Random) -> None:
    """Crash one node after the other, each back within half a second: a crash loop, or a hasty rollout."""
    for _ in range(rng.randint(3, 8)):
        victims = world.up()
        if victims:
            world.lose(rng.choice(victims), back_after=_QUICK)
        await asyncio.sleep(_BREATH.draw(rng).total_seconds())


def _rate(plan: FaultPlan, rng: random.Random) -> float:
    return 1 + rng.uniform(-plan.drift, plan.drift)
