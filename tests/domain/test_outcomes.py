"""What a sink's answer means under a lane's policy."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.outcomes import (
    Accepted,
    Dead,
    Deferred,
    Dispatched,
    Duplicate,
    Failed,
    Outcome,
    Policy,
    Receipt,
    Rejected,
    Returned,
    Succeeded,
    Throttled,
    TryAgain,
    Unknown,
    Unsent,
    failed,
    outcome_of,
)
from penstock.domain.retry import RetrySchedule
from penstock.domain.states import Reason

MINUTE = timedelta(minutes=1)
THREE = RetrySchedule.parse(["0s", "1m", "5m"])


def meaning(
    receipt: Receipt,
    *,
    ack: timedelta | None = None,
    passes: bool = False,
    attempt: int = 0,
    max_attempts: int | None = None,
) -> Outcome:
    policy = Policy(THREE, ack=ack, passes=passes)
    return outcome_of(receipt, policy=policy, attempt=attempt, max_attempts=max_attempts, random=0)


@pytest.mark.parametrize("receipt", [Accepted("m-1"), Duplicate("m-1")])
def test_taken_is_done_where_sent_is_done(receipt: Receipt) -> None:
    assert meaning(receipt) == Succeeded(receipt="m-1")


def test_what_did_not_go_out_is_as_if_it_had_not_been_claimed() -> None:
    assert meaning(Unsent("no place", MINUTE)) == Returned("no place", MINUTE)


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("receipt", [Accepted("m-1"), Duplicate("m-1")])
def test_taken_waits_for_a_report_where_one_will_come(receipt: Receipt, *, passes: bool) -> None:
    assert meaning(receipt, ack=MINUTE, passes=passes) == Dispatched(MINUTE, receipt="m-1", passes=passes)


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [(0, Failed("no", MINUTE)), (1, Failed("no", 5 * MINUTE)), (2, Dead(Reason.EXHAUSTED, "no"))],
)
def test_a_failure_is_tried_again_as_the_schedule_says(attempt: int, expected: Outcome) -> None:
    assert meaning(TryAgain("no"), attempt=attempt) == expected
    unknown = replace(expected, known=False) if isinstance(expected, Failed) else expected
    assert meaning(Unknown("no"), attempt=attempt) == unknown


@pytest.mark.parametrize(
    ("attempt", "own", "dead"), [(0, 1, True), (0, 2, False), (2, 4, False), (3, 4, True), (9, 4, True)]
)
def test_a_jobs_own_number_of_attempts_counts(attempt: int, own: int, *, dead: bool) -> None:
    assert isinstance(meaning(TryAgain("no"), attempt=attempt, max_attempts=own), Dead) is dead


def test_a_rejection_is_final_and_says_why() -> None:
    assert meaning(Rejected("no such queue")) == Dead(Reason.PERMANENT, "no such queue")
    assert meaning(Rejected("4 MiB", Reason.TOO_LARGE)) == Dead(Reason.TOO_LARGE, "4 MiB")


def test_throttling_costs_no_attempt() -> None:
    assert meaning(Throttled(MINUTE, "429"), attempt=99) == Deferred(MINUTE, "429")


@given(
    st.integers(0, 20),
    st.none() | st.integers(1, 20),
    st.floats(0, 1, exclude_max=True, allow_nan=False),
)
def test_attempts_never_exceed_their_number_and_never_come_early(
    attempt: int, own: int | None, random: float
) -> None:
    policy = Policy(THREE)
    outcome = failed("no", policy=policy, attempt=attempt, max_attempts=own, random=random)

    if attempt + 1 >= (own or 3):
        assert outcome == Dead(Reason.EXHAUSTED, "no")
    else:
        assert isinstance(outcome, Failed)
        assert outcome.delay >= THREE.delay_before(attempt + 2, random=0)
