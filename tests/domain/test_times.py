"""The edges of the calendar."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.domain.times import FIRST, LAST, check_time, shifted

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEST, EAST = timezone(timedelta(hours=-12)), timezone(timedelta(hours=14))


def test_a_time_is_returned_in_utc() -> None:
    there = NOW.astimezone(WEST)
    assert check_time(there) == NOW
    assert check_time(there).tzinfo is UTC
    assert check_time(FIRST) == FIRST


@pytest.mark.parametrize(
    "at",
    [
        LAST,
        FIRST - timedelta(microseconds=1),
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=WEST),
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=EAST),
    ],
)
def test_what_no_store_keeps_is_refused(at: datetime) -> None:
    with pytest.raises(ValueError, match="is not between the years 1970 and 9998: write a time that every"):
        check_time(at)


@pytest.mark.parametrize(
    ("by", "at"),
    [
        (timedelta(hours=1), NOW + timedelta(hours=1)),
        (timedelta(hours=-1), NOW - timedelta(hours=1)),
        (timedelta(days=999_999), datetime(4764, 1, 26, 12, tzinfo=UTC)),
        (timedelta(days=-999_999), FIRST),
        (timedelta(days=9_999_999), LAST),
        (timedelta.max, LAST),
        (timedelta.min, FIRST),
    ],
)
def test_however_long_a_duration_is_it_leads_to_a_time(by: timedelta, at: datetime) -> None:
    assert shifted(NOW, by) == at
