"""The only way to learn what time it is."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two readings: one to talk about, one to wait by."""

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC; it may jump either way."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back: the time of the running event loop."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place where time enters

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()
