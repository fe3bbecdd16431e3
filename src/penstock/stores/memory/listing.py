"""Lists: every job that matches, sorted, from the cursor on."""

from datetime import datetime

from penstock.domain.cursors import seal, unseal
from penstock.domain.filters import MAX_PAGE, JobQuery, Page, matches, position
from penstock.domain.job import AuditEntry, AuditPage
from penstock.domain.settlement import NODE_ACTOR
from penstock.errors import InvalidQuery
from penstock.stores.memory.reading import find
from penstock.stores.memory.tables import Tables


def list_jobs(tables: Tables, query: JobQuery, now: datetime) -> Page:
    """Return one page."""
    query = query.begun(now)
    start = query.start
    found = [job for job_id in tables.by_id if (job := find(tables, job_id)) and matches(job, query)]
    places = {job.id: position(job, query.order) for job in found}
    rest = [job for job in found if start is None or places[job.id].rank > start.rank]
    rest.sort(key=lambda job: places[job.id].rank)
    shown = rest[: query.limit]
    if not query.payloads:
        shown = [job._replace(context=job.context and job.context._replace(payload=None)) for job in shown]
    more = len(rest) > query.limit
    return Page(shown, query.cursor(places[shown[-1].id]) if more else None)


def audit_log(tables: Tables, lane: str | None, limit: int, after: str | None, *, people: bool) -> AuditPage:
    """Return audit rows, newest first; a row's number is its place in the order of writing."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
    of = repr(("audit", lane, people))
    last = len(tables.audit) + 1 if after is None else unseal(after, of=of, numbers=1)[0]
    ids = {arrival: job_id for job_id, arrival in tables.by_id.items()}
    entries = []
    for number, row in reversed(list(enumerate(tables.audit[: last - 1], 1))):
        name = None if row.lane is None else tables.lane_names[row.lane]
        if lane in (None, name) and not (people and row.actor == NODE_ACTOR and row.arrival is not None):
            job = None if row.arrival is None else ids.get(row.arrival)
            entries.append(AuditEntry(number, row.at, name, job, *row[3:]))
    more = len(entries) > limit
    return AuditPage(entries[:limit], seal((entries[limit - 1].number,), of=of) if more else None)
