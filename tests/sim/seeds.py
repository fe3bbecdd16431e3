"""Which seeds the families run, and what a failure tells: the command that runs it again."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from penstock.testing.sim.families import FAMILIES, STORE_FAMILIES
from penstock.testing.sim.faults import CallFault, Port
from penstock.testing.sim.run import Result, command, run_seed
from penstock.testing.sim.sweep import plans, run_small

# The same seeds every time: what turns a run red is then the change it tests. Other ones are the soak's.
START_SEED: Final = 0
FIRST: Final = int(os.environ.get("PENSTOCK_SEED", START_SEED))
PER_FAMILY: Final = int(os.environ.get("PENSTOCK_SEEDS", "50"))
REFERENCE: Final = 20
CHUNK: Final = 20
TWICE: Final = 50


def chunks(families: Sequence[str], *, per_family: int = PER_FAMILY) -> Iterator[ParameterSet]:
    """Yield the parameters of a test: a family and the seeds of one chunk."""
    for family in families:
        for start in range(FIRST, FIRST + per_family, CHUNK):
            seeds = range(start, min(start + CHUNK, FIRST + per_family))
            yield pytest.param(family, seeds, id=f"{family}-{seeds.start}-{seeds.stop - 1}")


def header() -> str:
    """Return what a run of the tests begins with: which seeds, and where they begin."""
    engine, reference = PER_FAMILY * len(FAMILIES), REFERENCE * len(STORE_FAMILIES)
    how_many = f"{engine:,} of the engine, {reference:,} of the reference"
    return f"simulation: start seed {FIRST} (PENSTOCK_SEED), {how_many}"


def run_all(family: str, seeds: range, *, engine: bool) -> None:
    """Run the seeds; one in fifty twice, and it has to be the same run."""
    for seed in seeds:
        result = run_or_explain(family, seed, engine=engine)
        if seed % TWICE == 0:
            again = command(family, seed, engine=engine)
            assert run_or_explain(family, seed, engine=engine) == result, f"not the same twice: {again}"


def run_or_explain(family: str, seed: int, *, engine: bool) -> Result:
    """Run one seed; a failure says how to see it again."""
    try:
        return run_seed(family, seed, engine=engine)
    except Exception as error:
        error.add_note(f"run it again: {command(family, seed, engine=engine)}")
        raise


def sweep(
    family: str, port: Port, kinds: Sequence[CallFault], *, engine: bool, most: int | None = None
) -> None:
    """Strike the calls of the family's small scenario in each of these ways: all, or at most so many."""
    found = list(plans(family, port=port, kinds=kinds, engine=engine))
    stride = 1 if most is None else -(-len(found) // most)
    assert found
    for plan in found[::stride]:
        try:
            run_small(family, plan, engine=engine)
        except Exception as error:
            error.add_note(f"{family}, small, {'engine' if engine else 'reference'}: {plan}")
            raise
