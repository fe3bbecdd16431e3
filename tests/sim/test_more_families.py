"""No seed of any family breaks a promise: the other half. Two files, for xdist gives a file to one worker."""

import pytest

from penstock.testing.sim.families import FAMILIES
from tests.sim.seeds import chunks, run_all


@pytest.mark.parametrize(("family", "seeds"), list(chunks(list(FAMILIES)[1::2])))
def test_the_engine_keeps_every_promise(family: str, seeds: range) -> None:
    run_all(family, seeds, engine=True)
