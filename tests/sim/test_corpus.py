"""What once failed is run again, always."""

from pathlib import Path

import pytest

from tests.sim.seeds import run_or_explain

CORPUS = (Path(__file__).parent / "corpus.txt").read_text().splitlines()
LINES = [line.split()[:3] for line in CORPUS if line and not line.startswith("#")]


@pytest.mark.parametrize(("who", "family", "seed"), LINES)
def test_it_stays_mended(who: str, family: str, seed: str) -> None:
    engine = {"engine": True, "reference": False}[who]

    first, second = (run_or_explain(family, int(seed), engine=engine) for _ in range(2))
    assert first == second
