"""Looking jobs up, wherever they are: live, in a claim, dead, or finished."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.groups import standing_of
from penstock.domain.job import Claimed, Context, Job, Live
from penstock.domain.lanes import RETENTION_DAYS
from penstock.domain.ordering import Mode, Place, gate
from penstock.domain.states import JobState
from penstock.ports.store import GroupState
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.hotpath import ClaimRow, HotPath
from penstock.stores.sql.rows import CONTEXT_COLUMNS, FINISHED_AS_LIVE, KEPT_COLUMNS, LIVE, LIVE_COLUMNS

LOOKS: Final = 20
_ENDED: Final = f"{FINISHED_AS_LIVE}, finished_at, error, result"
ARRIVALS = "SELECT id, arrival, keep FROM penstock.contexts WHERE id = ANY(:ids)"
LIVE_ROWS = f"SELECT {LIVE} FROM penstock.jobs WHERE arrival = ANY(:arrivals) ORDER BY arrival"
DEAD_ROWS = f"SELECT {_ENDED} FROM penstock.dead WHERE arrival = ANY(:arrivals) ORDER BY arrival"
OLD_ROWS = f"SELECT {_ENDED} FROM penstock.history WHERE arrival = ANY(:arrivals)"
# Contexts and attempts lie in partitions by retention class and day: without the class all would be searched.
KNOWN = "SELECT arrival FROM penstock.contexts WHERE keep = :keep AND arrival = :arrival LIMIT 1"
_SAID: Final = (
    f"""r.revision, r.payload, r.headers, r.target, {", ".join(f"c.{name}" for name in CONTEXT_COLUMNS)}"""
)
_CONTEXT = f"""
    SELECT c.arrival, {_SAID} FROM penstock.contexts c
      LEFT JOIN penstock.revisions r ON r.arrival = c.arrival AND r.revision = :revision
     WHERE c.keep = :keep AND c.arrival = :arrival LIMIT 1"""
REVISIONS = """
    SELECT arrival, revision, payload, headers, target FROM penstock.revisions
     WHERE arrival = ANY(:arrivals)"""
# Its lane's name, the error of its last attempt, and what an operator asked of whoever has it.
_NOTED: Final = """
    coalesce((SELECT name FROM penstock.lanes WHERE id = {lane}),
             (SELECT name FROM penstock.former_lanes WHERE id = {lane})),
    (SELECT error FROM penstock.attempts WHERE keep = {keep} AND arrival = {arrival}
      ORDER BY ended_at DESC, send DESC LIMIT 1),
    (SELECT verb FROM penstock.requests WHERE arrival = {arrival})"""
# What people see of a job beside its row.
_SHOWN = f"""
    SELECT :arrival, {_NOTED.format(lane=":lane", keep=":keep", arrival=":arrival")}, {_SAID}
      FROM (SELECT 1 AS one) o
      LEFT JOIN penstock.contexts c ON c.keep = :keep AND c.arrival = :arrival
      LEFT JOIN penstock.revisions r ON r.arrival = :arrival AND r.revision = :revision LIMIT 1"""
# The same with the row, wherever it is but in a claim. History is asked for those found nowhere else.
_ONLY_LIVE: Final = {"open": "coalesce(j.open, false)", "holds": "coalesce(j.holds, false)"}
_ROW: Final = ", ".join(
    f"coalesce(j.{column}, d.{column}, h.{column})"
    if column in KEPT_COLUMNS
    else _ONLY_LIVE.get(column, f"j.{column}")
    for column in LIVE_COLUMNS
)
_BY_ID = f"""
    SELECT c.arrival, {_NOTED.format(lane="c.lane", keep="c.keep", arrival="c.arrival")}, {_SAID}, {_ROW},
           coalesce(d.finished_at, h.finished_at), coalesce(d.error, h.error), coalesce(d.result, h.result)
      FROM penstock.contexts c
      LEFT JOIN penstock.jobs j ON j.arrival = c.arrival
      LEFT JOIN penstock.dead d ON d.arrival = c.arrival
      LEFT JOIN penstock.history h
        ON h.arrival = CASE WHEN coalesce(j.arrival, d.arrival) IS NULL THEN c.arrival END
      LEFT JOIN penstock.revisions r ON r.arrival = c.arrival
            AND r.revision = coalesce(j.revision, d.revision, h.revision,
                (SELECT max(last.revision) FROM penstock.revisions last WHERE last.arrival = c.arrival))
     WHERE c.id = :id LIMIT 1"""
LANE_NAMES = """
    SELECT id, name, false FROM penstock.former_lanes UNION ALL SELECT id, name, true FROM penstock.lanes"""
GROUP = """
    SELECT claim, paused, dead_seq, dead_arrival FROM penstock.groups WHERE lane = :lane AND grp = :grp"""
HEAD = f"""
    SELECT {LIVE} FROM penstock.jobs WHERE lane = :lane AND grp = :grp AND holds
     ORDER BY lane, grp, ord, arrival LIMIT 1"""
COUNTS = """
    SELECT l.name, c.state, c.n FROM penstock.current_counts c JOIN penstock.lanes l ON l.id = c.lane"""
DEPTH = "SELECT sum(n) FROM penstock.current_counts WHERE lane = :lane AND state < 10"


_NOTES: Final = 3
_EDITED: Final = 4
_AT: Final = _NOTES + _EDITED + len(CONTEXT_COLUMNS)
_END: Final = _AT + len(LIVE_COLUMNS)


class Ended(NamedTuple):
    """A job that is dead or finished."""

    job: Live
    finished_at: datetime
    error: str | None
    result: str | None


class InClaim(NamedTuple):
    """A job that is claimed and not settled yet."""

    job: Live
    claim: ClaimRow


@dataclass(slots=True)
class Found:
    """Where jobs are, by arrival."""

    live: dict[int, Live] = field(default_factory=dict)
    claimed: dict[int, InClaim] = field(default_factory=dict)
    dead: dict[int, Ended] = field(default_factory=dict)
    history: dict[int, Ended] = field(default_factory=dict)

    def __contains__(self, arrival: int) -> bool:
        return self.row(arrival) is not None

    def row(self, arrival: int) -> Live | None:
        """Return the job's row, wherever it was found."""
        if arrival in self.live:
            return self.live[arrival]
        if arrival in self.claimed:
            return self.claimed[arrival].job
        ended = self.ended(arrival)
        return ended.job if ended is not None else None

    def ended(self, arrival: int) -> Ended | None:
        """Return the job if it is dead or finished."""
        return self.dead.get(arrival) or self.history.get(arrival)


