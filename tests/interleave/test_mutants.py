"""A harness that finds nothing proves nothing: each of these small mistakes is found within a few seeds.

Not found: `ABSORB` that overwrites `next_at` instead of taking the earlier one. It goes wrong only when
another session gets between the snapshot of a statement and its first lock, and a statement is the smallest
step here. Nor is a `RELEASE_GROUPS` that forgets to look for jobs, which is harmless: whoever changes a job
of such a group leaves a wake, and that makes the group again.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

import pytest

from penstock.stores.postgres import statements
from penstock.stores.sql import enqueue, housekeeping, reports, settle, verbs
from tests.conftest import PgServer
from tests.interleave import scenarios
from tests.interleave.world import Bench, InterleavingError, Scenario, bench

SEEDS = 60


class Mutant(NamedTuple):
    """A constant with one thing changed, and the scenario that is meant to find it."""

    name: str
    module: ModuleType
    constant: str
    edits: Sequence[tuple[str, str]]
    scenario: Scenario

    def planted(self) -> str:
        """Return the statement with the mistake in it."""
        text: str = getattr(self.module, self.constant)
        for right, wrong in self.edits:
            assert text.count(right) >= 1, f"{self.constant} has changed: {right!r} is not in it"
            text = text.replace(right, wrong)
        return text


MUTANTS = [
    Mutant(
        "a takeover leaves the groups to the old holder",
        statements,
        "HAND_OVER_GROUPS",
        [("SET claim = %(new)s::bigint", "SET claim = g.claim + 0 * %(new)s::bigint")],
        scenarios.a_late_settle_meets_a_takeover,
    ),
    Mutant(
        "a takeover does not fence the old holder",
        reports,
        "TAKE_OVER",
        [("SET id = :new,", "SET id = id + 0 * :new,")],
        scenarios.a_late_settle_meets_a_takeover,
    ),
    Mutant(
        "a holder that lost its claim still releases the groups",
        statements,
        "LOCK_IF_CLOSED",
        [("g.claim = %(epoch)s::bigint", "g.claim >= %(epoch)s::bigint")],
        scenarios.a_late_settle_meets_a_takeover,
    ),
    Mutant(
        "a whole settle overwrites what a report settled",
        statements,
        "SETTLE",
        [(" AND settled IS NULL", "")],
        scenarios.a_report_meets_a_settle_as_a_whole,
    ),
    Mutant(
        "a claim is read without a lock",
        statements,
        "LOCKED_CLAIM",
        [(" FOR UPDATE", "")],
        scenarios.a_claim_is_settled_in_parts,
    ),
    Mutant(
        "a group in a claim is leased again",
        statements,
        "LEASE",
        [("int AND claim IS NULL AND", "int AND"), ("WHERE claim IS NULL AND ctid", "WHERE ctid")],
        scenarios.claimers_meet_while_jobs_arrive,
    ),
    Mutant(
        "a group is released without its lock",
        statements,
        "LOCK_IF_CLOSED",
        [("FOR NO KEY UPDATE", "")],
        scenarios.a_group_is_paused_during_a_claim,
    ),
    Mutant(
        "absorbing drops a group that is in a claim",
        statements,
        "ABSORB",
        [("AND g.claim IS NULL AND", "AND")],
        scenarios.a_group_is_emptied_behind_a_claim,
    ),
    Mutant(
        "nobody is woken",
        statements,
        "WAKE",
        [("unnest(%(groups)s::text[])", "unnest(%(groups)s::text[]) LIMIT 0")],
        scenarios.a_report_meets_the_holders_word,
    ),
    Mutant(
        "a run with a gap is sent",
        statements,
        "RUNS",
        [("(SELECT count(*) FROM f) AS wanted", "0 AS wanted")],
        scenarios.an_operator_reaches_into_a_run,
    ),
    Mutant(
        "a group's dead jobs are counted before its lock is had",
        verbs,
        "LOCK_GROUP",
        [(" FOR UPDATE", "")],
        scenarios.a_dead_head_is_resolved_while_another_job_dies,
    ),
    Mutant(
        "a replay does not keep claimers away",
        verbs,
        "LOCK_GROUP",
        [(" FOR UPDATE", "")],
        scenarios.a_replay_meets_a_claim_behind_it,
    ),
    Mutant(
        "the last dead job passes for the first",
        settle,
        "EARLIEST_DEAD",
        [("WHERE t.dead_arrival IS NULL", "WHERE t.dead_arrival IS NOT NULL OR t.dead_arrival IS NULL")],
        scenarios.a_dead_head_is_dropped_while_another_job_dies,
    ),
    Mutant(
        "dead jobs are dropped while they are replayed",
        housekeeping,
        "OLD_DEAD",
        [(" FOR UPDATE SKIP LOCKED", "")],
        scenarios.a_dead_job_is_dropped_while_it_is_replayed,
    ),
    Mutant(
        "a key is taken from whoever has it",
        enqueue,
        "TAKE_KEY",
        [(" AND id = :owner", " AND :owner <> ''")],
        scenarios.two_callers_find_a_key_free,
    ),
]


@pytest.fixture(scope="module")
def pg18_bench(pg_server: PgServer) -> Iterator[Bench]:
    with bench(pg_server(18)) as made:
        yield made


def found_after(made: Bench, scenario: Scenario) -> int | None:
    """Return how many seeds it took to find something wrong."""
    for seed in range(SEEDS):
        try:
            made.play(scenario, seed)
        except InterleavingError:
            return seed + 1
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_mistake_is_found(
    pg18_bench: Bench, mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(mutant.module, mutant.constant, mutant.planted())
        assert found_after(pg18_bench, mutant.scenario) is not None
