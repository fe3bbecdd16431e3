"""Which seeds the families run, and what a failure tells: the command that runs it again."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from penstock.testing.sim.faults import CallFault, Port
from penstock.testing.sim.run import Result, command, run_seed
from penstock.testing.sim.sweep import plans, run_small

FIRST: Final = int(os.environ.get("PENSTOCK_SEED", "0"))
PER_FAMILY: Final = int(os.environ.get("PENSTOCK_SEEDS", "75"))
CHUNK: Final = 25
TWICE: Final = 50


def chunks(families: list[str]) -> Iterator[ParameterSet]:
    """Yield the parameters of a test: a family and the seeds of one chunk."""
    for family in families:
        for start in range(FIRST, FIRST + PER_FAMILY, CHUNK):
            seeds = range(start, min(start + CHUNK, FIRST + PER_FAMILY))
            yield pytest.param(family, seeds, id=f"{family}-{seeds.start}-{seeds.stop - 1}")


def run_all(family: str, seeds: range) -> None:
    """Run the seeds; one in fifty twice, and it has to be the same run."""
    for seed in seeds:
        result = run_or_explain(family, seed)
        if seed % TWICE == 0:
            assert run_or_explain(family, seed) == result, f"not the same twice: {command(family, seed)}"


def run_or_explain(family: str, seed: int) -> Result:
    """Run one seed; a failure says how to see it again."""
    try:
        return run_seed(family, seed)
    except Exception as error:
        error.add_note(f"run it again: {command(family, seed)}")
        raise


def sweep_all(family: str, port: Port, kinds: Sequence[CallFault]) -> None:
    """Strike every call of the family's small scenario in each of these ways."""
    points = 0
    for plan in plans(family, port=port, kinds=kinds):
        run_small(family, plan)
        points += 1
    assert points > 0
