"""Unordered jobs go oldest first, as far as nodes that know nothing of each other can keep to it."""

import random

import pytest

from penstock.testing.sim.bed import shared_bed
from penstock.testing.sim.faults import FaultPlan
from penstock.testing.sim.run import prepare
from penstock.testing.sim.scenario import Sketch
from penstock.testing.sim.world import World

RATE, NODES, JOBS = 4, 3, 80


@pytest.mark.parametrize("seed", range(3))
def test_a_rate_of_the_lane_lets_the_oldest_go_first(seed: int) -> None:
    sketch = Sketch(random.Random(seed)).lane(rate=f"{RATE}/s", batch_size=50, lease="30s")  # noqa: S311
    offers = sketch.offers([sketch.job() for _ in range(JOBS)], within=0.1, together=1)
    scenario = sketch.scenario(offers, nodes=NODES, duration=JOBS / RATE)

    with World(seed, FaultPlan()) as world:
        run = prepare(world, scenario, shared_bed())
        run.engine = True
        run.start()
        run.finish()

    arrivals = [run.watch.model.arrivals[delivery.job] for delivery in run.log.deliveries]
    assert len(arrivals) == JOBS
    overtaken = [sum(other > arrival for other in arrivals[:at]) for at, arrival in enumerate(arrivals)]
    # At most what the others have in hand: a burst and their part of a second, each.
    assert max(overtaken) <= NODES * (RATE + RATE), overtaken
