"""The pacing role (`ports/flow.py`) of the model."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from threading import RLock

from penstock.domain.breakers import RESET, Note, facts, noted
from penstock.domain.job import Audit, Claim
from penstock.domain.lanes import Lane
from penstock.domain.limits import Account
from penstock.domain.limits import permit as decide
from penstock.domain.pauses import Stop, check_paused, check_until, in_force
from penstock.domain.pools import Pool
from penstock.domain.settlement import OUT
from penstock.domain.states import JobState
from penstock.ports.flow import Confirmed, Grant, Limit, Need, Pause, Scouted, Target, Work
from penstock.stores.memory.reading import group
from penstock.stores.memory.tables import Tables
from penstock.stores.memory.wakeups import MemoryWakeups


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

    def permit(self, node: int, needs: Sequence[Need], *, ttl: timedelta) -> list[Grant]:
        """Settle what the node spent and lease what it may have."""
        with self._lock:
            tables, now, grants = self._tables, self.now(), []
            for need in needs:
                limit = need.limit
                account = tables.limits.get(limit.id, Account())._replace(open=jobs_out(tables, limit))
                account, grant = decide(account, need, node=node, now=now, ttl=ttl)
                grants.append(grant)
                if limit.limited:
                    tables.limits[limit.id] = account
            return grants

    def targets(self) -> dict[str, Target]:
        """Return the targets whose breaker is not closed, that go slow or are paused."""
        with self._lock:
            known, pauses = self._tables.targets, self._tables.target_pauses
            found = {
                name: known.get(name, Target(name))._replace(pause=pauses.get(name)).at(self.now())
                for name in known.keys() | pauses.keys()
            }
            return {name: target for name, target in found.items() if target.troubled}

    def mark_target(
        self, name: str, *, failed: int, ok: int, trip_after: int, open_for: timedelta, slow_for: timedelta
    ) -> Target:
        """Note how calls to a target went since the last note."""
        with self._lock:
            known, note = self._tables.targets, Note(failed, ok, trip_after, open_for, slow_for)
            known[name] = noted(known.get(name, Target(name)), note, now=self.now())
            return known[name]

    def pause_store(
        self, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pause | None:
        """Stop every lane at once, or let them go."""
        with self._lock:
            tables, now = self._tables, self.now()
            check_until(until if paused else None, now)
            wanted = Pause(actor, reason, now, until) if paused else None
            who = {"actor": actor, "reason": reason}
            tables.store_pause = self._paused("store", {}, tables.store_pause, wanted, **who)
            return self.store_pause()

    def reset_target(self, name: str, *, actor: str, reason: str) -> bool:
        """Close a target's breaker and end its slow-down."""
        with self._lock:
            known = self._tables.targets.pop(name, Target(name))
            if known == Target(name):
                return False
            texts = facts(known), facts(Target(name))
            self._tables.audit.append(Audit(self.now(), None, None, actor, RESET, *texts, reason))
            return True

    def pause_target(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pause | None:
        """Stop sending to a target, or let it go."""
        with self._lock:
            known, now = self._tables.target_pauses, self.now()
            check_until(until if paused else None, now)
            for other in [other for other, pause in known.items() if other != name and pause.over(now)]:
                del known[other]
            wanted = Pause(actor, reason, now, until) if paused else None
            if wanted is not None:
                check_paused(known.keys() | {name})
            of = {"target": name}
            becomes = self._paused("target", of, known.pop(name, None), wanted, actor=actor, reason=reason)
            if becomes is not None:
                known[name] = becomes
            return None if becomes is None or becomes.over(now) else becomes

    def _paused(
        self,
        kind: str,
        of: dict[str, str],
        before: Pause | None,
        wanted: Pause | None,
        *,
        actor: str,
        reason: str,
    ) -> Pause | None:
        """Return the pause that is to be kept; one that is as it should be is left alone."""
        if before is None if wanted is None else wanted.same(before):
            return before
        action = f"{kind}.pause" if wanted else f"{kind}.resume"
        was, becomes = (pause.facts(**of) if pause else None for pause in (before, wanted))
        self._tables.audit.append(Audit(self.now(), None, None, actor, action, was, becomes, reason))
        return wanted

    def wake(self, lanes: Collection[str]) -> None:
        """Tell nodes that these lanes have news."""
        with self._lock:
            listeners = self._tables.listeners = [one for one in self._tables.listeners if not one.closed]
        for listener in listeners:
            listener.ring(lanes)

    def wakeups(self) -> MemoryWakeups:
        """Return a way to wait for news."""
        listener = MemoryWakeups()
        with self._lock:
            self._tables.listeners.append(listener)
        return listener

    def store_pause(self) -> Pause | None:
        """Return the pause of the whole store that is in force now."""
        with self._lock:
            pause = self._tables.store_pause
            return None if pause is None or pause.over(self.now()) else pause


def jobs_out(tables: Tables, limit: Limit) -> int:
    """Return how many jobs of a limit are out, as far as it matters."""
    if limit.max_in_flight is None:
        return 0
    rows = [row for row in tables.live.values() if row.state in OUT]
    lane = tables.lanes.get(limit.name)
    if limit.scope == "lane":
        out = sum(1 for row in rows if lane is not None and row.lane == lane.id)
    else:
        out = sum(1 for row in rows if row.slot == limit.slot)
    return min(out, limit.max_in_flight)


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
