"""A node that sleeps through its lease, before and after every call, and wakes up as a zombie."""

import pytest

from penstock.testing.sim.families import STORE_FAMILIES
from penstock.testing.sim.faults import PAUSES, Port
from tests.sim.seeds import sweep_all

# Those whose calls are worth waking up in; the others are alike and swept by the soak.
TELLING = ("hot_group", "runs", "recovery_probe", "zombies")


@pytest.mark.parametrize("port", list(Port), ids=lambda port: port.value)
@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[] if f in TELLING else pytest.mark.soak) for f in STORE_FAMILIES]
)
def test_no_pause_at_any_call_breaks_a_promise(family: str, port: Port) -> None:
    sweep_all(family, port, PAUSES)
