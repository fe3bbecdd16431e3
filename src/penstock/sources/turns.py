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
        self._last: str | None = None

    def next(self, most: int | None = None) -> list[str]:
        """Return queues to be looked at, not more than this: those behind the last one, in their order.

        Those that are left alone keep their places, so that nobody's turn is lost when they come and go.
        """
        now = self._clock.monotonic()
        self._later = {queue: at for queue, at in self._later.items() if at > now}
        queues = list(self._queues())
        first = queues.index(self._last) + 1 if self._last in queues else 0
        able = [queue for queue in queues[first:] + queues[:first] if queue not in self._later]
        found = able[:most]
        if found:
            self._last = found[-1] if len(found) < len(able) else found[0]
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
