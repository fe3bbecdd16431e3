"""Since when a job has been in the way of others."""

from datetime import timedelta

import pytest

from penstock.domain.job import Attempt, Audit
from penstock.domain.standing import AROUND, holder_name, nearest, stuck_since
from penstock.domain.states import JobState
from tests.domain.jobs import NOW, job

AGO = NOW - timedelta(minutes=5)
HELD_BY_HAND = Audit(AGO, 7, 1, "ops", "hold", None, None, "wait")
TRIED = Attempt(
    arrival=7, keep=7, attempt=1, send=1, epoch=1, node=1, claimed_at=None, ended_at=AGO, outcome="lapsed",
    error=None, due_at=None,
)  # fmt: skip


def test_a_dead_job_since_it_died() -> None:
    assert stuck_since(job(JobState.DEAD).live, AGO, None, None) == AGO


def test_a_held_job_since_somebody_held_it_or_its_send_was_lost() -> None:
    unknown = job(JobState.HELD, reason="outcome_unknown")

    assert stuck_since(job(JobState.HELD).live, None, HELD_BY_HAND, None) == AGO
    assert stuck_since(job(JobState.HELD).live, None, None, None) is None
    assert stuck_since(unknown.live, None, None, TRIED) == AGO


@pytest.mark.parametrize("field", ["claimed_at", "sent_at", "started_at"])
def test_a_job_in_flight_since_it_went(field: str) -> None:
    assert stuck_since(job(JobState.RUNNING, **{field: AGO}).live, None, None, None) == AGO


def test_others_are_in_nobodys_way() -> None:
    assert stuck_since(job(JobState.PENDING).live, None, None, None) is None


def test_a_node_has_a_name_for_as_long_as_its_row_is_there() -> None:
    assert (holder_name(3, "vm:1"), holder_name(3, None)) == ("vm:1 (node 3)", "node 3")


def test_next_to_a_job_stand_those_before_and_behind_it_and_each_once() -> None:
    rows = [job(JobState.PENDING).live._replace(arrival=number, ord=0) for number in range(1, 12)]
    live = rows[5]

    found = nearest(live, [*reversed(rows), *rows])

    assert [row.arrival for row in found] == list(range(6 - AROUND, 6 + AROUND + 1))
    assert nearest(live, []) == [live]
