"""News of the model: whoever wakes a lane rings every listener's bell."""

from collections.abc import Collection
from datetime import timedelta
from threading import Condition


class MemoryWakeups:
    """What one listener has not heard yet."""

    def __init__(self) -> None:
        self._bell = Condition()
        self._lanes: set[str] = set()
        self._somewhere = True  # what was said before nobody heard
        self.closed = False

    def ring(self, lanes: Collection[str]) -> None:
        """Tell of these lanes; none = somewhere."""
        with self._bell:
            self._lanes |= set(lanes)
            self._somewhere |= not lanes
            self._bell.notify_all()

    def wait(self, timeout: timedelta) -> frozenset[str] | None:
        """Return the lanes that have news, an empty set when it is not known which; None = the time is up."""
        with self._bell:
            self._bell.wait_for(self._rung, timeout.total_seconds())
            if self.closed or not self._rung():
                return None
            lanes = frozenset() if self._somewhere else frozenset(self._lanes)
            self._lanes, self._somewhere = set(), False
            return lanes

    def close(self) -> None:
        """Hear nothing more; a `wait` in another thread ends."""
        with self._bell:
            self.closed = True
            self._bell.notify_all()

    def _rung(self) -> bool:
        return self.closed or self._somewhere or bool(self._lanes)
