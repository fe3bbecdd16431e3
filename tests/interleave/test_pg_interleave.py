"""Whatever the order in which several nodes' statements reach PostgreSQL, the promises hold."""

import os
from collections.abc import Iterable, Iterator

import pytest

from tests.conftest import PgServer
from tests.interleave.scenarios import SCENARIOS
from tests.interleave.world import Bench, Scenario, bench

SEEDS = 12
SOAK_SEEDS = 500


@pytest.fixture(scope="module")
def pg18_bench(pg_server: PgServer) -> Iterator[Bench]:
    with bench(pg_server(18)) as made:
        yield made


def seeds(count: int) -> Iterable[int]:
    """The first seeds, or the one that INTERLEAVE_SEED names."""
    chosen = os.environ.get("INTERLEAVE_SEED")
    return range(count) if chosen is None else [int(chosen)]


def by_name(scenario: Scenario) -> str:
    return scenario.__name__


@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_every_interleaving_keeps_the_promises(pg18_bench: Bench, scenario: Scenario) -> None:
    for seed in seeds(SEEDS):
        pg18_bench.play(scenario, seed)


@pytest.mark.soak
@pytest.mark.parametrize("version", [15, 18])
def test_many_interleavings_keep_the_promises(pg_server: PgServer, version: int) -> None:
    with bench(pg_server(version)) as made:
        for scenario in SCENARIOS:
            for seed in seeds(SOAK_SEEDS):
                made.play(scenario, seed)
