"""Bugs planted in the engine are found soon, and the engine as it is passes the seed that found them.

The rare ones are hunted in test_soak.
"""

import pytest

from penstock.scheduler.flight import Flight
from penstock.scheduler.limits import Limits
from penstock.testing.sim.engine_bugs import ENGINE_BUGS
from penstock.testing.sim.plant import Bug, hunt, planted
from penstock.testing.sim.run import run_seed

SOON = 60


@pytest.mark.parametrize("bug", [bug for bug in ENGINE_BUGS if not bug.rare], ids=lambda bug: bug.name)
def test_it_is_found_and_is_the_bugs_own_doing(bug: Bug) -> None:
    found = hunt(bug, range(SOON), families=[bug.family])

    assert found is not None, f"not found by {bug.family} in {SOON} seeds"
    run_seed(found.family, found.seed, engine=True)


def test_a_planted_bug_leaves_no_trace() -> None:
    before = dict(vars(Flight)), dict(vars(Limits))
    for bug in ENGINE_BUGS:
        with planted(bug):
            pass

    assert (dict(vars(Flight)), dict(vars(Limits))) == before
