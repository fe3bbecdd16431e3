"""The leader's chores: what nobody waits for, in bounded slices, each fenced by the leader's term."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from penstock.domain.leases import Term
from penstock.ports.events import Housekept, Recalled
from penstock.ports.store import Store, Tick
from penstock.scheduler.ground import Ground

EXPIRE_EVERY: Final = timedelta(seconds=1)
RECALL_EVERY: Final = timedelta(seconds=1)
EVERY: Final = timedelta(seconds=60)
SLICE: Final = 1000
SLICES: Final = 20

Chore = Callable[[Store, Term | None], int]
CHORES: Final[dict[str, Chore]] = {
    "fold": lambda store, term: store.fold_counts(under=term),
    "retire": lambda store, term: store.retire(slice_rows=SLICE, under=term),
}


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """One node's chores."""

    ground: Ground
    node: int
    stop: asyncio.Event

    async def expire(self, term: Term | None) -> bool:
        """End jobs whose `start_by` has passed; say whether there may be more."""
        return await self.ground.call(self.ground.store.expire, SLICE, under=term) >= SLICE

    async def recall(self, term: Term | None) -> bool:
        """Let jobs come that pools put back which are set otherwise by now; say whether there may be more."""
        came = await self.ground.call(self.ground.store.recall, SLICE, under=term)
        for lane, jobs in came.items():
            self.ground.emit(Recalled(lane=lane, jobs=jobs))
        if came:
            await self.ground.call(self.ground.store.wake, list(came))
        return sum(came.values()) >= SLICE

    async def round(self, term: Term | None) -> None:
        """Do every chore until nothing is left, or for a bounded number of slices; keep the figures."""
        did: dict[str, int] = {}
        phases: dict[str, float] = {}
        for name, chore in CHORES.items():
            started = self.ground.monotonic()
            did[name] = await self._slices(name, chore, term)
            phases[name] = round(self.ground.monotonic() - started, 6)
        self.ground.emit(Housekept(did=did, phases=phases))
        tick = Tick(node=self.node, lane=None, settled=sum(did.values()), phases=phases)
        await self.ground.call(self.ground.store.record_ticks, [tick])

    async def _slices(self, name: str, chore: Chore, term: Term | None) -> int:
        done = 0
        for _ in range(SLICES if name == "retire" else 1):
            part = await self.ground.call(chore, self.ground.store, term)
            done += part
            if part < SLICE or self.stop.is_set():  # whoever stops is waited for
                break
        return done
