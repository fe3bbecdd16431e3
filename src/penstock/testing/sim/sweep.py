"""A fault at every place a small scenario has, one run each: nothing is left to luck but the place itself."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from penstock.testing.sim.actors import Offer
from penstock.testing.sim.bed import shared_bed
from penstock.testing.sim.families import FAMILIES
from penstock.testing.sim.faults import CRASHES, PAUSES, CallFault, FaultPlan, Port, Span, call_sweep
from penstock.testing.sim.run import Result, run_scenario
from penstock.testing.sim.scenario import Scenario

JOBS: Final = 5
WITHIN: Final = 0.8
SECONDS: Final = 3.5
KINDS: Final = (*CRASHES, *PAUSES)


def small(family: str, seed: int = 0) -> Scenario:
    """Return a family's scenario with few jobs, which come soon."""
    scenario = FAMILIES[family](random.Random(f"{family}/small/{seed}"))  # noqa: S311 - it has to be repeatable
    left = JOBS
    producers = []
    for offers in scenario.producers:
        few = []
        for offer in offers:
            jobs = list(offer.jobs)[:left]
            left -= len(jobs)
            few += [Offer(min(offer.at, WITHIN), jobs)] if jobs else []
        producers.append(few)
    return replace(scenario, producers=producers, nodes=2, duration=SECONDS)


def plans(
    family: str, *, port: Port, kinds: Sequence[CallFault] = KINDS, seed: int = 0, engine: bool = False
) -> Iterator[FaultPlan]:
    """Yield a plan for every call the undisturbed scenario makes, and for each kind of fault.

    A node that crashes is soon back; one that is paused wakes up when its lease is long over.
    """
    base = FaultPlan(sends=small(family, seed).sends, restart=Span(0.3, 0.3), pause=Span(3, 3))
    undisturbed = run_small(family, base, seed=seed, engine=engine)
    calls = undisturbed.store_calls if port is Port.STORE else undisturbed.network_calls
    return call_sweep(calls, kinds, port=port, base=base)


def run_small(family: str, plan: FaultPlan, *, seed: int = 0, engine: bool = False) -> Result:
    """Run the small scenario under a plan."""
    return run_scenario(family, seed, small(family, seed), plan, shared_bed(), engine=engine)
