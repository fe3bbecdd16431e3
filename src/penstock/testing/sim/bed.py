"""A SQLite store in memory that one scenario after the other begins with as if it were new.

Opening a database, migrating it and preparing every statement takes longer than most scenarios: so the
connection is kept and its rows are deleted.
"""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar

from penstock.domain.job import Enqueued, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.pools import Pool
from penstock.errors import PenstockError
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.database import SqliteDatabase, SqliteTx
from penstock.stores.sqlite.hotpath import SqliteHotPath
from penstock.stores.sqlite.times import to_us
from penstock.testing.sim.faults import Disaster
from penstock.testing.sim.world import START

T = TypeVar("T")
_KEPT: Final = frozenset({"penstock_migrations", "penstock_epochs"})
_TABLES: Final = r"""
    SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'penstock\_%' ESCAPE '\'
     ORDER BY name = 'penstock_audit', name"""  # deleting lanes is audited

_TRIGGER: Final = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name"

_BUMP: Final = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'penstock_contexts' RETURNING seq"
_LATE: Final = """
    INSERT INTO penstock_contexts
           (arrival, keep, lane, mode, sequence, id, message_group, payload, run_at, created_at)
    SELECT ?, keep, id, ?, ?, ?, ?, ?, ?, ? FROM penstock_lanes WHERE name = ?"""


class Limited(SqliteDatabase):
    """A database that takes no writes while `refuses` gives a reason: what a store makes of it is its own.

    SQLite says that it is read-only before anything is written, and that it is full at the latest when it
    commits: by then the store believes that all is done. What changes nothing needs no room.
    """

    refuses: Callable[[], Disaster | None] = staticmethod(lambda: None)

    def write(self, work: Callable[[SqliteTx], T]) -> T:
        """Run the closure, or fail as the real thing would."""
        why = self.refuses()
        return super().write(work if why is None else lambda tx: _refused(tx, work, why))


def _refused(tx: SqliteTx, work: Callable[[SqliteTx], T], why: Disaster) -> T:
    if why is Disaster.READ_ONLY:
        raise sqlite3.OperationalError("attempt to write a readonly database")
    before = tx.connection.total_changes
    result = work(tx)
    if tx.connection.total_changes != before:
        raise sqlite3.OperationalError("database or disk is full")
    return result


class Bed:
    """One connection and what is set up on it."""

    def __init__(self) -> None:
        self._clock: Callable[[], datetime] = lambda: START
        self._database = Limited(":memory:", clock=self._now)
        self._store = SqlStore(self._database, SqliteHotPath(), str, "penstock.stores.sqlite")
        self._store.migrate()
        rows = self._store.db.read(lambda tx: tx.fetch(_TABLES))
        self._tables = [row[0] for row in rows if row[0] not in _KEPT]

    def fresh(
        self,
        lanes: Sequence[Lane],
        pools: Sequence[Pool] = (),
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        refuses: Callable[[], Disaster | None] = lambda: None,
    ) -> SqlStore:
        """Return a store with these and nothing else; the one before it must no longer be used."""
        self._clock, self._database.refuses = clock, lambda: None
        self._store.db.write(self._empty)
        store = SqlStore(self._store.db, SqliteHotPath(), ids, self._store.migrations)
        for pool in pools:
            store.put_pool(pool, actor="sim")
        for lane in lanes:
            store.put_lane(lane, actor="sim")
        self._database.refuses = refuses
        return store

    def reserve(self) -> int:
        """Return an arrival that nobody else gets, for `write_late`."""
        return self._store.db.write(_reserve)

    def write_late(self, arrival: int, job: NewJob) -> list[Enqueued | PenstockError]:
        """Write a job under an arrival that was reserved before others came and went.

        On PostgreSQL a transaction takes its numbers early and commits late. SQLite has one writer and never
        does that, but what claims and groups make of it can be seen here as well.
        """
        assert job.id is not None
        values = (arrival, job.lane, job.mode, job.sequence, job.id, job.group, job.payload)
        return self._store.db.write(lambda tx: _write_late(tx, values, self._now(), job.id or ""))

    def script(self, sql: str) -> None:
        """Change the tables."""
        self._store.db.write(lambda tx: tx.script(sql))

    def trigger(self, name: str) -> str:
        """Return a trigger's source."""
        found = self._store.db.read(lambda tx: tx.fetch(_TRIGGER, name=name))
        source: str = found[0][0]
        return source

    def _now(self) -> datetime:
        return self._clock()

    def _empty(self, tx: Any) -> None:  # noqa: ANN401
        for table in self._tables:
            tx.connection.execute(f"DELETE FROM {table}")
        tx.connection.execute("DELETE FROM sqlite_sequence")
        tx.connection.execute("UPDATE penstock_epochs SET last = 0")


def _reserve(tx: Any) -> int:  # noqa: ANN401
    known = tx.connection.execute(_BUMP).fetchall()
    if not known:
        tx.connection.execute("INSERT INTO sqlite_sequence VALUES ('penstock_contexts', 1)")
    return known[0][0] if known else 1


def _write_late(
    tx: Any,  # noqa: ANN401
    values: tuple[object, ...],
    now: datetime,
    id_: str,
) -> list[Enqueued | PenstockError]:
    if not tx.fetch("SELECT 1 FROM penstock.contexts WHERE id = :id", id=id_):
        arrival, lane, *said = values
        tx.connection.execute(_LATE, (arrival, *said, to_us(now), to_us(now), lane))
    return [Enqueued(id_)]


@cache
def shared_bed() -> Bed:
    """Return this process's bed."""
    return Bed()
