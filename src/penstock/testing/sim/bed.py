"""A SQLite store in memory that one scenario after the other begins with as if it were new.

Opening a database, migrating it and preparing every statement takes longer than most scenarios: so the
connection is kept and its rows are deleted.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from penstock.domain.lanes import Lane
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.hotpath import SqliteHotPath
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.sim.world import START

_KEPT: Final = frozenset({"penstock_migrations", "penstock_epochs"})
_TABLES: Final = r"""
    SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'penstock\_%' ESCAPE '\'
     ORDER BY name = 'penstock_audit', name"""  # deleting lanes is audited

_TRIGGER: Final = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = :name"


class Bed:
    """One connection and what is set up on it."""

    def __init__(self) -> None:
        self._clock: Callable[[], datetime] = lambda: START
        self._store = SqliteStore(":memory:", clock=self._now, ids=str)
        self._store.migrate()
        rows = self._store.db.read(lambda tx: tx.fetch(_TABLES))
        self._tables = [row[0] for row in rows if row[0] not in _KEPT]

    def fresh(
        self, lanes: Sequence[Lane], *, clock: Callable[[], datetime], ids: Callable[[], str]
    ) -> SqlStore:
        """Return a store with these lanes and nothing else; the one before it must no longer be used."""
        self._clock = clock
        self._store.db.write(self._empty)
        store = SqlStore(self._store.db, SqliteHotPath(), ids, self._store.migrations)
        for lane in lanes:
            store.put_lane(lane, actor="sim")
        return store

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


@cache
def shared_bed() -> Bed:
    """Return this process's bed."""
    return Bed()
