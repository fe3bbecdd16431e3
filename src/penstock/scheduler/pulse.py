"""Whether this node stood still: what it did not hear meanwhile says nothing of those who may have spoken."""

import asyncio
from dataclasses import dataclass
from typing import Final

from penstock.scheduler.ground import Ground, wait_for

EVERY_S: Final = 0.5
ASLEEP_S: Final = 1.0  # between two beats; a machine under load is late too, but not by so much


@dataclass(slots=True)
class Pulse:
    """Beats while the event loop turns: the process may be stopped, or a call may block the loop."""

    ground: Ground
    _beat: float | None = None
    _woke: float = float("-inf")

    async def run(self, stop: asyncio.Event) -> None:
        """Beat until told to stop."""
        while not stop.is_set():
            self.beat()
            await wait_for(stop, EVERY_S)
        self._beat = None

    def beat(self) -> None:
        """Note that the loop turns, and whether it did all the time."""
        now = self.ground.monotonic()
        if self._late(now):
            self._woke = now
        self._beat = now

    def stood_still(self, since: float) -> bool:
        """Say whether the loop stood still at some time after that; the beat may be yet to come."""
        return self._woke >= since or self._late(self.ground.monotonic())

    def _late(self, now: float) -> bool:
        return self._beat is not None and now - self._beat > ASLEEP_S
