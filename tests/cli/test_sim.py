"""`penstock sim` runs seeds, and says how to see a failure again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.sim import sim
from penstock.testing.invariants.facts import Stuck


@contextmanager
def _every_run_fails(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(family: str, seed: int, *, engine: bool) -> None:
        assert engine
        error = Stuck("nothing moves")
        error.add_note(f"the journal of {family} {seed}")
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("penstock.cli.sim.run_seed", fail)
        yield


def test_it_runs_seeds_of_a_family() -> None:
    result = CliRunner().invoke(main, ["sim", "--seed", "7", "--seeds", "2", "--family", "steady", "--json"])

    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)
    assert (figures["family"], figures["seeds"]) == ("steady", 2)
    assert figures["deliveries"] >= figures["jobs"] > 0


def test_all_families_run_unless_one_is_named() -> None:
    result = CliRunner().invoke(sim, ["--seed", "3"])

    assert result.exit_code == 0, result.output
    assert [line.split(":")[0] for line in result.output.splitlines()][:2] == ["steady", "herd"]


def test_the_same_seed_leaves_the_same_trace() -> None:
    runs = [CliRunner().invoke(sim, ["--seed", "5", "--family", "keys", "--json"]).output for _ in range(2)]

    assert json.loads(runs[0])["trace"] == json.loads(runs[1])["trace"]


def test_a_failure_tells_the_journal_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with _every_run_fails(monkeypatch):
        result = CliRunner().invoke(sim, ["--seed", "4", "--family", "runs"])

    assert result.exit_code == 1
    assert "the journal of runs 4" in result.output
    assert "nothing moves" in result.output
    assert "penstock sim --seed 4 --family runs" in result.output
    assert "commit" in result.output or "penstock 0" in result.output


def test_the_reference_dispatcher_runs_the_families_that_are_about_the_store() -> None:
    result = CliRunner().invoke(sim, ["--seed", "3", "--family", "steady", "--reference"])
    refused = CliRunner().invoke(sim, ["--family", "pools", "--reference"])

    assert result.exit_code == 0, result.output
    assert refused.exit_code == 2
    assert "leave out --reference" in refused.output


def test_an_unknown_family_is_a_usage_error() -> None:
    assert CliRunner().invoke(sim, ["--family", "no-such-family"]).exit_code == 2
