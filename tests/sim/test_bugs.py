"""Every planted bug is found soon, and the code as it is passes the seed that found it."""

import click
import pytest

from penstock.domain import settlement
from penstock.stores.sql import settle
from penstock.testing.sim.bugs import BUGS
from penstock.testing.sim.families import STORE_FAMILIES
from penstock.testing.sim.plant import Bug, Edit, EditDoesNotFit, Found, hunt, planted
from penstock.testing.sim.run import run_seed

SHORT = range(150)
LONG = range(400)


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


@pytest.mark.soak
def test_how_long_each_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints a table: with everything, without zombies, from outside alone, and by any other family."""
    missed = []
    with capsys.disabled():
        click.echo(
            f"\n{'bug':62}{'family':16}{'seeds':>6} {'as':14}{'no pauses':>10}{'outside':>9}  {'others'}"
        )
        for bug in BUGS:
            own = hunt(bug, LONG, families=[bug.family])
            calm = hunt(bug, LONG, families=[bug.family], pauses=False)
            outside = hunt(bug, LONG, families=[bug.family], blind=True)
            others = [
                name
                for name in STORE_FAMILIES
                if name != bug.family and hunt(bug, range(20), families=[name])
            ]
            click.echo(
                f"{bug.name:62}{bug.family:16}{_seeds(own):>6} {own.as_what if own else '':14}"
                f"{_seeds(calm):>10}{_seeds(outside):>9}  {', '.join(others)}"
            )
            missed += [] if own else [bug.name]
    assert missed == []


def _seeds(found: Found | None) -> str:
    return "-" if found is None else str(found.runs)
