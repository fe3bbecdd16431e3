import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.durations import BadDuration
from penstock.domain.retry import (
    DEFAULT,
    JITTER,
    LONGEST_DELAY,
    MAX_ATTEMPTS,
    BadRetry,
    Curve,
    RetrySchedule,
    backoff,
    exhausted,
    lengthen,
)

SECOND = timedelta(seconds=1)
CURVE = {"first": "1s", "factor": 2, "max": "1h", "attempts": 8}

randoms = st.floats(0, 1, exclude_max=True)
delays = st.integers(0, LONGEST_DELAY // timedelta(milliseconds=1)).map(lambda n: timedelta(milliseconds=n))
listed = st.lists(delays, min_size=1, max_size=20).map(lambda entries: RetrySchedule(tuple(entries)))


@st.composite
def curves(draw: st.DrawFn) -> RetrySchedule:
    first, longest = sorted(draw(st.tuples(delays.filter(bool), delays.filter(bool))))
    factor = draw(st.floats(1, 1_000) | st.integers(1, 1_000))
    return RetrySchedule(Curve(first, factor, longest, draw(st.integers(1, MAX_ATTEMPTS))))


schedules = listed | curves()


def test_the_default_is_five_attempts() -> None:
    """At once, then after 1, 5, 15 minutes and an hour."""
    waits = [DEFAULT.delay_before(attempt, random=0) for attempt in range(1, 6)]

    assert [timedelta(minutes=n) for n in (0, 1, 5, 15, 60)] == waits
    assert DEFAULT.max_attempts == 5


@pytest.mark.parametrize("text", ["[" * 3_000, '{"first":' * 3_000, "[" * 100_000 + "]" * 100_000])
def test_what_is_nested_too_deeply_to_be_read_is_no_schedule(text: str) -> None:
    with pytest.raises(BadRetry, match="it is nested too deeply, write"):
        RetrySchedule.from_text(text)


def test_a_single_entry_is_a_single_attempt() -> None:
    """`["0s"]` tries once and is exhausted by one failure."""
    once = RetrySchedule.parse(["0s"])

    assert once.max_attempts == 1
    assert exhausted(1, once.max_attempts)
    assert not exhausted(0, once.max_attempts)


def test_the_first_entry_delays_the_first_attempt() -> None:
    """Entry i is the delay before attempt i, the first one included."""
    assert timedelta(seconds=30) == RetrySchedule.parse(["30s", "1m"]).delay_before(1, random=0)


def test_a_curve_starts_at_once_and_grows_to_its_max() -> None:
    """Attempt 1 goes at once, attempt 2 waits `first`, the rest grow by `factor` and stop at `max`."""
    schedule = RetrySchedule.parse({"first": "1s", "factor": 2, "max": "10s", "attempts": 7})

    waits = [schedule.delay_before(attempt, random=0) for attempt in range(1, 8)]

    assert [timedelta(seconds=n) for n in (0, 1, 2, 4, 8, 10, 10)] == waits
    assert schedule.max_attempts == 7


def test_a_curve_of_any_length_stays_within_its_max() -> None:
    """A thousand doublings overflow a float, not the schedule."""
    schedule = RetrySchedule.parse({"first": "1s", "factor": 1000, "max": "1h", "attempts": 1000})

    assert timedelta(hours=1) == schedule.delay_before(1000, random=0)


def test_a_job_may_ask_for_fewer_or_more_attempts() -> None:
    """Its own number wins; past the end of the list the last delay repeats."""
    assert DEFAULT.attempts_for(None) == 5
    assert DEFAULT.attempts_for(2) == 2
    assert DEFAULT.attempts_for(9) == 9
    assert timedelta(hours=1) == DEFAULT.delay_before(9, random=0)


@pytest.mark.parametrize("own", [0, -1, MAX_ATTEMPTS + 1])
def test_a_job_cannot_ask_for_no_attempt_or_endless_ones(own: int) -> None:
    """Its own number is bounded like the schedule's."""
    with pytest.raises(BadRetry, match="between 1 and 1000"):
        DEFAULT.attempts_for(own)


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_count_from_one(attempt: int) -> None:
    """There is no attempt 0; asking for it is a bug of the caller."""
    with pytest.raises(BadRetry, match="the first one is 1"):
        DEFAULT.delay_before(attempt, random=0)


@given(schedules, st.integers(1, 2_000), randoms)
def test_jitter_only_lengthens_by_up_to_a_tenth(schedule: RetrySchedule, attempt: int, random: float) -> None:
    """Nothing is retried early, nothing much later than written."""
    base = schedule.delay_before(attempt, random=0)

    jittered = schedule.delay_before(attempt, random=random)

    assert base <= jittered <= base * (1 + JITTER) + timedelta(microseconds=1)


@given(curves(), st.integers(1, 2_000))
def test_a_curve_never_shrinks_and_never_passes_its_max(schedule: RetrySchedule, attempt: int) -> None:
    """Each delay is at least the one before it, and at most `max`."""
    assert isinstance(schedule.shape, Curve)
    now, later = (schedule.delay_before(n, random=0) for n in (attempt, attempt + 1))

    assert timedelta(0) <= now <= later <= schedule.shape.max


@given(schedules)
def test_text_survives_the_round_trip(schedule: RetrySchedule) -> None:
    """What a database column holds is read back as the same schedule, and written as the same text."""
    text = schedule.to_text()

    assert schedule == RetrySchedule.from_text(text)
    assert text == RetrySchedule.from_text(text).to_text()
    assert " " not in text


def test_text_is_what_configuration_spells() -> None:
    """Lists stay lists, curves stay curves, whole factors stay whole."""
    assert DEFAULT.to_text() == '["0s","1m","5m","15m","1h"]'
    assert json.loads(RetrySchedule.parse(CURVE).to_text()) == CURVE
    assert (
        RetrySchedule.parse(CURVE | {"factor": 1.5}).to_text()
    ) == '{"first":"1s","factor":1.5,"max":"1h","attempts":8}'


@pytest.mark.parametrize("value", [None, 5, "5m", b"5m", {"5m"}])
def test_only_lists_and_curves_are_schedules(value: object) -> None:
    """The message shows both spellings."""
    with pytest.raises(BadRetry, match=r'write \["0s", "1m", "5m"\] or \{ first'):
        RetrySchedule.parse(value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ([], "0 attempts, write between 1 and 1000"),
        (["0s"] * 1_001, "1001 attempts, write between 1 and 1000"),
        (["366d"], "not between 0s and 365d"),
        ({}, "the curve has no first and no factor and no max and no attempts"),
        (CURVE | {"jitter": 1}, "a curve has no jitter, only first, factor, max, attempts"),
        (CURVE | {"first": "0s"}, "never grows"),
        (CURVE | {"first": "2h"}, "max is shorter than first, write at least 2h"),
        (CURVE | {"max": "366d"}, "not between 0s and 365d"),
        (CURVE | {"factor": 0.5}, "a factor is from 1 to 1000"),
        (CURVE | {"factor": float("nan")}, "a factor is from 1 to 1000"),
        (CURVE | {"factor": 10**400}, "a factor is from 1 to 1000"),
        (CURVE | {"factor": "2"}, "factor is '2', write a number"),
        (CURVE | {"factor": True}, "factor is True, write a number"),
        (CURVE | {"attempts": 0}, "0 attempts, write between 1 and 1000"),
        (CURVE | {"attempts": 8.0}, "attempts is 8.0, write a whole number"),
        (CURVE | {"attempts": True}, "attempts is True, write a whole number"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_named(value: object, advice: str) -> None:
    """Each mistake has its own advice."""
    with pytest.raises(BadRetry, match=advice):
        RetrySchedule.parse(value)


def test_a_wrong_duration_in_a_schedule_is_named() -> None:
    """The advice is the duration's own."""
    with pytest.raises(BadDuration, match="60 is not a duration: write 5s"):
        RetrySchedule.parse(["0s", 60])


def test_delays_are_whole_milliseconds() -> None:
    """What text could not hold cannot be built either."""
    with pytest.raises(BadRetry, match="finer than a millisecond"):
        RetrySchedule((timedelta(microseconds=1),))


def test_text_that_is_no_json_is_refused() -> None:
    """A column edited by hand gets an answer, not a stack trace."""
    with pytest.raises(BadRetry, match="'0s,1m' is not JSON"):
        RetrySchedule.from_text("0s,1m")


@pytest.mark.parametrize("random", [-0.1, 1.0, float("nan")])
def test_randomness_is_from_zero_up_to_one(random: float) -> None:
    """A wrong random number would shorten a delay, so it is refused."""
    with pytest.raises(ValueError, match="from 0 up to but not including 1"):
        lengthen(SECOND, random=random)


def test_a_loop_backs_off_twice_as_long_each_time() -> None:
    """Until the longest pause; without failures it keeps its pace."""
    pauses = [backoff(SECOND, failures, longest=5 * SECOND, random=0) for failures in range(5)]

    assert [n * SECOND for n in (1, 2, 4, 5, 5)] == pauses


@given(st.integers(0, 10**9), randoms)
def test_a_loop_never_waits_less_than_its_pace(failures: int, random: float) -> None:
    """Even when its pace is slower than the longest back-off."""
    assert timedelta(minutes=2) <= backoff(
        timedelta(minutes=2), failures, longest=timedelta(minutes=1), random=random
    )
