"""Limits over the whole cluster: domain/limits.py has the rules, this module the rows.

A call costs the same few statements for one limit or five hundred. The rows of `limits` are locked first, in
the order of their names, so nodes never deadlock; what is counted and read comes after that, so that whoever
waited for a lock sees what was done under it. The time is read under the lock as well: a call that had to
wait must not come with a time before the last one's.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.limits import Account, Grant, Lease, Limit, Need
from penstock.domain.limits import permit as decide
from penstock.domain.rates import Bucket
from penstock.stores.sql.database import Tx

LOCK: Final = "SELECT name, level, at FROM penstock.limits WHERE name = ANY(:names) ORDER BY name FOR UPDATE"
# How many jobs of each limit are out; a limit that does not ask for that comes without lane and slot.
_OUT: Final = """
    SELECT clock_timestamp(), {id}, CASE
           WHEN {lane} IS NOT NULL THEN (SELECT count(*) FROM (SELECT 1 FROM penstock.jobs j {out}
             WHERE j.lane = (SELECT l.id FROM penstock.lanes l WHERE l.name = {lane}) AND j.state IN (3, 4)
             LIMIT :most) q)
           WHEN {slot} IS NOT NULL THEN (SELECT count(*) FROM (SELECT 1 FROM penstock.jobs j {slots}
             WHERE j.slot = {slot} AND j.slot IS NOT NULL LIMIT :most) q)
           ELSE 0 END
      FROM {limits}"""
OUT: Final[Mapping[str, str]] = {
    "postgres": _OUT.format(
        id="k.id",
        lane="k.lane",
        slot="k.slot",
        out="",
        slots="",
        limits="unnest(:ids::text[], :lanes::text[], :slots::text[]) k(id, lane, slot)",
    ),
    "sqlite": _OUT.format(
        id="json_extract(k.value, '$[0]')",
        lane="json_extract(k.value, '$[1]')",
        slot="json_extract(k.value, '$[2]')",
        out="INDEXED BY penstock.jobs_out",
        slots="INDEXED BY penstock.jobs_slot",
        limits="json_each(:rows) k",
    ),
}
LEASES: Final = """
    SELECT name, node, tokens, slots, until, serial, lacks
      FROM penstock.limit_leases WHERE name = ANY(:names)"""
HELD: Final = ("name", "node", *Lease._fields)
KEEP: Final = """
    ON CONFLICT (name) DO UPDATE SET level = excluded.level, at = excluded.at, idle_at = excluded.idle_at"""
HOLD: Final = """
    ON CONFLICT (name, node) DO UPDATE
       SET tokens = excluded.tokens, slots = excluded.slots, until = excluded.until,
           serial = excluded.serial, lacks = excluded.lacks"""
GIVE_UP: Final = "DELETE FROM penstock.limit_leases WHERE name = ANY(:names) AND node = :node"
VOID: Final = "DELETE FROM penstock.limit_leases WHERE name = ANY(:names) AND until <= :now"
IDLE: Final = """
    SELECT l.name FROM penstock.limits l
     WHERE l.idle_at < :now AND NOT EXISTS (SELECT 1 FROM penstock.limit_leases x WHERE x.name = l.name)
     LIMIT :limit FOR UPDATE SKIP LOCKED"""
FORGET: Final = "DELETE FROM penstock.limits WHERE name = ANY(:names)"
NEW_FOR: Final = timedelta(minutes=1)


def open_accounts(tx: Tx, needs: Sequence[Need]) -> None:
    """Make the rows that are missing, apart from any lock on the others."""
    names = sorted({need.limit.id for need in needs if need.limit.limited})
    rows = [(name, None, tx.now, tx.now + NEW_FOR) for name in names]
    tx.insert("limits", ("name", "level", "at", "idle_at"), rows, on_conflict="ON CONFLICT DO NOTHING")


def permit(tx: Tx, dialect: str, node: int, needs: Sequence[Need], ttl: timedelta) -> list[Grant] | None:
    """Say what the node may have of each limit; None = some of them have no account yet."""
    limits = {need.limit.id: need.limit for need in needs if need.limit.limited}
    names = sorted(limits)
    locked = tx.fetch(LOCK, names=names) if names else []
    if len(locked) < len(names):
        return None
    now, before = accounts_of(tx, dialect, limits, locked) if names else (tx.now, {})
    after, grants = dict(before), []
    for need in needs:
        account, grant = decide(after.get(need.limit.id, Account()), need, node=node, now=now, ttl=ttl)
        grants.append(grant)
        if need.limit.limited:
            after[need.limit.id] = account
    _write(tx, node, before, after, now)
    return grants


def drop_idle(tx: Tx, limit: int) -> int:
    """Forget limits that nobody has used for so long that their buckets are full."""
    tx.execute("DELETE FROM penstock.limit_leases WHERE until < :now", now=tx.now)
    idle = [row[0] for row in tx.fetch(IDLE, now=tx.now, limit=limit)]
    if idle:
        tx.execute(FORGET, names=idle)
    return len(idle)


def accounts_of(
    tx: Tx, dialect: str, limits: Mapping[str, Limit], locked: Sequence[tuple[str, int | None, object]]
) -> tuple[datetime, dict[str, Account]]:
    """Return the time, and the books of limits whose rows were read."""
    rows = [_counted(limits[row[0]]) for row in locked]
    ids, lanes, slots = map(list, zip(*rows, strict=True))
    most = max(limit.max_in_flight or 0 for limit in limits.values())
    out = tx.fetch(OUT[dialect], ids=ids, lanes=lanes, slots=slots, rows=rows, most=most)
    now = tx.time(out[0][0])
    assert now is not None  # noqa: S101
    leases: dict[str, dict[int, Lease]] = {name: {} for name in limits}
    for name, node, tokens, slots, until, serial, lacks in tx.fetch(LEASES, names=list(limits)):
        leases[name][node] = Lease(tokens, slots, tx.time(until) or now, serial, lacks)
    open_ = {name: min(count, limits[name].max_in_flight or 0) for _, name, count in out}
    accounts = {}
    for name, level, at in locked:
        bucket = None if level is None else Bucket(level, tx.time(at) or now)
        accounts[name] = Account(bucket, leases[name], open_[name])
    return now, accounts


def _counted(limit: Limit) -> tuple[str, str | None, str | None]:
    """Return what is to be counted of a limit: the jobs of a lane, those of a slot, or none."""
    if limit.max_in_flight is None:
        return limit.id, None, None
    return (limit.id, limit.name, None) if limit.scope == "lane" else (limit.id, None, limit.slot)


def _write(
    tx: Tx, node: int, before: Mapping[str, Account], after: Mapping[str, Account], now: datetime
) -> None:
    buckets, held, given_up, void = [], [], [], []
    for name, account in after.items():
        bucket = account.bucket
        level, at = (None, now) if bucket is None else (bucket.level, bucket.at)
        buckets.append((name, level, at, account.idle_at))
        was, mine = before[name].leases, account.leases.get(node)
        if mine is not None:
            held.append((name, node, *mine))
        elif node in was:
            given_up.append(name)
        if any(lease.until <= now for other, lease in was.items() if other != node):
            void.append(name)
    tx.insert("limits", ("name", "level", "at", "idle_at"), buckets, on_conflict=KEEP)
    tx.insert("limit_leases", HELD, held, on_conflict=HOLD)
    if given_up:
        tx.execute(GIVE_UP, names=given_up, node=node)
    if void:
        tx.execute(VOID, names=void, now=now)
