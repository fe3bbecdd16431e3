"""Pages of jobs, each read in the order of an index and only as far as it is shown.

A section of a list (domain/filters.py) is merged from sources: rows of one table that an index keeps in the
section's order once some columns are given. Where several values of those columns are wanted (all lanes, some
states), the index is read once for each, a page's worth at most. What remains of the filters is *tried* on a
bounded number of rows per page. If that was not enough to fill the page, it ends at the *frontier*: the first
place up to which some source has been looked through; the next page goes on from there. What only a whole job
can tell (its error, its payload) is *sifted*: page after page is read and tried, a bounded number of them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, NamedTuple

from penstock.domain.filters import JobQuery, Order, Page, Position, Section, Span, matches, position
from penstock.domain.job import Job, Live
from penstock.domain.states import JobState
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import Ended, arrivals_of, contexts_of, jobs_of, lane_names, locate
from penstock.stores.sql.rows import LIVE_COLUMNS
from penstock.stores.sql.sources import FEW, Source, sources_of

TRIED: Final = 10_000
SIFTED: Final = 500
SIFTED_DEEP: Final = 200  # with payloads, each of which may be large
MOST_SIFTED: Final = 5_000
DAY: Final = timedelta(days=1)
# A caller's transaction that stays open makes its jobs' times of creation earlier than their neighbours'.
GRACE: Final = timedelta(hours=1)
KEYED: Final = """
    SELECT arrival FROM penstock.contexts INDEXED BY penstock.contexts_key
     WHERE key = :key AND key IS NOT NULL ORDER BY arrival DESC LIMIT :few"""
CLAIMS: Final = "SELECT id, arrivals, settled FROM penstock.claims WHERE lane = ANY(:lanes)"
CREATED: Final = """
    SELECT j.arrival, (SELECT x.created_at FROM penstock.contexts x
                        WHERE x.keep = j.keep AND x.arrival = j.arrival)
      FROM penstock.jobs j WHERE j.arrival >= :arrival ORDER BY j.arrival LIMIT 1"""
ENDS: Final = "SELECT (SELECT min(arrival) FROM penstock.jobs), (SELECT max(arrival) FROM penstock.jobs)"
_WIDTH: Final = len(LIVE_COLUMNS)
_DUE_AT: Final = LIVE_COLUMNS.index("due_at")


class Listed(NamedTuple):
    """A row of a list with its place in it."""

    place: Position
    job: Live
    ended: Ended | None = None


class Part(NamedTuple):
    """What a source or a section gave; `frontier` = looked through up to there, None = as far as asked."""

    rows: list[Listed]
    frontier: Position | None = None


class Bounds(NamedTuple):
    """Conditions on a section's key."""

    conditions: list[str]
    params: dict[str, object]


@dataclass(frozen=True, slots=True)
class Look:
    """One section of one page: from where, and how many rows are of use."""

    tx: Tx
    query: JobQuery
    section: Section
    lanes: Sequence[int]
    after: Position | None
    need: int


def list_jobs(tx: Tx, hot: HotPath, query: JobQuery) -> Page:
    """Return one page; all of it must be read on one snapshot."""
    if query.order is Order.OLDEST:
        query = query.begun(tx.now)
    start = query.start
    if query.ids:
        return _some(tx, hot, query, start, [*arrivals_of(tx, query.ids).values()])
    if query.key is not None:
        return _some(tx, hot, query, start, [row[0] for row in tx.fetch(KEYED, key=query.key, few=FEW)])
    if query.where:
        return _sifted(tx, hot, query, start)
    jobs, last = _page(tx, hot, query, start)
    return Page(jobs, None if last is None else query.cursor(last))


