"""How a node learns of new work before its next poll. Polling is the truth; this only shortens the wait."""

from datetime import timedelta
from typing import Protocol


class Wakeups(Protocol):
    """A blocking wait on a connection of its own, made for a thread of its own.

    What was said before it was connected nobody heard: so the first wait, and the first after a connection
    was lost, return an empty set at once.
    """

    def wait(self, timeout: timedelta) -> frozenset[str] | None:
        """Return the lanes that have news, an empty set when it is not known which; None = the time is up.

        Raises StoreUnavailable when the connection is lost; the next call connects again.
        """

    def close(self) -> None:
        """Give up the connection; a `wait` in another thread ends."""
