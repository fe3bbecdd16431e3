"""The columns of each table in the order the code reads and writes them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from penstock.domain.job import Attempt, Audit, Context, Live
from penstock.domain.ordering import sequence_of
from penstock.domain.settlement import NODE_ACTOR, NOTES_KEPT, REPEATED, Landing
from penstock.domain.states import JobState
from penstock.stores.sql.database import Tx

LIVE_COLUMNS: Final = Live._fields
CONTEXT_COLUMNS: Final = Context._fields
ATTEMPT_COLUMNS: Final = Attempt._fields
AUDIT_COLUMNS: Final = Audit._fields

# A finished job keeps what its live row held, but for what only matters while it lives.
_ONLY_LIVE: Final = frozenset({"open", "since", "holds", "deadline", "slot"})
KEPT_COLUMNS: Final = tuple(column for column in LIVE_COLUMNS if column not in _ONLY_LIVE)
HISTORY_COLUMNS: Final = (*KEPT_COLUMNS, "finished_at", "error", "result")
DEAD_COLUMNS: Final = (*HISTORY_COLUMNS, "seq")

LIVE: Final = ", ".join(LIVE_COLUMNS)
# A finished row read as a live one: the missing columns have the value they would have.
FINISHED_AS_LIVE: Final = ", ".join(
    {"open": "false", "since": "NULL", "holds": "false", "deadline": "NULL", "slot": "NULL"}.get(
        column, column
    )
    for column in LIVE_COLUMNS
)

FORGET_NOTES: Final = "DELETE FROM penstock.audit WHERE arrival = ANY(:arrivals) AND actor = :actor"
# Of the times that these jobs were given back, or let go again, those before the last few.
FORGET_REPEATED: Final = """
    DELETE FROM penstock.audit WHERE id IN (
      SELECT q.id FROM (SELECT a.id, row_number() OVER (PARTITION BY a.arrival, a.action ORDER BY a.id DESC) n
                          FROM penstock.audit a
                         WHERE a.arrival = ANY(:arrivals) AND a.action = ANY(:actions) AND a.actor = :actor) q
       WHERE q.n >= :kept)"""

_KEPT_AT: Final = tuple(LIVE_COLUMNS.index(column) for column in KEPT_COLUMNS)


def history_row(job: Live, finished_at: datetime, error: str | None, result: str | None) -> tuple[Any, ...]:
    """Return the values of HISTORY_COLUMNS."""
    return (*(job[index] for index in _KEPT_AT), finished_at, error, result)


def insert_landings(tx: Tx, landings: Iterable[Landing], *, now: datetime) -> None:
    """Write rows where they land, with their attempts and audit rows: one statement per table touched."""
    live, dead, history, attempts, audit = [], [], [], [], []
    for landing in landings:
        job = landing.job
        if job.state == JobState.DEAD:
            row = history_row(job, now, landing.error, landing.result)
            dead.append((*row, sequence_of(job.ord)))
        elif job.state < JobState.SUCCEEDED:
            live.append(job)
        else:
            history.append(history_row(job, now, landing.error, landing.result))
        if landing.attempt is not None:
            attempts.append(landing.attempt)
        if landing.audit is not None:
            audit.append(landing.audit)
    tx.insert("jobs", LIVE_COLUMNS, live)
    tx.insert("dead", DEAD_COLUMNS, dead)
    tx.insert("history", HISTORY_COLUMNS, history)
    tx.insert("attempts", ATTEMPT_COLUMNS, attempts)
    if again := [note for note in audit if note.action in REPEATED]:
        arrivals, actions = [note.arrival for note in again], sorted({note.action for note in again})
        tx.execute(FORGET_REPEATED, arrivals=arrivals, actions=actions, actor=NODE_ACTOR, kept=NOTES_KEPT)
    tx.insert("audit", AUDIT_COLUMNS, audit)


def forget_notes(tx: Tx, arrivals: Sequence[int]) -> None:
    """Drop what nodes noted of jobs that are gone; what people did to them stays."""
    if arrivals:
        tx.execute(FORGET_NOTES, arrivals=list(arrivals), actor=NODE_ACTOR)
