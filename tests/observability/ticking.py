"""A clock that moves when it is told to."""

from datetime import UTC, datetime, timedelta

BEGAN = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Ticking:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds
