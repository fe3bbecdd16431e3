"""Where things stand (`ports/insight.py`), as the model sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import RLock
from typing import Self

from penstock.domain.cursors import seal_names, unseal_names
from penstock.domain.filters import MAX_PAGE
from penstock.domain.groups import BLOCKED, MOST, Group, Told, group_row, list_of_groups
from penstock.domain.job import ON_REQUEST, Attempt, Audit, Job, Live
from penstock.domain.leases import lapsed
from penstock.domain.ordering import sequence_of
from penstock.domain.pauses import Pause
from penstock.domain.standing import Neighbour, NodeRow, Standing, holder_name, nearest, stuck_since
from penstock.domain.states import IN_FLIGHT, JobState
from penstock.domain.states import LIVE as LIVE_STATES
from penstock.errors import InvalidQuery, NotFound
from penstock.ports.insight import LEADER, GroupPage, GroupRow
from penstock.stores.memory.reading import find
from penstock.stores.memory.tables import Tables

LATELY = timedelta(hours=1)


class InsightPart:
    """Where things stand; `MemoryStore` brings the rows, the lock and the clock."""

    _tables: Tables
    _lock: RLock

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    @contextmanager
    def frozen(self) -> Iterator[Self]:
        """Return the store itself: it moves on, if a thread moves it."""
        yield self

    def standing(self, id: str) -> Standing | None:  # noqa: A002
        """Return what is known of why a job is where it is."""
        with self._lock:
            job = find(self._tables, id)
            return None if job is None else _standing(self._tables, job, self.now())

    def list_groups(
        self,
        *,
        lane: str | None = None,
        group: str | None = None,
        blocked: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> GroupPage:
        """Return groups by lane and name."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
        of = list_of_groups(lane, group, blocked=blocked)
        start = ("", "") if after is None else unseal_names(after, of=of, names=2)
        with self._lock:
            rows = [
                row
                for name in sorted(_names(self._tables))
                if lane in (None, name[0]) and group in (None, name[1]) and name > start
                for row in [_group_row(self._tables, *name, self.now())]
                if not blocked or row.state == BLOCKED
            ]
            shown = rows[:limit]
            more = len(rows) > limit
            return GroupPage(shown, seal_names((shown[-1].lane, shown[-1].group), of=of) if more else None)

    def nodes(self) -> list[NodeRow]:
        """Return the nodes seen within the last hour, newest first."""
        with self._lock:
            since = self.now() - LATELY
            return [node for node in reversed(self._tables.nodes.values()) if node.seen_at >= since][:MOST]

    def drain_node(self, node: int, *, draining: bool, actor: str, reason: str) -> Pause | None:
        """Tell a node to claim nothing more, or to go on."""
        with self._lock:
            tables, now = self._tables, self.now()
            if node not in tables.nodes:
                raise NotFound("node", str(node))
            before, wanted = tables.nodes[node].drain, Pause(actor, reason, now) if draining else None
            if wanted == before or (wanted is not None and wanted.same(before)):
                return before
            tables.nodes[node] = tables.nodes[node]._replace(drain=wanted)
            was, becomes = (each.facts(node=str(node)) if each else None for each in (before, wanted))
            action = "node.drain" if draining else "node.resume"
            tables.audit.append(Audit(now, None, None, actor, action, was, becomes, reason))
            return wanted

    def draining(self, node: int) -> Pause | None:
        """Return who told the node to claim nothing more."""
        with self._lock:
            row = self._tables.nodes.get(node)
            return None if row is None else row.drain

    def leader(self) -> int | None:
        """Return the node that leads now."""
        with self._lock:
            term = self._tables.terms.get(LEADER)
            return None if term is None or lapsed(term.until, now=self.now()) else int(term.holder)


def _standing(tables: Tables, job: Job, now: datetime) -> Standing:
    row = job.live
    last, tried = _last(tables, row.arrival)
    request = tables.requests.get(row.arrival) if job.state in LIVE_STATES else None
    lease = tables.claims.get(row.epoch or 0) if job.state is JobState.CLAIMED else None
    node = None if row.node is None else tables.nodes.get(row.node)
    standing = Standing(
        now,
        job,
        last=last,
        tried=tried,
        lease_until=lease.lease_until if lease else None,
        holder=None if row.node is None else holder_name(row.node, node.name if node else None),
        request=request.verb if request else None,
        asked_by=request.actor if request else None,
        asked_at=request.at if request else None,
        asked_why=request.reason if request else None,
        turn=_turn(tables, job, now),
    )
    if row.grp is None:
        return standing
    group = _group(tables, row.lane, row.grp)
    standing = standing._replace(around=_around(tables, row, group))
    if not row.holds or job.state not in LIVE_STATES:
        return standing
    if group.paused:
        until = tables.pause_ends.get((row.lane, row.grp))
        standing = standing._replace(
            group_paused=True, group_pause=_pause(tables, row.lane, row.grp), group_until=until
        )
    if job.state in IN_FLIGHT:
        return standing
    rows = tables.group_rows(row.lane, row.grp)
    before = [r for r in rows if (r.ord, r.arrival) < (row.ord, row.arrival) or r.state == JobState.CLAIMED]
    ahead = None if group.waits_for in (None, row.arrival) else _neighbour(tables, group.waits_for)
    return standing._replace(ahead=ahead, before=min(MOST, len(before)))


