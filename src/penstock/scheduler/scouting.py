"""Looking for work: one statement for all lanes, at once when somebody calls, else every poll interval.

A thousand idle lanes cost one look per interval, the shortest that any of them has. A look also says when the
next job comes due, so that lanes without look-ahead are on time, and what the store's clock says. Polling is
the truth; calls (a notification, a changed file) only shorten the wait, and are taken together: a look that
takes long is made less often. Between looks lanes are woken every second with what they know: a pause may be
over by now, a sink may open.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from penstock.ports.flow import Scouted, Work
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import wait_for

WAKE_EVERY_S: Final = 1.0
REST: Final = 2
SHORTEST_S: Final = 0.001


class Scout:
    """One node's look-out."""

    def __init__(
        self, deck: Deck, found: Callable[[Mapping[str, Work]], None], wake: Callable[[], None]
    ) -> None:
        self._deck, self._found, self._wake = deck, found, wake
        self._called = asyncio.Event()
        self._soon = False
        self._took = 0.0
        self.pulse: float | None = None  # when it last began to look: a store that hangs shows here

    def call(self) -> None:
        """Have a look as soon as possible."""
        self._called.set()

    def soon(self) -> None:
        """Have a look within a second: something goes again that the last look did not see."""
        self._soon = True

    async def tick(self) -> bool:
        """Look once, tell the lanes, and wait until it is time to look again."""
        ground = self._deck.ground
        self._called.clear()
        self._soon = False
        self.pulse = started = ground.monotonic()
        scouted = await ground.call(ground.store.scout)
        arrived = ground.monotonic()
        self._deck.time.learn(scouted.now, asked=started, at=arrived)
        self._found(scouted.work)
        self._took = arrived - started
        await self._wait(until=arrived + self._pause(scouted))
        # Never at once: a store whose clock is slow may have nothing yet where we expect it to be due.
        await wait_for(self._deck.stop, max(SHORTEST_S, min(self._took * REST, 0.05)))
        return True

    async def _wait(self, *, until: float) -> None:
        monotonic = self._deck.ground.monotonic
        while not await wait_for(self._called, min(WAKE_EVERY_S, until - monotonic())):
            if self._soon or monotonic() >= until:
                return
            self.pulse = monotonic()
            self._wake()

    def _pause(self, scouted: Scouted) -> float:
        """Return how long nothing new can be due: to the next due time, at most a poll interval."""
        board = self._deck.board
        pause = board.poll.total_seconds()
        for name, work in scouted.work.items():
            for at in work:
                if at is not None and name in board.ahead:
                    wait = (at - board.ahead[name] - scouted.now).total_seconds()
                    pause = min(pause, wait if wait > 0 else pause)  # what is due already its lane knows
        return max(pause, SHORTEST_S)
