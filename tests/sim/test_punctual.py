"""Jobs for which a node has no room ahead of their time go at their time all the same."""

import random

import pytest

from penstock.testing.sim.actors import Offer
from penstock.testing.sim.bed import shared_bed
from penstock.testing.sim.faults import FaultPlan
from penstock.testing.sim.run import prepare
from penstock.testing.sim.scenario import Sketch
from penstock.testing.sim.world import World

LEGS_S = 0.04  # the ways to the store, there and back, that lie between a job's time and its call


@pytest.mark.parametrize("mode", ["immediate", "block_on_error"])
@pytest.mark.parametrize("held", [4, 3], ids=["none left", "one left"])
def test_a_job_that_is_due_sooner_than_what_is_held_is_not_late(mode: str, held: int) -> None:
    """They went when the lane looked anyway, which is every second."""
    sketch = Sketch(random.Random(0))  # noqa: S311
    sketch.lane(lookahead="60s", batch_size=4, mode=mode, retry='["0s"]')
    far = [sketch.job(group=f"far {n}", run_at=sketch.later(50)) for n in range(held)]
    near = [sketch.job(group=f"near {n}", run_at=sketch.later(3 + 1.13 * n)) for n in range(8)]
    due = {job.payload: job.run_at for job in near}
    offers = [Offer(0.1, far), *(Offer(2 + 0.5 * n, [job]) for n, job in enumerate(near))]
    with World(1, FaultPlan()) as world:
        run = prepare(world, sketch.scenario(offers, nodes=1, duration=20.0), shared_bed())
        run.engine = True
        run.start()
        run.finish()
        sent = {seen.payload: seen.clock for seen in run.log.deliveries if seen.payload in due}

    late = [(sent[payload] - at).total_seconds() for payload, at in due.items()]
    assert all(0 <= seconds < LEGS_S for seconds in late), late
