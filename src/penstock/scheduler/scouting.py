"""Looking for work: one statement for all lanes, at once when somebody calls, else every poll interval.

A thousand idle lanes cost one look per second. A look also says when the next job comes due, so that lanes
without look-ahead are on time, and what the store's clock says. Polling is the truth; calls (a notification,
a changed file) only shorten the wait, and are taken together: a look that takes long is made less often.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from penstock.ports.flow import Scouted, Work
from penstock.scheduler.deck import Deck
from penstock.scheduler.ground import wait_for

LONGEST: Final = timedelta(seconds=1)
REST: Final = 2
SHORTEST_S: Final = 0.001


class Scout:
    """One node's look-out."""

    def __init__(self, deck: Deck, found: Callable[[Mapping[str, Work]], None]) -> None:
        self._deck, self._found = deck, found
        self._called = asyncio.Event()
        self._took = 0.0
        self.pulse: float | None = None  # when it last began to look: a store that hangs shows here

    def call(self) -> None:
        """Have a look as soon as possible."""
        self._called.set()

    async def tick(self) -> bool:
        """Look once, tell the lanes, and wait until it is time to look again."""
        ground = self._deck.ground
        self._called.clear()
        self.pulse = started = ground.monotonic()
        scouted = await ground.call(ground.store.scout)
        arrived = ground.monotonic()
        self._deck.time.learn(scouted.now, at=arrived)
        self._found(scouted.work)
        self._took = arrived - started
        await wait_for(self._called, self._pause(scouted))
        # Never at once: a store whose clock is slow may have nothing yet where we expect it to be due.
        await wait_for(self._deck.stop, max(SHORTEST_S, min(self._took * REST, 0.05)))
        return True

    def _pause(self, scouted: Scouted) -> float:
        """Return how long nothing new can be due: to the next due time, at most a poll interval."""
        board = self._deck.board
        pause = min(LONGEST, board.poll).total_seconds()
        for name, work in scouted.work.items():
            for at in work:
                if at is not None and name in board.ahead:
                    wait = (at - board.ahead[name] - scouted.now).total_seconds()
                    pause = min(pause, wait if wait > 0 else pause)  # what is due already its lane knows
        return max(pause, SHORTEST_S)
