"""Which due jobs and ready groups a claim takes: a fair share of each tenant's, then the oldest."""

import json
import sqlite3
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from penstock.stores.sql.turns import Turns

# A loose index scan: each step jumps to the first entry of the next tenant, which is its oldest.
_TENANTS: Final = """
    WITH RECURSIVE t (tenant, due, n) AS (
      SELECT * FROM (SELECT tenant, {due}, 1 FROM {table} INDEXED BY {index}
                      WHERE lane = :lane AND {where} AND tenant > :after ORDER BY tenant, {due} LIMIT 1)
      UNION ALL
      SELECT (SELECT tenant FROM {table} INDEXED BY {index}
               WHERE lane = :lane AND {where} AND tenant > t.tenant ORDER BY tenant LIMIT 1),
             (SELECT {due} FROM {table} INDEXED BY {index}
               WHERE lane = :lane AND {where} AND tenant > t.tenant ORDER BY tenant, {due} LIMIT 1), n + 1
        FROM t WHERE t.tenant IS NOT NULL AND n < :visits)
    SELECT tenant, due <= :until FROM t WHERE tenant IS NOT NULL"""
_JOB: Final = "mode = 0 AND state = 1"
_GROUP: Final = "claim IS NULL AND NOT paused AND next_at IS NOT NULL"


class Pick(NamedTuple):
    """The statements of one kind of pick; `oldest` are of those without a tenant and of those with one."""

    column: str
    tenants: str
    nobody: str
    shares: str
    oldest: tuple[str, str]


def _pick_of(table: str, column: str, due: str, where: str, *, ready: str, by_tenant: str) -> Pick:
    chosen = f"lane = :lane AND {where} AND {due} <= :until"
    nobody, somebody = "tenant IS NULL", "tenant IS NOT NULL"

    def oldest(index: str, whose: str, more: str) -> str:
        return f"""SELECT {column}, {due} FROM {table} INDEXED BY {index}
             WHERE {chosen} AND {whose} {more} ORDER BY {due}, {column} LIMIT :n"""

    others = f"AND {column} NOT IN (SELECT value FROM json_each(:chosen))"
    return Pick(
        column,
        _TENANTS.format(due=due, table=table, index=by_tenant, where=f"{where} AND {somebody}"),
        oldest(ready, nobody, ""),
        f"""SELECT j.{column} FROM json_each(:tenants) t
             CROSS JOIN {table} j ON j.lane = :lane AND j.{column} IN (
               SELECT {column} FROM {table} INDEXED BY {by_tenant}
                WHERE {chosen} AND {somebody} AND tenant = t.value ORDER BY {due}, {column} LIMIT :n)""",
        (oldest(ready, nobody, others), oldest(f"{ready}_tenants", somebody, others)),
    )


JOBS: Final = _pick_of(
    "penstock_jobs", "arrival", "due_at", _JOB, ready="penstock_jobs_due", by_tenant="penstock_jobs_tenant"
)
GROUPS: Final = _pick_of(
    "penstock_groups",
    "grp",
    "next_at",
    _GROUP,
    ready="penstock_groups_ready",
    by_tenant="penstock_groups_tenant",
)


def picked(
    connection: sqlite3.Connection, turns: Turns, pick: Pick, *, lane: int, until: int, limit: int
) -> Sequence[Any]:
    """Return the arrivals of due jobs, or the names of ready groups, to take."""
    chosen = shares(connection, turns, pick, lane=lane, until=until, limit=limit)
    if chosen is not None:
        return chosen
    params = {"lane": lane, "until": until, "n": limit}
    return [row[0] for row in connection.execute(pick.nobody, params)]


def shares(
    connection: sqlite3.Connection, turns: Turns, pick: Pick, *, lane: int, until: int, limit: int
) -> Sequence[Any] | None:
    """Return what to take where somebody has a tenant; None = nobody has, take the oldest."""
    params = {"lane": lane, "until": until}

    def walk(after: str, visits: int) -> list[tuple[str, bool]]:
        return connection.execute(pick.tenants, {**params, "after": after, "visits": visits}).fetchall()

    def nobody_waits() -> bool:
        return connection.execute(pick.nobody, {**params, "n": 1}).fetchone() is not None

    served = turns.round((pick.column, lane), limit=limit, walk=walk, nobody=nobody_waits)
    if served is None:
        return None
    tenants = json.dumps([tenant for tenant in served if tenant is not None])
    share = {**params, "tenants": tenants, "n": max(1, limit // max(1, len(served)))}
    chosen = [row[0] for row in connection.execute(pick.shares, share)]
    if None in served:
        chosen += [row[0] for row in connection.execute(pick.nobody, share)]
    wanted = limit - len(chosen)
    if wanted > 0:
        rest = {**params, "n": wanted, "chosen": json.dumps(chosen)}
        rows = [row for sql in pick.oldest for row in connection.execute(sql, rest)]
        chosen += [row[0] for row in sorted(rows, key=itemgetter(1, 0))[:wanted]]
    return chosen
