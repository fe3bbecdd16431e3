"""What once failed is run again, always."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from penstock.testing.sim.families import FAMILIES
from tests.sim.seeds import run_or_explain

CORPUS = (Path(__file__).parent / "corpus.txt").read_text().splitlines()
SEEDS = [line.split()[:2] for line in CORPUS if line and not line.startswith("#")]


@pytest.mark.parametrize(("family", "seed"), SEEDS)
def test_it_stays_mended(family: str, seed: str) -> None:
    assert run_or_explain(family, int(seed)) == run_or_explain(family, int(seed))


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES)
def test_many_seeds_of_today(family: str) -> None:
    """Ten thousand seeds a day, other ones every day; the first is part of a failure's command."""
    first = (datetime.now(UTC).date() - date(2026, 1, 1)).days * 10_000
    for seed in range(first, first + 10_000):
        run_or_explain(family, seed)
