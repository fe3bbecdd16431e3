"""The claims a node holds, and for how long it may trust each.

A claim is ours for sure until `trusted_until`, counted from the moment we *began* to ask (domain/leases.py):
what cannot be begun before that is not sent. A heartbeat prolongs all claims three times per lease. It runs
beside the event loop, on a connection of its own: a loop that is busy for a while loses nothing. A claim that
the store no longer knows as ours is not trusted from that moment on.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock
from typing import Final

from penstock.domain.leases import renew_every, trusted, trusted_until
from penstock.errors import NotFound, StoreUnavailable
from penstock.ports.events import StoreBack, StoreFailed
from penstock.scheduler.ground import Ground

BEAT_EVERY: Final = timedelta(seconds=5)
LONGEST_WAIT: Final = timedelta(milliseconds=500)
NOTHING_S: Final = 0.001
SHORTEST_WAIT: Final = timedelta(milliseconds=50)


@dataclass(slots=True)
class Held:
    """One claim of ours."""

    lease: timedelta
    until: float
    lost: bool = False


@dataclass(slots=True)
class Holdings:
    """What a node holds; the loop and the heartbeat's thread both write it, one whole entry at a time."""

    claims: dict[int, Held] = field(default_factory=dict)
    _turn: Lock = field(default_factory=Lock)
    note: str | None = None
    shortest: timedelta = BEAT_EVERY * 3

    def take(self, epoch: int, *, lease: timedelta, started: float) -> None:
        """Note a claim that was asked for at `started`."""
        self.claims[epoch] = Held(lease, trusted_until(started, lease))

    def drop(self, epoch: int) -> None:
        """Forget a claim that is settled or lost."""
        with self._turn:
            self.claims.pop(epoch, None)

    def trusts(self, epoch: int, now: float, *, needs: timedelta = timedelta(0)) -> bool:
        """Say whether the claim is ours for at least that long."""
        held = self.claims.get(epoch)
        return held is not None and not held.lost and trusted(now, held.until, needs=needs)

    def lose(self, epoch: int) -> None:
        """Note that the store no longer knows the claim as ours."""
        with self._turn:
            held = self.claims.get(epoch)
            if held is not None:
                self.claims[epoch] = Held(held.lease, held.until, lost=True)

    async def renew(self, ground: Ground) -> None:
        """Prolong every claim once; those the store does not name are lost."""
        by_lease: dict[timedelta, list[int]] = {}
        for epoch, held in sorted(self.claims.items()):
            if not held.lost:
                by_lease.setdefault(held.lease, []).append(epoch)
        for lease, epochs in by_lease.items():
            started = ground.monotonic()
            ours = await ground.call(ground.store.renew, epochs, lease)
            for epoch in epochs:
                if epoch not in ours:
                    self.lose(epoch)
                    continue
                with self._turn:  # what the loop dropped meanwhile must not come back: nobody would drop it
                    if epoch in self.claims:
                        self.claims[epoch] = Held(lease, trusted_until(started, lease))

    def pause(self) -> timedelta:
        """Return how long the heartbeat may rest: a third of the shortest lease there may be to renew.

        Lanes count that nothing is claimed of yet: a claim may come just after the heartbeat went to rest.
        """
        shortest = min([self.shortest, *(held.lease for held in list(self.claims.values()))])
        return max(SHORTEST_WAIT, min(BEAT_EVERY, renew_every(shortest)))


async def beat(ground: Ground, node: int, name: str, note: str | None) -> None:
    """Say that the node is alive, and what of itself; one that was forgotten while it slept is back."""
    try:
        await ground.call(ground.store.beat, node, note)
    except NotFound:
        await ground.call(ground.store.register_node, name, node)
        await ground.call(ground.store.beat, node, note)


async def heartbeat(holdings: Holdings, node: int, name: str, ground: Ground) -> None:
    """Say that the node is alive and renew what it holds, for ever."""
    failures, last_beat, since = 0, -BEAT_EVERY.total_seconds(), 0.0
    while True:
        try:
            await holdings.renew(ground)
            started = ground.monotonic()
            # After a failure it asks in any case: else it would not learn whether that is over.
            if failures or started - last_beat >= BEAT_EVERY.total_seconds():
                await beat(ground, node, name, holdings.note)
                last_beat = started
        except StoreUnavailable as error:
            since = since if failures else ground.monotonic()
            failures += 1
            ground.emit(StoreFailed(part="heartbeat", error=str(error), failures=failures))
        else:
            if failures:
                ground.emit(StoreBack(part="heartbeat", after=ground.monotonic() - since))
            failures = 0
        rested_since = ground.monotonic()
        while (left := holdings.pause().total_seconds() - (ground.monotonic() - rested_since)) > NOTHING_S:
            # Not longer at a time: a lane's lease may become shorter meanwhile.
            await asyncio.sleep(min(left, LONGEST_WAIT.total_seconds()))
            if failures:
                break
