"""The audit log: pages of it, newest first, of everything or of one lane and its jobs."""

from typing import Final

from penstock.domain.cursors import seal, unseal
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import AuditEntry, AuditPage
from penstock.domain.lanes import RETENTION_DAYS
from penstock.errors import InvalidQuery
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.reading import lane_names

_COLUMNS: Final = "id, at, lane, arrival, actor, action, before, after, reason"
ALL: Final = f"SELECT {_COLUMNS} FROM penstock.audit WHERE id < :last ORDER BY id DESC LIMIT :limit"
OF_LANE: Final = f"""
    SELECT {_COLUMNS} FROM penstock.audit INDEXED BY penstock.audit_lane
     WHERE lane = :lane AND lane IS NOT NULL AND id < :last ORDER BY id DESC LIMIT :limit"""
# What people did has indexes of its own.
_PEOPLE: Final = "actor <> 'penstock' AND id + 0 < :last ORDER BY id + 0 DESC LIMIT :limit"
PEOPLE: Final = f"SELECT {_COLUMNS} FROM penstock.audit INDEXED BY penstock.audit_people WHERE {_PEOPLE}"
PEOPLE_OF_LANE: Final = f"""
    SELECT {_COLUMNS} FROM penstock.audit INDEXED BY penstock.audit_people_lane
     WHERE lane = :lane AND lane IS NOT NULL AND {_PEOPLE}"""
JOB: Final = "SELECT arrival, id FROM penstock.contexts WHERE keep = :keep AND arrival = :arrival LIMIT 1"
FIRST: Final = 1 << 62


def audit_log(tx: Tx, lane: str | None, limit: int, after: str | None, *, people: bool) -> AuditPage:
    """Return one page."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
    of = repr(("audit", lane, people))
    last = FIRST if after is None else unseal(after, of=of, numbers=1)[0]
    names = lane_names(tx)
    params = {"last": last, "limit": limit + 1}
    if lane is None:
        rows = tx.fetch(PEOPLE if people else ALL, **params)
    else:
        each = {"lane": [number for number, name in names.items() if name == lane]}
        sql = PEOPLE_OF_LANE if people else OF_LANE
        rows = tx.fetch_each(sql, each, best="id DESC", **params)
    rows.sort(key=lambda row: row[0], reverse=True)
    shown = rows[:limit]
    jobs = _ids(tx, shown)
    entries = [
        AuditEntry(number, tx.time(at), names.get(lane_id), jobs.get(arrival), *rest)  # type: ignore[arg-type]
        for number, at, lane_id, arrival, *rest in shown
    ]
    return AuditPage(entries, seal((entries[-1].number,), of=of) if len(rows) > limit else None)


def _ids(tx: Tx, rows: list[Row]) -> dict[int, str]:
    """Return the ids of the jobs that are still known; nothing tells in which retention class one was."""
    keeps = list(RETENTION_DAYS.values())
    arrivals = sorted({row[3] for row in rows if row[3] is not None})
    each = {"keep": keeps * len(arrivals), "arrival": [arrival for arrival in arrivals for _ in keeps]}
    return {row[0]: row[1] for row in tx.fetch_each(JOB, each)}
