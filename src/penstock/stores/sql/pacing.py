"""What is looked at before every send and between passes: one statement each."""

from collections.abc import Callable, Mapping
from datetime import datetime
from time import perf_counter
from typing import Any, Final

from penstock.domain.job import Claim
from penstock.domain.pauses import Stop, in_force
from penstock.domain.states import Verb
from penstock.ports.flow import Confirmed, Scouted, Work
from penstock.stores.sql.database import Database, Row, Tx
from penstock.stores.sql.dearness import Dearness

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
      WHERE j.lane = l.id AND j.mode = 0 AND j.state = 1 AND {whose} {low}
      ORDER BY j.lane, j.due_at, j.arrival LIMIT 1)"""
_READY: Final = """
    (SELECT g.next_at FROM penstock.groups g INDEXED BY penstock.{index}
      WHERE g.lane = l.id AND g.claim IS NULL AND NOT g.paused AND g.next_at IS NOT NULL AND {whose} {low}
      ORDER BY g.lane, g.next_at, g.grp LIMIT 1)"""
_WOKEN: Final = """
    (SELECT w.id FROM penstock.wakes w WHERE w.lane = l.id AND w.id >= coalesce(h.woken, 0)
      ORDER BY w.lane, w.id LIMIT 1)"""
_LOWS: Final[Mapping[str, str]] = {
    "plain": "AND j.due_at >= coalesce(h.plain, '-infinity')",
    "tenants": "AND j.due_at >= coalesce(h.tenants, '-infinity')",
    "groups": "AND g.next_at >= coalesce(h.groups, '-infinity')",
    "tenant_groups": "AND g.next_at >= coalesce(h.tenant_groups, '-infinity')",
}


def _scout(low: Mapping[str, str], woken: str, hints: str) -> str:
    nobody, somebody = "{0}.tenant IS NULL", "num_nulls({0}.tenant) = 0"
    first = (
        _PENDING.format(index="jobs_due", whose=nobody.format("j"), low=low["plain"]),
        _PENDING.format(index="jobs_due_tenants", whose=somebody.format("j"), low=low["tenants"]),
        _READY.format(index="groups_ready", whose=nobody.format("g"), low=low["groups"]),
        _READY.format(index="groups_ready_tenants", whose=somebody.format("g"), low=low["tenant_groups"]),
        woken,
    )
    return f"""
    SELECT now(), l.id, l.name, {", ".join(first)}
      FROM (SELECT 1) one LEFT JOIN penstock.lanes l ON true {hints}"""


_HINTS: Final = """
      LEFT JOIN unnest(:ids::int[], :plain::timestamptz[], :tenants::timestamptz[], :groups::timestamptz[],
        :tenant_groups::timestamptz[], :woken::bigint[]) h(id, plain, tenants, groups, tenant_groups, woken)
        ON h.id = l.id"""
SCOUT: Final[Mapping[str, str]] = {
    "postgres": _scout(_LOWS, _WOKEN, _HINTS),
    "sqlite": _scout(dict.fromkeys(_LOWS, ""), "NULL", ""),
}
PER_LANE_S: Final = 0.00005
Lows = tuple[Any, Any, Any, Any, Any]


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


class Looks:
    """Where a look at all lanes begins, while an old snapshot keeps dead entries at the left of the indexes.

    A backup, or a forgotten session, keeps vacuum from removing what was claimed, and every look would read
    all of it again. While that is dear for the number of lanes, looks begin where the last one found
    something, but never right of its time: what is enqueued or goes again later is seen.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._lows: dict[int, Lows] = {}
        self._dearness = Dearness()

    def scout(self, db: Database) -> Scouted:
        """Return when each lane next has something to do."""
        started = self._clock()
        part = self._dearness.rests(started)
        scouted, rows = db.look(lambda tx: _scouted(tx, db.dialect, self._lows if part else {}))
        ended = self._clock()
        cost = ended - started - PER_LANE_S * len(rows)
        if part:
            self._dearness.part(cost)
        else:
            self._dearness.whole(cost, at=ended)
        self._lows = {lane: _lower(found, self._lows.get(lane)) for lane, found in rows.items()}
        return scouted


def _lower(found: Lows, before: Lows | None) -> Lows:
    """Return where each index may be read from next time: a lane that ran empty is not read from the left."""
    if before is None:
        return found
    a, b, c, d, e = (old if new is None else new for new, old in zip(found, before, strict=True))
    return a, b, c, d, e


def _scouted(tx: Tx, dialect: str, lows: Mapping[int, Lows]) -> tuple[Scouted, dict[int, Lows]]:
    columns = list(zip(*lows.values(), strict=True)) or [()] * 5
    names = ("plain", "tenants", "groups", "tenant_groups", "woken")
    given = {name: list(column) for name, column in zip(names, columns, strict=True)}
    rows = tx.fetch(SCOUT[dialect], ids=list(lows), **given)
    now, work = _time(tx, rows[0][0]), {}
    found: dict[int, Lows] = {}
    for at, number, lane, plain, tenants, group, tenant_group, woken in rows:
        a, b, c, d = (first and min(first, at) for first in (plain, tenants, group, tenant_group))
        found[number] = (a, b, c, d, woken)
        jobs_at = _earliest(tx, plain, tenants)
        groups_at = now if woken is not None else _earliest(tx, group, tenant_group)
        if jobs_at is not None or groups_at is not None:
            work[lane] = Work(jobs_at, groups_at)
    return Scouted(now, work), found


def _earliest(tx: Tx, *values: object) -> datetime | None:
    return min((_time(tx, value) for value in values if value is not None), default=None)


def _stop(tx: Tx, what: str, row: Row) -> Stop | None:
    paused, actor, reason, until = row
    return Stop(what, actor, reason, tx.time(until)) if paused else None


def _time(tx: Tx, value: Any) -> datetime:  # noqa: ANN401
    at = tx.time(value)
    assert at is not None  # noqa: S101
    return at
