"""Who goes next: fairness, groups, leases."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from penstock.domain.job import Claim, Claimed, Live
from penstock.domain.ordering import Mode, Standing, run
from penstock.domain.states import JobState, Move, after
from penstock.ports.store import Ask
from penstock.stores.memory.tables import Lease, Tables

T = TypeVar("T")


class Ready(NamedTuple):
    """A group that may go: as many of its first jobs as the claim takes."""

    name: str
    jobs: tuple[Live, ...]


def standing(row: Live) -> Standing:
    """Return what order needs to know of a row."""
    return Standing(row.ord, row.arrival, Mode(row.mode), JobState(row.state), row.due_at)


def claim_jobs(tables: Tables, ask: Ask, now: datetime) -> Claim | None:
    """Lease due jobs that keep no order."""
    lane = tables.lanes.get(ask.lane)
    due = [
        row
        for row in tables.live.values()
        if lane is not None
        and row.lane == lane.id
        and row.state == JobState.PENDING
        and row.grp is None
        and row.due_at <= now + ask.ahead
    ]
    due.sort(key=_oldest)
    chosen = _fair(tables, ask, due, tenant=lambda row: row.tenant, groups=False)
    return _lease(tables, ask, sorted(chosen, key=_oldest), now, groups=False)


def claim_groups(tables: Tables, ask: Ask, now: datetime) -> Claim | None:
    """Lease the first jobs of groups that are free, due and not blocked."""
    ready = sorted(_ready(tables, ask, now), key=_oldest_head)
    chosen = _fair(tables, ask, ready, tenant=lambda group: group.jobs[0].tenant, groups=True)
    rows = [row for group in sorted(chosen, key=_oldest_head) for row in group.jobs]
    return _lease(tables, ask, rows, now, groups=True)


def take_over(tables: Tables, lease: Lease, *, node: int, until: datetime) -> Claim:
    """Give a claim to another node under a new epoch."""
    old, before, epoch = lease.epoch, lease.node, next(tables.epochs)
    for arrival, row in list(tables.live.items()):
        if row.state == JobState.CLAIMED and row.epoch == old:
            tables.live[arrival] = row._replace(epoch=epoch, node=node)
    lease.epoch, lease.node, lease.lease_until = epoch, node, until
    lease.takeovers += 1
    lease.jobs = tuple(c._replace(job=c.job._replace(epoch=epoch, node=node)) for c in lease.jobs)
    tables.claims[epoch] = tables.claims.pop(old)
    return replace(lease.as_claim(), taken_from=before)


def _ready(tables: Tables, ask: Ask, now: datetime) -> list[Ready]:
    lane = tables.lanes.get(ask.lane)
    if lane is None:
        return []
    rows = [row for row in tables.live.values() if row.lane == lane.id and row.grp is not None]
    busy = {row.grp for row in rows if row.state == JobState.CLAIMED}
    ready = []
    for name in {row.grp for row in rows if row.grp is not None} - busy:
        if (lane.id, name) in tables.paused:
            continue
        first = tables.group_rows(lane.id, name)[: ask.run]
        earliest_dead = tables.earliest_dead(lane.id, name)
        length = run([standing(r) for r in first], until=now + ask.ahead, earliest_dead=earliest_dead)
        if length:
            ready.append(Ready(name, tuple(first[:length])))
    return ready


def _fair(
    tables: Tables,
    ask: Ask,
    oldest_first: Sequence[T],
    *,
    tenant: Callable[[T], str | None],
    groups: bool,
) -> list[T]:
    """Give each tenant its share of the limit, then what is left to the oldest, whoever it belongs to.

    Where there are more tenants than places, tenants take turns by name, beginning after the last one served.
    """
    queues: dict[str | None, list[T]] = {}
    for candidate in oldest_first:
        queues.setdefault(tenant(candidate), []).append(candidate)
    if not queues or ask.limit < 1:
        return []
    if len(queues) > ask.limit:
        names = sorted(queues, key=_by_name)
        last = tables.served.get((ask.lane, groups))
        later = [name for name in names if _by_name(name) > _by_name(last)]
        turn = (later + [name for name in names if name not in later])[: ask.limit]
        tables.served[ask.lane, groups] = turn[-1]
        return [queues[name][0] for name in turn]
    quota = ask.limit // len(queues)
    chosen = [candidate for queue in queues.values() for candidate in queue[:quota]]
    rest = [candidate for candidate in oldest_first if candidate not in chosen]
    return chosen + rest[: ask.limit - len(chosen)]


def _lease(tables: Tables, ask: Ask, rows: Sequence[Live], now: datetime, *, groups: bool) -> Claim | None:
    if not rows:
        return None
    epoch = next(tables.epochs)
    jobs = []
    for row in rows:
        state = after(JobState(row.state), Move.CLAIM)
        claimed = row._replace(state=state, epoch=epoch, node=ask.node, claimed_at=now)
        tables.live[row.arrival] = claimed
        jobs.append(Claimed(claimed, tables.context(row)))
    lease = Lease(
        epoch=epoch,
        lane=ask.lane,
        node=ask.node,
        claimed_at=now,
        lease_until=now + ask.lease,
        jobs=tuple(jobs),
        groups=groups,
    )
    tables.claims[epoch] = lease
    return lease.as_claim()


def _oldest(row: Live) -> tuple[datetime, int]:
    return row.due_at, row.arrival


def _oldest_head(group: Ready) -> tuple[datetime, str]:
    return group.jobs[0].due_at, group.name


def _by_name(tenant: str | None) -> tuple[bool, str]:
    return tenant is not None, tenant or ""
