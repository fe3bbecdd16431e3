"""The store under the small reference dispatcher, which treats it worse than the engine ever would."""

import pytest

from penstock.testing.sim.families import STORE_FAMILIES
from penstock.testing.sim.faults import CRASHES, PAUSES, Port
from tests.sim.seeds import REFERENCE, chunks, run_all, sweep

POINTS = 24
# Those whose calls are worth waking up in; the others are alike and swept by the soak.
TELLING = ("hot_group", "runs", "recovery_probe", "zombies")


@pytest.mark.parametrize(("family", "seeds"), list(chunks(list(STORE_FAMILIES), per_family=REFERENCE)))
def test_every_promise_holds(family: str, seeds: range) -> None:
    run_all(family, seeds, engine=False)


@pytest.mark.parametrize("port", list(Port), ids=lambda port: port.value)
@pytest.mark.parametrize("family", STORE_FAMILIES)
def test_a_crash_breaks_no_promise(family: str, port: Port) -> None:
    sweep(family, port, CRASHES, engine=False, most=POINTS)


@pytest.mark.parametrize("port", list(Port), ids=lambda port: port.value)
@pytest.mark.parametrize("family", TELLING)
def test_a_pause_breaks_no_promise(family: str, port: Port) -> None:
    sweep(family, port, PAUSES, engine=False, most=POINTS)