def arrivals_of(tx: Tx, ids: Sequence[str]) -> dict[str, int]:
    """Return the arrivals of these public ids, for those that are known."""
    return {row[0]: row[1] for row in tx.fetch(ARRIVALS, ids=list(ids))}


def locate(tx: Tx, hot: HotPath, arrivals: Iterable[int], *, lock: bool) -> Found:
    """Find every job; with `lock` the rows found cannot be moved by anybody else until the end.

    A job may move from one table to another between two looks (each statement sees the newest commits), so
    what was found nowhere is looked for again; on a snapshot, which cannot lock, one look finds all there is.
    """
    found, missing = Found(), sorted(set(arrivals))
    suffix = " FOR UPDATE" if lock else ""
    for _ in range(LOOKS):
        found.live |= {row[0]: tx.live(row) for row in tx.fetch(LIVE_ROWS + suffix, arrivals=missing)}
        missing = [arrival for arrival in missing if arrival not in found]
        if missing:
            found.claimed |= _in_claims(tx, hot, missing, lock=lock)
            found.dead |= ended_rows(tx, DEAD_ROWS + suffix, missing)
            found.history |= ended_rows(tx, OLD_ROWS + suffix, missing)
            missing = [arrival for arrival in missing if arrival not in found]
        if not missing or not lock:
            return found
        missing = known(tx, missing)
    # Looked for so often and seen nowhere: retention took the job and left its context until the day is over.
    return found


def known(tx: Tx, arrivals: Sequence[int]) -> list[int]:
    """Return those of which there is a context still."""
    keeps = list(RETENTION_DAYS.values())
    each = {"keep": keeps * len(arrivals), "arrival": [arrival for arrival in arrivals for _ in keeps]}
    return sorted({row[0] for row in tx.fetch_each(KNOWN, each)})


