"""The pacing role (`ports/flow.py`) of the model."""

from datetime import datetime
from threading import RLock

from penstock.domain.job import Claim
from penstock.domain.lanes import Lane
from penstock.domain.pauses import Stop, in_force
from penstock.domain.pools import Pool
from penstock.ports.flow import Confirmed
from penstock.stores.memory.tables import Tables


class FlowPart:
    """Pacing; `MemoryStore` brings the rows and the lock."""

    _tables: Tables
    _lock: RLock

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    def confirm(self, claim: Claim) -> Confirmed:
        """Look once more before sending."""
        with self._lock:
            tables, now = self._tables, self.now()
            lease = tables.claims.get(claim.epoch)
            arrivals = {c.job.arrival for c in lease.jobs} - lease.settled if lease else set()
            asked = {a: request.verb for a, request in tables.requests.items() if a in arrivals}
            stopped = in_force(_stops(tables, claim.lane), now)
            return Confirmed(now, ours=lease is not None, stopped=stopped, asked=asked)


def _stops(tables: Tables, name: str) -> list[Stop | None]:
    """Return what may keep a lane from sending, the widest first."""
    lane = tables.lanes.get(name)
    pool = tables.pools.get(lane["pool"]) if lane else None
    whole = tables.store_pause
    return [
        Stop("the store is paused", whole.actor, whole.reason, whole.until) if whole else None,
        Stop(f'lane "{name}" is disabled') if lane and not lane["enabled"] else None,
        _paused("lane", lane),
        _paused("pool", pool),
    ]


def _paused(kind: str, row: Lane | Pool | None) -> Stop | None:
    if row is None or not row.paused:
        return None
    return Stop(f'{kind} "{row.name}" is paused', row.paused_by, row.pause_reason, row.paused_until)
