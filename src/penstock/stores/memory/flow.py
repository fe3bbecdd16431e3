"""The pacing role (`ports/flow.py`) of the model."""

from datetime import datetime
from threading import RLock

from penstock.domain.job import Claim
from penstock.domain.lanes import Lane
from penstock.domain.pauses import Stop, in_force
from penstock.domain.pools import Pool
from penstock.domain.states import JobState
from penstock.ports.flow import Confirmed, Scouted, Work
from penstock.stores.memory.reading import group
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

    def scout(self) -> Scouted:
        """Look at all lanes at once."""
        with self._lock:
            tables = self._tables
            work = {name: _work(tables, lane.id) for name, lane in tables.lanes.items()}
            return Scouted(self.now(), {name: found for name, found in work.items() if any(found)})


def _work(tables: Tables, lane: int) -> Work:
    rows = [row for row in tables.live.values() if row.lane == lane]
    plain = [row.due_at for row in rows if row.grp is None and row.state == JobState.PENDING]
    groups = (group(tables, tables.lane_names[lane], row.grp) for row in rows if row.grp is not None)
    ready = [g.next_at for g in groups if g and g.claim is None and not g.paused and not g.blocked]
    return Work(min(plain, default=None), min((at for at in ready if at is not None), default=None))


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