def _in_claims(tx: Tx, hot: HotPath, arrivals: Sequence[int], *, lock: bool) -> dict[int, InClaim]:
    """Return those in a claim; one settled between the look and the lock is somewhere else by now.

    A job that was settled and claimed again is in two claims while mates keep the first one open: only one
    of them has it unsettled.
    """
    wanted = set(arrivals)
    if lock:
        epochs = sorted({epoch for _, epoch in hot.claims_of(tx, arrivals)})
        claims = [claim for epoch in epochs if (claim := hot.claim_row(tx, epoch, lock=True)) is not None]
    else:
        claims = hot.claims_with(tx, arrivals)
    return {
        job.arrival: InClaim(job, claim)
        for claim in claims
        for job in claim.open_jobs()
        if job.arrival in wanted
    }


def ended_at(tx: Tx, ids: Sequence[str]) -> dict[str, datetime]:
    """Return when those of these jobs that are finished ended; dead ones are not finished."""
    by_arrival = {arrival: id_ for id_, arrival in arrivals_of(tx, ids).items()}
    rows = ended_rows(tx, OLD_ROWS, list(by_arrival))
    known = {by_arrival[arrival]: ended.finished_at for arrival, ended in rows.items()}
    # A job whose context is gone was dropped by retention, long after its key could matter.
    gone = set(ids) - set(by_arrival.values())
    return known | dict.fromkeys(gone, datetime.min.replace(tzinfo=tx.now.tzinfo))


def find(tx: Tx, hot: HotPath, ids: Sequence[str]) -> dict[str, Job]:
    """Return jobs as people see them; all of it must be read on one snapshot."""
    seen = {row[0]: row[1:] for row in tx.fetch_each(_BY_ID, {"id": list(dict.fromkeys(ids))})}
    claimed = _in_claims(tx, hot, [arrival for arrival, row in seen.items() if row[_AT] is None], lock=False)
    jobs = []
    for arrival, row in seen.items():
        if arrival in claimed:
            jobs.append(_job(tx, claimed[arrival].claim.shown(claimed[arrival].job), row))
        elif row[_AT] is not None:
            live = tx.live(row[_AT:_END])
            ended = None if row[_END] is None else Ended(live, tx.time(row[_END]), *row[_END + 1 :])  # type: ignore[arg-type]
            jobs.append(_job(tx, live, row, ended))
    return {job.id: job for job in jobs}


def jobs_of(tx: Tx, rows: Sequence[Live], ended: Mapping[int, Ended], *, payloads: bool = True) -> list[Job]:
    """Return rows as people see them, in their order."""
    sql = _SHOWN if payloads else _without_payload(_SHOWN)
    each = {"lane": [row.lane for row in rows], **_each(rows)}
    shown = {row[0]: row[1:] for row in tx.fetch_each(sql, each)}
    return [_job(tx, row, shown[row.arrival], ended.get(row.arrival)) for row in rows]


def _job(tx: Tx, row: Live, shown: Row, end: Ended | None = None) -> Job:
    """Return a row as people see it, with the columns _NOTED and _SAID."""
    lane, error, request = shown[:_NOTES]
    context = None if shown[_NOTES + _EDITED] is None else _context(tx, shown[_NOTES:])
    return Job(
        id=f"#{row.arrival}" if context is None else context.id,
        lane=lane,
        state=JobState(row.state),
        mode=Mode(row.mode),
        live=row,
        context=context,
        finished_at=end.finished_at if end else None,
        error=end.error if end else error,
        result=end.result if end else None,
        request=None if end else request,
    )


def lane_names(tx: Tx) -> dict[int, str]:
    """Return the names of all lanes by number, of those too that were deleted."""
    return {number: name for number, name, _ in _lanes(tx)}


def current_lanes(tx: Tx) -> dict[int, str]:
    """Return the names of the lanes there are, by number."""
    return {number: name for number, name, current in _lanes(tx) if current}


def _lanes(tx: Tx) -> list[Row]:
    """Read the lanes once in a transaction, however many lists are made in it."""
    if tx.lanes is None:
        tx.lanes = tx.fetch(LANE_NAMES)
    return tx.lanes


