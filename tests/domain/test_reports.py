"""Executors' words and what they mean."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.domain.job import Live
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dead, Deferred, Failed, Outcome, Running, Succeeded
from penstock.domain.payloads import Json
from penstock.domain.reports import MAX_ERROR_CHARACTERS, MAX_RESULT_BYTES, Word, check_send, delay, meaning
from penstock.domain.states import JobState, Reason
from penstock.errors import InvalidJob

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def told(outcome: str, *, attempt: int = 0, max_attempts: int | None = None, **more: Any) -> Outcome:  # noqa: ANN401
    job = Live(
        arrival=1,
        lane=1,
        keep=7,
        mode=0,
        state=JobState.RUNNING,
        ord=99,
        grp=None,
        tenant=None,
        due_at=NOON,
        attempt=attempt,
        max_attempts=max_attempts,
    )
    settings = lane(
        "orders",
        retry=["0s", "1m"],
        run_timeout="2h",
        heartbeat="20s",
        retry_on="409, locked",
        give_up_on="404, unknown customer",
    )
    return meaning(Word(outcome=outcome, **more), job=job, lane=settings, random=0.5)


def test_a_start_gives_the_run_its_time() -> None:
    assert told("started") == Running(timedelta(hours=2))


def test_a_heartbeat_may_be_missed_twice() -> None:
    assert told("heartbeat") == Running(timedelta(seconds=60))


@pytest.mark.parametrize(
    ("result", "kept"), [(None, None), ({"n": 1}, '{"n":1}'), (Json(' {"n" : 1}'), ' {"n" : 1}')]
)
def test_success_keeps_its_result(result: object, kept: str | None) -> None:
    assert told("succeeded", result=result) == Succeeded(result=kept)


def test_a_failure_is_tried_again_as_the_lane_says() -> None:
    assert told("failed", error="boom") == Failed("boom", MINUTE * 1.05)


def test_a_failure_may_name_its_own_delay() -> None:
    assert told("failed", error="boom", after=MINUTE * 7) == Failed("boom", MINUTE * 7)


@pytest.mark.parametrize("after", [None, MINUTE])
def test_the_last_failure_is_death_whatever_it_asks_for(after: timedelta | None) -> None:
    assert told("failed", attempt=1, after=after) == Dead(Reason.EXHAUSTED, None)


def test_a_job_may_have_attempts_of_its_own() -> None:
    assert told("failed", max_attempts=1) == Dead(Reason.EXHAUSTED, None)


def test_a_failure_that_cannot_pass_is_death() -> None:
    assert told("failed", error="no such customer", retryable=False) == Dead(
        Reason.PERMANENT, "no such customer"
    )


@pytest.mark.parametrize("error", ["HTTP 404: no", "Unknown customer 7"])
def test_the_lane_may_give_up_where_the_executor_would_not(error: str) -> None:
    assert told("failed", error=error) == Dead(Reason.PERMANENT, error)


@pytest.mark.parametrize("error", ["409 conflict", "the row is LOCKED"])
def test_the_lane_may_try_again_where_the_executor_would_not(error: str) -> None:
    assert told("failed", error=error, retryable=False) == Failed(error, MINUTE * 1.05)
    assert told("failed", error=error, retryable=False, attempt=1) == Dead(Reason.EXHAUSTED, error)


def test_not_now_costs_nothing() -> None:
    assert told("deferred") == Deferred(timedelta(0))
    assert told("deferred", after=MINUTE, error="busy") == Deferred(MINUTE, "busy")


def test_an_ugly_error_is_kept_as_well_as_it_can_be() -> None:
    outcome = told("failed", error="a\0b\ud800" + "x" * MAX_ERROR_CHARACTERS, retryable=False)

    assert isinstance(outcome, Dead)
    assert outcome.error is not None
    assert outcome.error.startswith("a\ufffdb?xxx")
    assert len(outcome.error) == MAX_ERROR_CHARACTERS


@pytest.mark.parametrize(
    ("outcome", "more", "field"),
    [
        ("done", {}, "outcome"),
        ("failed", {"after": -MINUTE}, "after"),
        ("deferred", {"after": timedelta(days=366)}, "after"),
        ("failed", {"error": KeyError("x")}, "error"),
        ("succeeded", {"result": object()}, "result"),
        ("succeeded", {"result": Json("{")}, "result"),
        ("succeeded", {"result": "x" * MAX_RESULT_BYTES}, "result"),
    ],
)
def test_what_is_refused_is_named(outcome: str, more: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        told(outcome, **more)

    assert caught.value.field == field


def test_sends_are_counted_from_one() -> None:
    assert check_send(1) == 1
    for send in ("1", 0, 1 << 31, 1.0, True):
        with pytest.raises(InvalidJob, match="send"):
            check_send(send)


@pytest.mark.parametrize("after", ["5m", 300, 300.0, MINUTE * 5])
def test_a_delay_is_a_timedelta_seconds_or_text(after: object) -> None:
    assert delay(after) == MINUTE * 5


def test_no_delay_is_none() -> None:
    assert delay(None) is None


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("soon", "write seconds, or a duration like 30s"),
        (float("nan"), "write seconds, or a duration like 30s"),
        (1e300, "must be between 0 and 365 days"),
        (True, "give timedelta(minutes=5), 300 or 5m"),
        ([5], "give timedelta(minutes=5), 300 or 5m"),
    ],
)
def test_what_is_no_delay_is_refused_with_what_to_write(after: object, why: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        delay(after)
    assert refused.value.field == "after"
    assert why in str(refused.value)
