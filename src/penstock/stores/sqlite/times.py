"""Times in SQLite: whole microseconds since 1970, UTC. Exact, sortable, narrow."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000_000


def to_us(at: datetime) -> int:
    """Return microseconds since 1970."""
    passed = at - EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def from_us(us: int | None) -> datetime | None:
    """Return the time, None for None."""
    return None if us is None else at_us(us)


@lru_cache(maxsize=4096)
def at_us(us: int) -> datetime:
    """Return the time of a column that is never NULL; a batch says the same time over and over."""
    return EPOCH + timedelta(microseconds=us)
