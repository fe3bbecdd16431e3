"""What once failed is run again, always."""

from pathlib import Path

import pytest

from tests.sim.seeds import run_or_explain

CORPUS = (Path(__file__).parent / "corpus.txt").read_text().splitlines()
SEEDS = [line.split()[:2] for line in CORPUS if line and not line.startswith("#")]


@pytest.mark.parametrize(("family", "seed"), SEEDS)
def test_it_stays_mended(family: str, seed: str) -> None:
    assert run_or_explain(family, int(seed)) == run_or_explain(family, int(seed))
