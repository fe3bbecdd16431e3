"""What takes long: twenty thousand seeds of the engine, every call of every small scenario, the bug banks."""

from datetime import UTC, date, datetime

import click
import pytest

from penstock.testing.sim.bugs import BUGS
from penstock.testing.sim.engine_bugs import ENGINE_BUGS
from penstock.testing.sim.families import FAMILIES, STORE_FAMILIES
from penstock.testing.sim.faults import CRASHES, PAUSES, CallFault, Port
from penstock.testing.sim.plant import Bug, Found, hunt
from tests.sim.seeds import run_all, sweep

pytestmark = pytest.mark.soak

SEEDS = 1_000
LONG = range(400)
GATE = 2_000


def _today() -> int:
    """Return the first seed of today: other ones every day; it is part of a failure's command."""
    return (datetime.now(UTC).date() - date(2026, 1, 1)).days * 10_000


@pytest.mark.parametrize("family", FAMILIES)
def test_many_seeds_of_the_engine(family: str) -> None:
    run_all(family, range(_today(), _today() + SEEDS), engine=True)


@pytest.mark.parametrize("family", STORE_FAMILIES)
def test_many_seeds_of_the_reference(family: str) -> None:
    run_all(family, range(_today(), _today() + SEEDS), engine=False)


@pytest.mark.parametrize("port", list(Port), ids=lambda port: port.value)
@pytest.mark.parametrize("kinds", [CRASHES, PAUSES], ids=["crash", "pause"])
@pytest.mark.parametrize("engine", [True, False], ids=["engine", "reference"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_fault_at_any_call_breaks_a_promise(
    family: str,
    *,
    engine: bool,
    kinds: tuple[CallFault, ...],
    port: Port,
) -> None:
    if engine or family in STORE_FAMILIES:
        sweep(family, port, kinds, engine=engine)


@pytest.mark.parametrize("bug", ENGINE_BUGS, ids=lambda bug: bug.name)
def test_every_bug_of_the_engine_is_found_by_any_seeds(bug: Bug) -> None:
    found = hunt(bug, range(GATE), families=[bug.family])

    assert found is not None, f"not found by {bug.family} in {GATE} seeds"


def test_how_long_each_bug_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints a table: with everything, without zombies, from outside alone, and by any other family."""
    missed = []
    with capsys.disabled():
        click.echo(
            f"\n{'bug':62}{'family':16}{'seeds':>6} {'as':14}{'no pauses':>10}{'outside':>9}  {'others'}"
        )
        for bug in (*BUGS, *ENGINE_BUGS):
            known = FAMILIES if bug.engine else STORE_FAMILIES
            own = hunt(bug, LONG, families=[bug.family])
            calm = hunt(bug, LONG, families=[bug.family], pauses=False)
            outside = hunt(bug, LONG, families=[bug.family], blind=True)
            others = [name for name in known if name != bug.family and hunt(bug, range(20), families=[name])]
            click.echo(
                f"{bug.name:62}{bug.family:16}{_seeds(own):>6} {own.as_what if own else '':14}"
                f"{_seeds(calm):>10}{_seeds(outside):>9}  {', '.join(others)}"
            )
            missed += [] if own or bug.engine else [bug.name]
    assert missed == []


def _seeds(found: Found | None) -> str:
    return "-" if found is None else str(found.runs)
