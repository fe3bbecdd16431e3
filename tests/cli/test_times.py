"""Times as people type them."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from penstock.cli.times import parse_time

NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-15T12:00:00Z", datetime(2026, 11, 15, 12, tzinfo=UTC)),
        ("2026-11-15T12:00:00+02:00", datetime(2026, 11, 15, 10, tzinfo=UTC)),
        ("+5m", NOW + timedelta(minutes=5)),
        ("+0s", NOW),
        ("10:31", NOW + timedelta(minutes=1)),
        ("10:30", NOW + timedelta(days=1)),
        ("9:00", datetime(2026, 11, 16, 9, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_moment_a_distance_or_the_next_one_on_the_clock(text: str, at: datetime) -> None:
    assert parse_time(text, now=NOW, zone=UTC) == at


def test_the_clock_is_the_readers_own() -> None:
    assert parse_time("12:00", now=NOW, zone=timezone(timedelta(hours=1))) == NOW + timedelta(minutes=30)


def test_an_hour_that_the_clock_skips_is_the_one_after_and_one_it_repeats_the_first() -> None:
    spring = datetime(2026, 3, 28, 23, tzinfo=UTC)
    autumn = datetime(2026, 10, 24, 23, tzinfo=UTC)

    assert parse_time("02:30", now=spring, zone=BERLIN) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert parse_time("02:30", now=autumn, zone=BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_without_a_zone_it_is_that_of_the_machine() -> None:
    found = parse_time("12:00", now=NOW).astimezone()

    assert (found.hour, found.minute) == (12, 0)
    assert timedelta(0) < found - NOW <= timedelta(days=1, hours=1)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "+9999999d"])
def test_a_time_at_the_edge_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not between the years 1970 and 9998"):
        parse_time(text, now=NOW)


@pytest.mark.parametrize("text", ["", "soon", "+5", "+1m30s", "25:00", "12:60", "+999999999999999d", "-5m"])
def test_what_is_no_time_is_told_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 2026-11-15T10:00:00Z, \+5m or 16:30"):
        parse_time(text, now=NOW)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        parse_time("2026-11-15T12:00:00", now=NOW)
