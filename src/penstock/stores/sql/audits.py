"""The audit log: pages of it, newest first, of everything or of one lane and its jobs."""

from typing import Final

from penstock.domain.cursors import seal, unseal
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import AuditEntry, AuditPage
from penstock.domain.lanes import RETENTION_DAYS
from penstock.errors import InvalidQuery
from penstock.stores.sql.database import Tx
from penstock.stores.sql.reading import lane_names

# A lane by its name, a job by its id; nothing tells in which retention class it was.
_JOB: Final = ", ".join(
    f"(SELECT c.id FROM penstock.contexts c WHERE c.keep = {keep} AND c.arrival = penstock.audit.arrival)"
    for keep in RETENTION_DAYS.values()
)
_COLUMNS: Final = f"""
    id, at, coalesce((SELECT name FROM penstock.lanes l WHERE l.id = penstock.audit.lane),
                     (SELECT name FROM penstock.former_lanes l WHERE l.id = penstock.audit.lane)) AS name,
    coalesce({_JOB}) AS job, actor, action, before, after, reason"""
ALL: Final = f"SELECT {_COLUMNS} FROM penstock.audit WHERE id < :last ORDER BY id DESC LIMIT :limit"
OF_LANE: Final = f"""
    SELECT {_COLUMNS} FROM penstock.audit INDEXED BY penstock.audit_lane
     WHERE lane = :lane AND lane IS NOT NULL AND id < :last ORDER BY id DESC LIMIT :limit"""
# What people did has indexes of its own. Nodes act on jobs: of lanes and pools a role of that name does.
_PEOPLE: Final = """
    (actor <> 'penstock' OR arrival IS NULL) AND id + 0 < :last ORDER BY id + 0 DESC LIMIT :limit"""
PEOPLE: Final = f"SELECT {_COLUMNS} FROM penstock.audit INDEXED BY penstock.audit_people WHERE {_PEOPLE}"
PEOPLE_OF_LANE: Final = f"""
    SELECT {_COLUMNS} FROM penstock.audit INDEXED BY penstock.audit_people_lane
     WHERE lane = :lane AND lane IS NOT NULL AND {_PEOPLE}"""
FIRST: Final = 1 << 62


def audit_log(tx: Tx, lane: str | None, limit: int, after: str | None, *, people: bool) -> AuditPage:
    """Return one page."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
    of = repr(("audit", lane, people))
    last = FIRST if after is None else unseal(after, of=of, numbers=1)[0]
    params = {"last": last, "limit": limit + 1}
    if lane is None:
        rows = tx.fetch(PEOPLE if people else ALL, **params)
    else:
        each = {"lane": [number for number, name in lane_names(tx).items() if name == lane]}
        sql = PEOPLE_OF_LANE if people else OF_LANE
        rows = tx.fetch_each(sql, each, best="id DESC", **params)
    rows.sort(key=lambda row: row[0], reverse=True)
    entries = [AuditEntry._make([number, tx.time(at), *rest]) for number, at, *rest in rows[:limit]]
    return AuditPage(entries, seal((entries[-1].number,), of=of) if len(rows) > limit else None)
