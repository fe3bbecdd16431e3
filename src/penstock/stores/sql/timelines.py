"""Everything on record about one job: its attempts and its audit rows, by one statement."""

from typing import Final

from penstock.domain.job import Attempt, Audit
from penstock.ports.store import Timeline
from penstock.stores.sql.database import Row, Tx

_JOB: Final = "FROM penstock.contexts WHERE id = :id"
# Attempts are numbered 0, audit rows by their own numbers; each has the columns of the other left empty.
TIMELINE: Final = f"""
    SELECT 0, arrival, keep, attempt, send, epoch, node, claimed_at, ended_at, outcome, error, due_at,
           NULL, NULL, NULL
      FROM penstock.attempts WHERE keep = (SELECT keep {_JOB}) AND arrival = (SELECT arrival {_JOB})
     UNION ALL
    SELECT id, arrival, NULL, NULL, lane, NULL, NULL, at, NULL, actor, action, NULL, before, after, reason
      FROM penstock.audit WHERE arrival = (SELECT arrival {_JOB})"""


def timeline(tx: Tx, id_: str) -> Timeline:
    """Return what is on record about one job."""
    attempts, audit = [], []
    for number, *row in sorted(tx.fetch(TIMELINE, id=id_), key=lambda row: row[0]):
        if number:
            arrival, _, _, lane, _, _, at, _, actor, action, _, *rest = row
            audit.append(Audit._make([tx.time(at), arrival, lane, actor, action, *rest]))
        else:
            attempts.append(attempt_of(tx, tuple(row)))
    return Timeline(sorted(attempts, key=lambda each: (each.ended_at, each.send)), audit)


def attempt_of(tx: Tx, row: Row) -> Attempt:
    """Read the columns of an attempt; more may follow."""
    claimed_at, ended_at, outcome, error, due_at = row[6:11]
    times = tx.time(claimed_at), tx.time(ended_at)
    return Attempt._make([*row[:6], *times, outcome, error, tx.time(due_at)])


def audit_of(tx: Tx, row: Row) -> Audit | None:
    """Read the columns of an audit row, which may all be empty."""
    return None if row[0] is None else Audit._make([tx.time(row[0]), *row[1:]])
