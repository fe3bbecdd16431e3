"""Whose turn it is: the queues of a source, each time another one first, those in trouble left alone."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from penstock.ports.clock import Clock
from penstock.ports.source import SourceUnavailable

PAUSE: Final = timedelta(seconds=10)


class Turns:
    """The queues that are to be looked at now.

    What is wrong with one queue is said once for each time it is tried, and not before the others have had
    their turn: nobody waits for a queue that is not there.
    """

    def __init__(self, queues: Callable[[], Sequence[str]], clock: Clock) -> None:
        self._queues = queues
        self._clock = clock
        self._later: dict[str, float] = {}
        self._trouble: str | None = None
        self._turn = 0

    def next(self, most: int | None = None) -> list[str]:
        """Return queues to be looked at, not more than this."""
        now = self._clock.monotonic()
        self._later = {queue: at for queue, at in self._later.items() if at > now}
        queues = [queue for queue in self._queues() if queue not in self._later]
        if not queues:
            return []
        first = self._turn % len(queues)
        found = (queues[first:] + queues[:first])[:most]
        self._turn = first + (len(found) if len(found) < len(queues) else 1)
        return found

    def current(self) -> frozenset[str]:
        """Return all queues there are now, in trouble or not."""
        return frozenset(self._queues())

    def skip(self, queue: str, trouble: str, pause: timedelta | None = None) -> None:
        """Leave a queue alone for a while."""
        self._later[queue] = self._clock.monotonic() + (PAUSE if pause is None else pause).total_seconds()
        self._trouble = trouble

    def complain(self) -> None:
        """Raise what was wrong since the last time, if anything."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise SourceUnavailable(trouble)
