"""What is looked at before every send and between passes: one statement each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from penstock.domain.job import Claim
from penstock.domain.pauses import Stop, in_force
from penstock.domain.states import Verb
from penstock.ports.flow import Confirmed, Scouted, Work
from penstock.stores.sql.database import Row, Tx

# Requests are found from the claim's own list: nothing is sent but its number. There are hardly ever any.
_ASKED: Final[Mapping[str, str]] = {
    "postgres": """
        LEFT JOIN LATERAL (
          SELECT r.arrival, r.verb, array_position(c.arrivals, r.arrival) - 1 AS place
            FROM penstock.requests r
           WHERE r.arrival = ANY(c.arrivals) AND EXISTS (SELECT FROM penstock.requests)
          OFFSET 0) r ON true""",
    "sqlite": """
        LEFT JOIN (SELECT r.arrival, r.verb, j.key AS place FROM penstock.claims c
          CROSS JOIN json_each(c.arrivals) j CROSS JOIN penstock.requests r ON r.arrival = j.value
          WHERE c.id = :epoch AND EXISTS (SELECT 1 FROM penstock.requests asked)) r ON true""",
}
_CONFIRM: Final = """
    SELECT now(), c.id, c.settled, l.enabled, l.pool,
           s.scope, s.actor, s.reason, s.until,
           l.paused, l.paused_by, l.pause_reason, l.paused_until,
           p.paused, p.paused_by, p.pause_reason, p.paused_until,
           r.arrival, r.verb, r.place
      FROM (SELECT 1) one
      LEFT JOIN penstock.lanes l ON l.name = :lane
      LEFT JOIN penstock.pools p ON p.name = l.pool
      LEFT JOIN penstock.pauses s ON s.scope = 'store' AND s.name = ''
      LEFT JOIN penstock.claims c ON c.id = :epoch"""
CONFIRM: Final = {dialect: _CONFIRM + asked for dialect, asked in _ASKED.items()}
# The first entry of each index of what is ready, lane by lane. A scalar subquery with a LIMIT is one probe
# and cannot become a join: a thousand lanes cost some thousand probes, however many jobs there are.
_PENDING: Final = """
    (SELECT j.due_at FROM penstock.jobs j INDEXED BY penstock.{index}
      WHERE j.lane = l.id AND j.mode = 0 AND j.state = 1 AND {whose}
      ORDER BY j.lane, j.due_at, j.arrival LIMIT 1)"""
_READY: Final = """
    (SELECT g.next_at FROM penstock.groups g INDEXED BY penstock.{index}
      WHERE g.lane = l.id AND g.claim IS NULL AND NOT g.paused AND g.next_at IS NOT NULL AND {whose}
      ORDER BY g.lane, g.next_at, g.grp LIMIT 1)"""
_WOKEN: Final[Mapping[str, str]] = {
    "postgres": "(SELECT true FROM penstock.wakes w WHERE w.lane = l.id ORDER BY w.lane, w.id LIMIT 1)",
    "sqlite": "NULL",
}
_SCOUT: Final = f"""
    SELECT now(), l.name,
           {_PENDING.format(index="jobs_due", whose="j.tenant IS NULL")},
           {_PENDING.format(index="jobs_due_tenants", whose="num_nulls(j.tenant) = 0")},
           {_READY.format(index="groups_ready", whose="g.tenant IS NULL")},
           {_READY.format(index="groups_ready_tenants", whose="num_nulls(g.tenant) = 0")},
           {{woken}}
      FROM (SELECT 1) one LEFT JOIN penstock.lanes l ON true"""
SCOUT: Final = {dialect: _SCOUT.format(woken=woken) for dialect, woken in _WOKEN.items()}


def confirm(tx: Tx, dialect: str, claim: Claim) -> Confirmed:
    """Return what a holder must know before it sends."""
    rows = tx.fetch(CONFIRM[dialect], lane=claim.lane, epoch=claim.epoch)
    first = rows[0]
    now = _time(tx, first[0])
    mask = int.from_bytes(first[2] or b"", "big")
    asked = {row[17]: Verb(row[18]) for row in rows if row[17] is not None and not mask >> row[19] & 1}
    enabled = first[3] is None or bool(first[3])
    stops = (
        _stop(tx, "the store is paused", first[5:9]),
        None if enabled else Stop(f'lane "{claim.lane}" is disabled'),
        _stop(tx, f'lane "{claim.lane}" is paused', first[9:13]),
        _stop(tx, f'pool "{first[4]}" is paused', first[13:17]),
    )
    return Confirmed(now, ours=first[1] is not None, stopped=in_force(stops, now), asked=asked)


def scout(tx: Tx, dialect: str) -> Scouted:
    """Return when each lane next has something to do."""
    rows = tx.fetch(SCOUT[dialect])
    now, work = _time(tx, rows[0][0]), {}
    for _, lane, plain, tenants, group, tenants_group, woken in rows:
        jobs_at = _earliest(tx, plain, tenants)
        groups_at = now if woken else _earliest(tx, group, tenants_group)
        if jobs_at is not None or groups_at is not None:
            work[lane] = Work(jobs_at, groups_at)
    return Scouted(now, work)


def _earliest(tx: Tx, *values: object) -> datetime | None:
    return min((_time(tx, value) for value in values if value is not None), default=None)


def _stop(tx: Tx, what: str, row: Row) -> Stop | None:
    paused, actor, reason, until = row
    return Stop(what, actor, reason, tx.time(until)) if paused else None


def _time(tx: Tx, value: Any) -> datetime:  # noqa: ANN401
    at = tx.time(value)
    assert at is not None  # noqa: S101
    return at