def _turn(tables: Tables, job: Job, now: datetime) -> int | None:
    """Return how many of its lane go before a job that keeps no order; None = nobody can say."""
    row = job.live
    rows = [r for r in tables.live.values() if r.lane == row.lane and r.state != JobState.CLAIMED]
    loose = [r for r in rows if not r.mode and r.state == JobState.PENDING]
    shared = any(r.holds for r in rows) or any(r.tenant is not None for r in loose)
    if row not in loose or shared:
        return None
    herd = [r for r in loose if r.due_at == row.due_at or row.due_at <= now]
    turn = sum((r.due_at, r.arrival) < (row.due_at, row.arrival) for r in herd)
    return None if turn > MOST else turn


def _neighbour(tables: Tables, arrival: int | None) -> Neighbour:
    [job] = [job for id_, a in tables.by_id.items() if a == arrival and (job := find(tables, id_))]
    row = job.live
    since = stuck_since(row, job.finished_at, *_last(tables, row.arrival))
    place = sequence_of(row.ord)
    return Neighbour(job.id, job.state, place, row.due_at, row.reason, job.error, since, row.tenant)


def _around(tables: Tables, row: Live, group: Group) -> tuple[Neighbour, ...]:
    """Return those next to it in its group; of those that were sent, only one in flight or the first."""
    unsent = [mate for mate in tables.group_rows(row.lane, row.grp or "") if mate.ord >= 0]
    dead = [end.job for end in tables.dead.values() if end.job.mode and end.job.grp == row.grp]
    mates = [*unsent, *group.claimed, *(mate for mate in dead if mate.lane == row.lane)]
    mates += [] if group.head is None else [group.head]
    return tuple(_neighbour(tables, mate.arrival) for mate in nearest(row, mates))


def _last(tables: Tables, arrival: int) -> tuple[Audit | None, Attempt | None]:
    """Return the last audit row and the last attempt of a job."""
    about = [a for a in tables.audit if a.arrival == arrival and not _on_request(a)]
    tried = [attempt for attempt in tables.attempts if attempt.arrival == arrival]
    return about[-1] if about else None, tried[-1] if tried else None


def _on_request(audit: Audit) -> bool:
    return (audit.actor, audit.reason) == ("penstock", ON_REQUEST)


def _names(tables: Tables) -> set[tuple[str, str]]:
    """Return the names of all groups there is something to know of."""
    rows = [row for row in tables.live.values() if row.holds]
    rows += [ended.job for ended in tables.dead.values() if ended.job.mode]
    named = {(row.lane, row.grp) for row in rows if row.grp is not None} | tables.paused
    return {(tables.lane_names[lane], group) for lane, group in named}


def _group(tables: Tables, lane: int, name: str) -> Group:
    rows = tables.group_rows(lane, name)
    claimed = [row for row in rows if row.state == JobState.CLAIMED]
    others = [row for row in rows if row.state != JobState.CLAIMED]
    head = others[0] if others else None
    return Group(claimed, head, tables.earliest_dead(lane, name), paused=(lane, name) in tables.paused)


def _group_row(tables: Tables, lane: str, name: str, now: datetime) -> GroupRow:
    number = tables.lanes[lane].id
    group, rows = _group(tables, number, name), tables.group_rows(number, name)
    blockers = [] if group.blocker is None else [group.blocker]
    blocked_at = {arrival: _neighbour(tables, arrival).since for arrival in blockers}
    pause = _pause(tables, number, name)
    told = Told(
        now,
        ids={arrival: id_ for id_, arrival in tables.by_id.items()},
        blocked_at=blocked_at,
        paused_at=pause.at if pause else None,
        waiting=sum(row.state not in IN_FLIGHT for row in rows),
        paused_until=tables.pause_ends.get((number, name)),
    )
    return group_row(lane, name, group, told)


def _pause(tables: Tables, lane: int, group: str) -> Audit | None:
    """Return the audit row of the last pause of a group."""
    pauses = [a for a in tables.audit if (a.lane, a.action, a.after) == (lane, "pause_group", group)]
    return pauses[-1] if pauses else None