def contexts_of(tx: Tx, rows: Iterable[Live], *, payloads: bool = True) -> dict[int, Context]:
    """Return what the callers said, as last edited."""
    sql = _CONTEXT if payloads else _without_payload(_CONTEXT)
    return {row[0]: _context(tx, row[1:]) for row in tx.fetch_each(sql, _each(list(rows)))}


def _each(rows: Sequence[Live]) -> dict[str, Sequence[object]]:
    return {
        "keep": [row.keep for row in rows],
        "arrival": [row.arrival for row in rows],
        "revision": [row.revision for row in rows],
    }


def _without_payload(sql: str) -> str:
    return sql.replace(" r.payload,", " NULL,").replace(" c.payload,", " NULL,")


def revised(tx: Tx, contexts: dict[int, Context], revisions: dict[int, int]) -> dict[int, Context]:
    """Put the edited payload, headers and target in place."""
    if revisions:
        for arrival, revision, *edited in tx.fetch(REVISIONS, arrivals=list(revisions)):
            if revisions[arrival] == revision and arrival in contexts:
                payload, headers, target = edited
                contexts[arrival] = contexts[arrival]._replace(
                    payload=payload, headers=headers, target=target
                )
    return contexts


def as_edited(tx: Tx, jobs: Sequence[Claimed]) -> list[Claimed]:
    """Return a claim's jobs with what is to be sent now, some having been edited."""
    contexts = {claimed.job.arrival: claimed.context for claimed in jobs if claimed.context is not None}
    edited = revised(tx, contexts, {c.job.arrival: c.job.revision for c in jobs if c.job.revision})
    return [Claimed(claimed.job, edited.get(claimed.job.arrival)) for claimed in jobs]


def group(tx: Tx, lane: str, name: str) -> GroupState | None:
    """Return one group as the next claim would see it, whatever its row says until then."""
    ids = {name_: number for number, name_ in current_lanes(tx).items()}
    params = {"lane": ids.get(lane, 0), "grp": name}
    rows, heads = tx.fetch(GROUP, **params), tx.fetch(HEAD, **params)
    claim, paused, dead_seq, dead_arrival = rows[0] if rows else (None, False, None, None)
    if not heads and claim is None and not paused and dead_arrival is None:
        return None
    dead = None if dead_arrival is None else Place(dead_seq, dead_arrival)
    head = tx.live(heads[0]) if heads and claim is None else None
    opens = gate(None if head is None else standing_of(head), dead)
    return GroupState(lane, name, opens.due_at, claim, opens.blocked, bool(paused), dead_arrival)


def counts(tx: Tx) -> dict[tuple[str, JobState], int]:
    """Return the counters that are not zero."""
    return {(row[0], JobState(row[1])): int(row[2]) for row in tx.fetch(COUNTS) if row[2]}


def depth(tx: Tx, lane: int) -> int:
    """Return how many jobs of a lane are not ended, from the counters."""
    return max(0, int(tx.fetch(DEPTH, lane=lane)[0][0] or 0))


def ended_rows(tx: Tx, sql: str, arrivals: Sequence[int]) -> dict[int, Ended]:
    """Return dead or finished rows, by DEAD_ROWS or OLD_ROWS."""
    if not arrivals:
        return {}
    width = len(LIVE_COLUMNS)
    return {
        row[0]: Ended._make([tx.live(row[:width]), tx.time(row[width]), *row[width + 1 :]])
        for row in tx.fetch(sql, arrivals=list(arrivals))
    }


def _context(tx: Tx, row: Row) -> Context:
    """Read the columns _SAID."""
    values = list(row[_EDITED : _EDITED + len(CONTEXT_COLUMNS)])
    for column in ("run_at", "created_at", "finish_by"):
        index = CONTEXT_COLUMNS.index(column)
        values[index] = tx.time(values[index])
    values[-1] = bool(values[-1])  # `unchecked`
    context = Context._make(values)
    revision, payload, headers, target = row[:_EDITED]
    if revision is None:
        return context
    return context._replace(payload=payload, headers=headers, target=target)
