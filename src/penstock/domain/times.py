"""Which times there are: of the years 1970 to 9998. Every store keeps them, and there is room on either side.

What somebody writes beyond is refused, here and in these words alone. What a long duration leads to is not:
a retention of a million days means for ever.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
BEYOND: Final = "is not between the years 1970 and 9998: write a time that every store keeps"


def check_time(at: datetime) -> datetime:
    """Return a time that has an offset in UTC, or raise ValueError: no store keeps it."""
    if not FIRST <= at < LAST:
        raise ValueError(BEYOND)
    return at.astimezone(UTC)


def shifted(at: datetime, by: timedelta) -> datetime:
    """Return the time that much later, or earlier; where there is none, the last or the first one."""
    try:
        return min(max(FIRST, at + by), LAST)
    except OverflowError:
        return LAST if by > timedelta(0) else FIRST
