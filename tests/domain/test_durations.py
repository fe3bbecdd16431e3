from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.durations import (
    LONGEST,
    BadDuration,
    BadSize,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0s", timedelta(0)),
        ("250ms", timedelta(milliseconds=250)),
        ("5s", timedelta(seconds=5)),
        ("1m", timedelta(minutes=1)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
    ],
)
def test_every_unit_is_read_and_written(text: str, duration: timedelta) -> None:
    """Milliseconds, seconds, minutes, hours and days mean what they say, both ways."""
    assert duration == parse_duration(text)
    assert text == format_duration(duration)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "5",
        "s",
        "5 s",
        " 5s",
        "5s\n",
        "-5s",
        "+5s",
        "1.5s",
        "5S",
        "5sec",
        "1m30s",
        "1y",
        "\u0665s",
        "1" * 16 + "s",
    ],
)
def test_anything_else_is_refused_with_an_example(value: str) -> None:
    """The message repeats what was written and shows what to write."""
    with pytest.raises(BadDuration) as caught:
        parse_duration(value)

    assert f"{value!r} is not a duration: write 5s, 250ms, 1m, 2h or 7d" == str(caught.value)
    assert value == caught.value.value


@pytest.mark.parametrize("value", [5, 5.0, None, True, b"5s", timedelta(seconds=5)])
def test_a_duration_is_text(value: object) -> None:
    """A bare number has no unit, so it is not guessed at."""
    with pytest.raises(BadDuration, match="write 5s"):
        parse_duration(value)


def test_a_duration_that_no_timedelta_holds_is_refused() -> None:
    """Fifteen digits of days are an error of ours to report, not an OverflowError."""
    with pytest.raises(BadDuration, match="the longest is 999999999d"):
        parse_duration("9" * 15 + "d")


def test_the_largest_exact_unit_is_written() -> None:
    """Ninety seconds are not a whole number of minutes, a hundred and twenty are."""
    assert format_duration(timedelta(minutes=1, seconds=30)) == "90s"
    assert format_duration(timedelta(seconds=120)) == "2m"
    assert format_duration(timedelta(days=1, hours=12)) == "36h"


def test_fractions_of_a_millisecond_round_up() -> None:
    """A wait is never shown shorter than it is."""
    assert format_duration(timedelta(microseconds=1)) == "1ms"
    assert format_duration(timedelta(seconds=1, microseconds=1)) == "1001ms"


def test_a_negative_duration_is_refused() -> None:
    """Nobody waits for minus five seconds."""
    with pytest.raises(BadDuration, match="negative"):
        format_duration(timedelta(seconds=-5))


def test_what_is_longer_than_a_thousand_years_is_that_long() -> None:
    """Whatever it is added to or taken from, there is such a time."""
    assert parse_duration("365001d") == parse_duration("999999999d") == LONGEST
    assert datetime(2026, 1, 1, tzinfo=UTC) + 3 * LONGEST
    assert datetime(1970, 1, 1, tzinfo=UTC) - LONGEST


@given(st.integers(0, LONGEST // timedelta(milliseconds=1)))
def test_what_is_written_is_read_back(milliseconds: int) -> None:
    """Whole milliseconds survive the round trip."""
    duration = timedelta(milliseconds=milliseconds)

    assert duration == parse_duration(format_duration(duration))


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_writing_never_shortens_and_adds_less_than_a_millisecond(duration: timedelta) -> None:
    """Whatever the duration, its text stands for at least as long, and hardly longer."""
    shown = parse_duration(format_duration(duration))

    assert duration <= shown < duration + timedelta(milliseconds=1)


@given(st.text())
def test_text_is_a_duration_or_refused(text: str) -> None:
    """No text makes the parser fail in another way."""
    with suppress(BadDuration):
        assert parse_duration(text) >= timedelta(0)


@pytest.mark.parametrize(
    ("text", "size"), [("0B", 0), ("512B", 512), ("256KiB", 262_144), ("8MiB", 8_388_608), ("1GiB", 1 << 30)]
)
def test_every_size_unit_is_read_and_written(text: str, size: int) -> None:
    """Bytes, KiB, MiB and GiB mean what they say, both ways."""
    assert size == parse_size(text)
    assert text == format_size(size)


@pytest.mark.parametrize("value", ["", "512", "8MB", "8 MiB", "8mib", "-1B", "1.5MiB", 512, None])
def test_other_sizes_are_refused_with_an_example(value: object) -> None:
    """MB could mean two things, so it is not accepted."""
    with pytest.raises(BadSize) as caught:
        parse_size(value)

    assert f"{value!r} is not a size: write 512B, 256KiB, 8MiB or 1GiB" == str(caught.value)


def test_a_negative_size_is_refused() -> None:
    """Nothing is smaller than nothing."""
    with pytest.raises(BadSize, match="negative"):
        format_size(-1)


@given(st.integers(0, 10**15 - 1))
def test_sizes_survive_the_round_trip(size: int) -> None:
    """Every size is read back from its text."""
    assert size == parse_size(format_size(size))
