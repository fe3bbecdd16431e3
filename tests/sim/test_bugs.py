"""Every planted bug is found soon, and the code as it is passes the seed that found it."""

import pytest

from penstock.domain import settlement
from penstock.stores.sql import settle
from penstock.testing.sim.bugs import BUGS
from penstock.testing.sim.plant import Bug, Edit, EditDoesNotFit, hunt, planted
from penstock.testing.sim.run import run_seed

SHORT = range(200)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_it_is_found_and_is_the_bugs_own_doing(bug: Bug) -> None:
    found = hunt(bug, SHORT, families=[bug.family])

    assert found is not None, f"not found by {bug.family} in {len(SHORT)} seeds"
    run_seed(found.family, found.seed)


def test_a_planted_bug_leaves_no_trace() -> None:
    before = settle.settle, settle.land, vars(settlement)["_land"]
    for bug in BUGS:
        with planted(bug):
            pass

    assert (settle.settle, settle.land, vars(settlement)["_land"]) == before


def test_an_edit_that_fits_nothing_is_an_error() -> None:
    bug = Bug("?", "steady", [Edit("penstock.stores.sql.settle", "no such line", "")])

    with pytest.raises(EditDoesNotFit, match="found 0 times"), planted(bug):
        pass
