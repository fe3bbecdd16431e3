"""A crash, or a pause that outlasts the lease, before and after calls of a small scenario of each family."""

import pytest

from penstock.testing.sim.families import FAMILIES
from penstock.testing.sim.faults import CRASHES, PAUSES, Port
from tests.sim.seeds import sweep

STORE_POINTS = 20
NETWORK_POINTS = 8


@pytest.mark.parametrize("family", FAMILIES)
def test_no_crash_of_a_node_breaks_a_promise(family: str) -> None:
    sweep(family, Port.STORE, CRASHES, engine=True, most=STORE_POINTS)
    sweep(family, Port.NETWORK, CRASHES, engine=True, most=NETWORK_POINTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_pause_of_a_node_breaks_a_promise(family: str) -> None:
    sweep(family, Port.STORE, PAUSES, engine=True, most=STORE_POINTS)
    sweep(family, Port.NETWORK, PAUSES, engine=True, most=NETWORK_POINTS)
