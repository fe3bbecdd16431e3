"""Thousands of groups that wait: they hide none that is free, and break no promise."""

from tests.sim.seeds import run_or_explain

LARGE = 193  # a seed that draws thousands; of those that `make test` runs anyway none may


def test_the_engine_keeps_every_promise_among_thousands_of_groups() -> None:
    result = run_or_explain("many_groups", LARGE, engine=True)

    assert result.jobs > 2_000