def _sifted(tx: Tx, hot: HotPath, query: JobQuery, start: Position | None) -> Page:
    """Return a page of jobs that are as `where` wants them; it may be short and still have a next one."""
    deep = any(predicate.deep for predicate in query.where)
    size = SIFTED_DEEP if deep else SIFTED
    all_of_them = replace(query, limit=size, payloads=query.payloads or deep)
    shown, last = list[Job](), start
    for _ in range(MOST_SIFTED // size):
        jobs, last = _page(tx, hot, all_of_them, last)
        for job in jobs:
            if matches(job, query):
                shown.append(job if query.payloads else _without_payload(job))
                if len(shown) == query.limit:
                    done = last is None and job is jobs[-1]
                    return Page(shown, None if done else query.cursor(position(job, query.order)))
        if last is None or len(jobs) < size:  # at the end, or looked through as much as one page may
            break
    return Page(shown, None if last is None else query.cursor(last))


def _without_payload(job: Job) -> Job:
    return job._replace(context=job.context and job.context._replace(payload=None))


def _page(tx: Tx, hot: HotPath, query: JobQuery, start: Position | None) -> tuple[list[Job], Position | None]:
    """Return jobs by all filters but `where`, and where it goes on."""
    lanes = [number for number, name in lane_names(tx).items() if query.wants_lane(name)]
    rows, frontier = list[Listed](), None
    for section in query.sections:
        if start is None or section >= start.section:
            after = start if start is not None and section == start.section else None
            part = _section(hot, Look(tx, query, section, lanes, after, query.limit + 1 - len(rows)))
            rows, frontier = rows + part.rows, part.frontier
            if frontier is not None or len(rows) > query.limit:
                break
    shown = rows[: query.limit]
    last = shown[-1].place if len(rows) > query.limit else frontier
    ended = {row.job.arrival: row.ended for row in shown if row.ended is not None}
    jobs = jobs_of(tx, [row.job for row in shown], ended, payloads=query.payloads)
    listed = jobs if query.order is not Order.OLDEST else _as_begun(jobs, query)
    return listed, last if len(listed) == len(jobs) else None


def _as_begun(jobs: list[Job], query: JobQuery) -> list[Job]:
    """Return the jobs up to the first that came after the list was begun."""
    return [*takewhile(lambda job: not query.later(job), jobs)]


def _some(tx: Tx, hot: HotPath, query: JobQuery, start: Position | None, arrivals: Sequence[int]) -> Page:
    """Return a page of jobs that are named or share a key: they are few, so all of them are looked at."""
    found = locate(tx, hot, arrivals, lock=False)
    rows = [row for arrival in arrivals if (row := found.row(arrival)) is not None]
    deep = any(predicate.deep for predicate in query.where)
    jobs = jobs_of(tx, rows, found.dead | found.history, payloads=query.payloads or deep)

    def rank(job: Job) -> tuple[int, ...]:
        return position(job, query.order).rank

    rest = [job for job in jobs if matches(job, query) and (start is None or rank(job) > start.rank)]
    shown = sorted(rest, key=rank)[: query.limit]
    after = query.cursor(position(shown[-1], query.order)) if len(rest) > len(shown) else None
    return Page(shown if query.payloads else [_without_payload(job) for job in shown], after)


def _section(hot: HotPath, look: Look) -> Part:
    """Merge the sources of a section."""
    parts = [_read(look, source) for source in sources_of(look.tx, look.query, look.section, look.lanes)]
    if look.section in (Section.LIVE, Section.ARRIVED) and JobState.CLAIMED in look.query.wanted:
        parts.append(_claimed(hot, look))
    frontiers = [part.frontier for part in parts if part.frontier is not None]
    frontier = min(frontiers, key=lambda place: place.rank, default=None)
    rows = sorted((row for part in parts for row in part.rows), key=lambda row: row.place.rank)
    if frontier is not None:
        rows = [row for row in rows if row.place.rank <= frontier.rank]
    return Part(rows[: look.need], frontier if len(rows) < look.need else None)


def _read(look: Look, source: Source) -> Part:
    """Read one source, the nearest stretch of time first."""
    rows: list[Listed] = []
    for bounds in _stretches(look, source):
        want = look.need - len(rows)
        window = max(want, TRIED // source.breadth) if source.tried else want
        found = source.best(look.tx, bounds.conditions, limit=want, window=window, **bounds.params)
        rows += [_listed(look, row) for row in _first(look.section, found, want)]
        full = len(rows) >= look.need
        # Of several stretches one may have come to the end of its window before the others filled the page.
        if source.tried and (source.breadth > 1 or not full):
            ends = source.ends(look.tx, bounds.conditions, window=window, **bounds.params)
            places = [Position(look.section, look.tx.time(at), arrival) for at, arrival in ends]
            if places:
                return Part(rows, min(places, key=lambda place: place.rank))
        if full:
            break
    return Part(rows)


def _first(section: Section, rows: list[Row], limit: int) -> list[Row]:
    """Return the first rows of the section's order, before the trouble is taken to read them."""
    at = {Section.ENDED: _WIDTH, Section.DUE: _DUE_AT}.get(section, 0)
    rows.sort(key=lambda row: (row[at], row[0]), reverse=section in (Section.LIVE, Section.ENDED))
    return rows[:limit]


def _listed(look: Look, row: Row) -> Listed:
    job = look.tx.live(row[:_WIDTH])
    ended = None
    if len(row) > _WIDTH:
        ended = Ended._make([job, look.tx.time(row[_WIDTH]), *row[_WIDTH + 1 :]])
    at = None
    if look.section is Section.ENDED and ended is not None:
        at = ended.finished_at
    elif look.section is Section.DUE:
        at = job.due_at
    return Listed(Position(look.section, at, job.arrival), job, ended)


def _stretches(look: Look, source: Source) -> Iterator[Bounds]:
    """Yield bounds on the key, one stretch after the other; whoever has enough does not ask for the next.

    History lies in partitions by day: most pages are found in a day's worth of them.
    """
    query, after = look.query, look.after
    if look.section in (Section.LIVE, Section.ARRIVED):
        yield _between_arrivals(look, created=query.created if source.table == "jobs" else Span())
        return
    if look.section is Section.DUE:
        yield _between("due_at", query.run.since, query.run.until, after)
        return
    since, until = query.finished.since, query.finished.until
    if source.table == "history":
        newest = until if after is None else after.at
        base = look.tx.now if newest is None else min(newest, look.tx.now)
        for low in (base - DAY, base - 8 * DAY):
            if since is None or since < low:
                yield _between("finished_at", low, until, after)
                until, after = low, None
    yield _between("finished_at", since, until, after)


def _between(column: str, since: datetime | None, until: datetime | None, after: Position | None) -> Bounds:
    """Return bounds on a time, and on the arrivals of that very time."""
    conditions, params = list[str](), dict[str, object]()
    if after is not None:
        params |= {"after_at": after.at, "after": after.arrival}
        edge, behind = ("<", "until") if column == "finished_at" else (">", "since")
        conditions += [f"{column} {edge}= :after_at", f"({column} {edge} :after_at OR arrival {edge} :after)"]
        # A job that was shown is within the bounds: on its side they add nothing, and one is easier to plan.
        since, until = (since, None) if behind == "until" else (None, until)
    if since is not None:
        conditions.append(f"{column} >= :since")
    if until is not None:
        conditions.append(f"{column} < :until")
    return Bounds(conditions, params | {"since": since, "until": until})


def _between_arrivals(look: Look, *, created: Span) -> Bounds:
    """Return bounds on arrivals; when a live job was created tells where to look for it."""
    firsts = [] if created.since is None else [_created_at(look.tx, created.since - GRACE)]
    ends = [] if created.until is None else [_created_at(look.tx, created.until + GRACE)]
    if look.after is not None and look.section is Section.ARRIVED:
        firsts.append(look.after.arrival + 1)
    elif look.after is not None:
        ends.append(look.after.arrival)
    conditions, params = list[str](), dict[str, object]()
    if firsts:
        conditions.append("arrival >= :first")
        params["first"] = max(firsts)
    if ends:
        conditions.append("arrival < :last")
        params["last"] = min(ends)
    return Bounds(conditions, params)


def _created_at(tx: Tx, at: datetime) -> int:
    """Return the first arrival among the live that was created at this time or later, found by halving."""
    low, high = tx.fetch(ENDS)[0]
    if low is None:  # nothing lives
        return 0
    high += 1
    while low < high:
        middle = (low + high) // 2
        [(arrival, created)] = tx.fetch(CREATED, arrival=middle)
        if created is not None and (tx.time(created) or at) >= at:
            high = middle
        else:
            low = arrival + 1
    return int(low)


def _claimed(hot: HotPath, look: Look) -> Part:
    """Return claimed jobs: claims are few, all their arrivals are looked through, and the rows of some."""
    query, after, upwards = look.query, look.after, look.section is Section.ARRIVED
    epochs = {
        arrival: epoch
        for epoch, arrivals, settled in look.tx.fetch(CLAIMS, lanes=list(look.lanes))
        for arrival in _unsettled(arrivals, settled)
        if after is None or (arrival > after.arrival if upwards else arrival < after.arrival)
    }
    tried = bool(query.group or query.tenant or query.run or query.created)
    window = sorted(epochs, reverse=not upwards)[: FEW if tried else look.need]
    jobs = _in_claims(look.tx, hot, {epochs[arrival] for arrival in window}, set(window))
    contexts = contexts_of(look.tx, jobs, payloads=False) if query.created else {}
    rows = []
    for job in jobs:
        context = contexts.get(job.arrival)
        created = query.created.covers(None if context is None else context.created_at)
        whose = query.group in (None, job.grp) and query.tenant in (None, job.tenant)
        if whose and created and query.run.covers(job.due_at):
            rows.append(Listed(Position(look.section, None, job.arrival), job))
    cut = tried and len(epochs) > len(window)
    return Part(rows, Position(look.section, None, window[-1]) if cut else None)


def _unsettled(arrivals: str | list[int], settled: bytes | None) -> list[int]:
    numbers: list[int] = json.loads(arrivals) if isinstance(arrivals, str) else arrivals
    mask = int.from_bytes(settled or b"", "big")
    return [arrival for place, arrival in enumerate(numbers) if not mask >> place & 1] if mask else numbers


def _in_claims(tx: Tx, hot: HotPath, epochs: set[int], arrivals: set[int]) -> list[Live]:
    claims = hot.claim_rows(tx, sorted(epochs))
    return [claim.shown(job) for claim in claims for job in claim.open_jobs() if job.arrival in arrivals]
