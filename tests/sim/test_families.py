"""No seed of any family breaks a promise: half of the families, the others are in test_more_families.py."""

import pytest

from penstock.testing.sim.families import FAMILIES
from tests.sim.seeds import chunks, run_all


@pytest.mark.parametrize(("family", "seeds"), list(chunks(list(FAMILIES)[0::2])))
def test_the_engine_keeps_every_promise(family: str, seeds: range) -> None:
    run_all(family, seeds, engine=True)
