"""A crash before and after every call of a small scenario of each family; for pauses see test_pause_sweep."""

import pytest

from penstock.testing.sim.families import STORE_FAMILIES
from penstock.testing.sim.faults import CRASHES, Port
from tests.sim.seeds import sweep_all


@pytest.mark.parametrize("port", list(Port), ids=lambda port: port.value)
@pytest.mark.parametrize("family", STORE_FAMILIES)
def test_no_crash_at_any_call_breaks_a_promise(family: str, port: Port) -> None:
    sweep_all(family, port, CRASHES)
