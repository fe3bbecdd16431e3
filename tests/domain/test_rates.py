from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.rates import (
    CLOCK_STEP,
    GRAINS_PER_TOKEN,
    MAX_COUNT,
    BadRate,
    Bucket,
    Rate,
    allowance,
    default_burst,
    full,
    give_back,
    parse_rate,
    ready_in,
    refill,
    slice_size,
    take,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
TEN = Rate(10, SECOND)

rates = st.builds(Rate, st.integers(1, 5_000), st.sampled_from([SECOND, MINUTE, HOUR]))
bursts = st.integers(1, 1_000)
steps = st.integers(0, 3 * 10**6).map(lambda n: timedelta(microseconds=n))


def calls_in_any_window(calls: list[tuple[datetime, int]], rate: Rate, burst: int) -> None:
    """Fail when some window from one call to another holds more than rate·t + burst."""
    for first, (begin, _) in enumerate(calls):
        totals = accumulate(count for _, count in calls[first:])
        for (end, _), total in zip(calls[first:], totals, strict=True):
            assert total <= allowance(rate, burst, window=end - begin)


@pytest.mark.parametrize(
    ("text", "rate"), [("200/s", Rate(200, SECOND)), ("10/m", Rate(10, MINUTE)), ("5/h", Rate(5, HOUR))]
)
def test_rates_are_read_and_written(text: str, rate: Rate) -> None:
    """Per second, per minute, per hour, both ways."""
    assert parse_rate(text) == rate
    assert str(rate) == text


@pytest.mark.parametrize(
    "value", ["", "200", "200/d", "200 /s", "1.5/s", "-1/s", "200/sec", "200/s\n", 200, None]
)
def test_other_rates_are_refused_with_examples(value: object) -> None:
    """The message repeats what was written and shows what to write."""
    with pytest.raises(BadRate) as caught:
        parse_rate(value)

    assert str(caught.value) == f"{value!r} is not a rate: write 200/s, 10/m or 5/h"
    assert caught.value.value == value


@pytest.mark.parametrize("text", ["0/s", "1000000001/h"])
def test_a_rate_is_neither_nothing_nor_endless(text: str) -> None:
    """Who wants nothing sent pauses the lane."""
    with pytest.raises(
        BadRate, match=f"{text}' is not a rate: the number is from 1 to 1000000000; to stop a lane"
    ):
        parse_rate(text)


def test_a_rate_that_is_far_too_large_is_told_the_largest() -> None:
    with pytest.raises(BadRate, match="at most 1000000000"):
        parse_rate("99999999999/s")


def test_a_rate_is_per_second_minute_or_hour() -> None:
    """Other periods would not divide into whole grains."""
    with pytest.raises(BadRate, match="write 200/s, 10/m or 5/h"):
        Rate(5, timedelta(days=1))


@pytest.mark.parametrize(
    ("text", "burst"), [("200/s", 200), ("1/s", 1), ("120/m", 2), ("119/m", 1), ("10/m", 1), ("7200/h", 2)]
)
def test_the_default_burst_is_one_seconds_worth(text: str, burst: int) -> None:
    """And at least one."""
    assert default_burst(parse_rate(text)) == burst


@pytest.mark.parametrize("burst", [0, -1, MAX_COUNT + 1])
def test_a_burst_is_at_least_one(burst: int) -> None:
    """A bucket without room never gives a token."""
    with pytest.raises(BadRate, match="a burst is from 1 to 1000000000"):
        full(burst, at=NOW)


def test_the_largest_level_fits_a_database_column() -> None:
    """Signed 64 bits."""
    assert full(MAX_COUNT, at=NOW).level < 2**63


def test_a_bucket_gives_its_burst_and_then_the_rate() -> None:
    """Ten at once, then one each tenth of a second."""
    bucket, granted = take(full(10, at=NOW), TEN, burst=10, now=NOW, want=15)
    assert granted == 10

    bucket, granted = take(bucket, TEN, burst=10, now=NOW + SECOND / 10 - MICROSECOND, want=15)
    assert granted == 0

    bucket, granted = take(bucket, TEN, burst=10, now=NOW + SECOND / 10, want=15)
    assert granted == 1
    assert bucket == Bucket(0, NOW + SECOND / 10)


def test_a_negative_wish_takes_nothing() -> None:
    """Nor does it put anything in."""
    assert take(full(10, at=NOW), TEN, burst=10, now=NOW, want=-5) == (full(10, at=NOW), 0)


@given(rates, bursts, st.lists(st.tuples(steps, st.integers(0, 500)), max_size=40))
def test_no_window_holds_more_than_the_rate_and_one_burst(
    rate: Rate, burst: int, wishes: list[tuple[timedelta, int]]
) -> None:
    """Whoever asks whenever for however much."""
    bucket, now, calls = full(burst, at=NOW), NOW, []
    for step, want in wishes:
        now += step
        bucket, granted = take(bucket, rate, burst=burst, now=now, want=want)
        assert 0 <= granted <= want
        calls.append((now, granted))

    calls_in_any_window(calls, rate, burst)


@given(rates, st.lists(st.integers(1, 10**5), min_size=1, max_size=200))
def test_looking_often_costs_nothing(rate: Rate, gaps: list[int]) -> None:
    """A bucket that was looked at at odd microseconds holds exactly what one that was left alone holds."""
    burst, now = MAX_COUNT, NOW
    left_alone = looked_at = Bucket(0, NOW)
    for gap in gaps:
        now += gap * MICROSECOND
        looked_at, _ = take(looked_at, rate, burst=burst, now=now, want=0)

    assert refill(left_alone, rate, burst=burst, now=now) == looked_at


@given(
    rates,
    bursts,
    st.lists(st.tuples(st.integers(0, CLOCK_STEP // MICROSECOND), st.integers(0, 500)), max_size=40),
)
def test_a_clock_that_wavers_mints_nothing(rate: Rate, burst: int, reads: list[tuple[int, int]]) -> None:
    """Readings out of order give no more tokens than the time between the first and the latest one."""
    bucket, total = full(burst, at=NOW), 0
    for offset, want in reads:
        bucket, granted = take(bucket, rate, burst=burst, now=NOW + offset * MICROSECOND, want=want)
        total += granted

    latest = max((offset for offset, _ in reads), default=0)
    assert total <= allowance(rate, burst, window=latest * MICROSECOND)


@given(st.integers(0, 10), st.timedeltas(min_value=MICROSECOND, max_value=timedelta(days=400)))
def test_a_clock_set_back_mints_nothing(tokens: int, back: timedelta) -> None:
    """However far: the bucket holds what it held."""
    bucket = Bucket(tokens * GRAINS_PER_TOKEN, NOW)

    after = refill(bucket, TEN, burst=10, now=NOW - back)

    assert after.level == bucket.level
    assert after.at in {NOW, NOW - back}


def test_a_clock_set_back_does_not_stop_the_flow() -> None:
    """After an hour's step the tokens come at the rate again, not after that hour."""
    bucket, _ = take(Bucket(0, NOW), TEN, burst=10, now=NOW - HOUR, want=1)

    _, granted = take(bucket, TEN, burst=10, now=NOW - HOUR + SECOND, want=10)

    assert granted == 10


def test_a_smaller_burst_takes_effect_at_once() -> None:
    """Tokens above it are gone; a larger one fills at the rate."""
    _, granted = take(full(100, at=NOW), TEN, burst=5, now=NOW, want=100)
    assert granted == 5

    _, granted = take(full(5, at=NOW), TEN, burst=100, now=NOW, want=100)
    assert granted == 5


def test_tokens_given_back_are_there_again_up_to_the_burst() -> None:
    """A call that was not made cost nothing; a bucket never overflows."""
    bucket, _ = take(full(10, at=NOW), TEN, burst=10, now=NOW, want=10)

    assert give_back(bucket, 4, burst=10).tokens == 4
    assert give_back(bucket, 40, burst=10).tokens == 10
    assert give_back(bucket, 40, burst=10, held=7).tokens == 3
    assert give_back(bucket, 40, burst=10, held=70).tokens == 0


@given(rates, bursts, st.data())
def test_the_wait_is_exact(rate: Rate, burst: int, data: st.DataObject) -> None:
    """After it the tokens are there, a microsecond earlier not; also when the clock is a little behind."""
    held = data.draw(st.integers(0, burst - 1))
    level = data.draw(st.integers(0, (burst - held) * GRAINS_PER_TOKEN))
    want = data.draw(st.integers(1, burst - held))
    now = NOW + data.draw(st.integers(-(CLOCK_STEP // MICROSECOND), 10**7)) * MICROSECOND
    bucket = Bucket(level, NOW)

    wait = ready_in(bucket, rate, burst=burst, now=now, want=want, held=held)

    assert wait is not None
    _, granted = take(bucket, rate, burst=burst, now=now + wait, want=want, held=held)
    assert granted == want
    if wait:
        early = max(now, now + wait - MICROSECOND)
        _, granted = take(bucket, rate, burst=burst, now=early, want=want, held=held)
        assert granted < want


def test_more_than_the_bucket_holds_never_comes() -> None:
    """There is no time to wait for; what is out on lease counts."""
    assert ready_in(full(10, at=NOW), TEN, burst=10, now=NOW, want=11) is None
    assert ready_in(full(10, at=NOW), TEN, burst=10, now=NOW, want=10, held=1) is None
    assert ready_in(full(10, at=NOW), TEN, burst=10, now=NOW) == timedelta(0)


@pytest.mark.parametrize(
    ("rate", "burst", "nodes", "size"),
    [
        (Rate(200, SECOND), 200, 1, 100),
        (Rate(200, SECOND), 200, 4, 25),
        (Rate(200, SECOND), 10_000, 4, 50),
        (Rate(10, MINUTE), 1, 3, 1),
        (Rate(200, SECOND), 200, 0, 100),
    ],
)
def test_a_slice_is_a_nodes_share_of_half_the_bucket(rate: Rate, burst: int, nodes: int, size: int) -> None:
    """Or of what its TTL mints, if that is less; at least one token."""
    assert slice_size(rate, burst, nodes=nodes, ttl=SECOND) == size
