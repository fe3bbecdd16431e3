"""How much a store call does: statements sent, rows and pages touched, steps of SQLite's machine."""

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.pq import Trace

from penstock.stores.sql.store import SqlStore

STEP: Final = 100
_ROWS: Final = """
    SELECT (SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE schemaname = 'penstock')
         + (SELECT sum(seq_tup_read + n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_all_tables
             WHERE schemaname = 'penstock'),
           (SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)
                 + coalesce(toast_blks_hit + toast_blks_read, 0)) FROM pg_statio_all_tables
             WHERE schemaname = 'penstock')"""


class Touched(NamedTuple):
    """What the server did for one connection since its tables were made."""

    rows: float
    buffers: float

    def since(self, before: "Touched", jobs: int) -> "Touched":
        """Return what was done since, per job."""
        return Touched((self.rows - before.rows) / jobs, (self.buffers - before.buffers) / jobs)


def touched(store: SqlStore) -> Touched:
    """Read the server's own counters, after having the store's connection report."""
    for _ in range(2):  # what a session did is reported at the end of a transaction
        store.db.single(lambda tx: tx.cursor.execute("SELECT pg_stat_force_next_flush()"))
    rows, buffers = store.db.single(lambda tx: tx.cursor.execute(_ROWS).fetchall())[0]
    return Touched(float(rows), float(buffers))


@dataclass
class Wire:
    """What went to a PostgreSQL server: statements, of which `round_trips` waited for an answer."""

    statements: int = 0
    round_trips: int = 0


@contextmanager
def on_the_wire(connection: psycopg.Connection[Any]) -> Iterator[Wire]:
    """Count by libpq's own record of the messages sent: also BEGIN and COMMIT, and the pool's question."""
    wire = Wire()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        with path.open("w") as file:
            connection.pgconn.trace(file.fileno())
            connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
            try:
                yield wire
            finally:
                connection.pgconn.untrace()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            kind = line.split("\t")[2] if line.startswith("F\t") else ""
            wire.statements += kind in ("Query", "Execute")
            wire.round_trips += kind in ("Query", "Sync")


CONTROL: Final = ("BEGIN", "COMMIT", "ROLLBACK", "SET", "SAVEPOINT", "RELEASE", "PRAGMA")


class Statements:
    """The statements a store runs, without those that begin or end a transaction."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def trace(self, sql: str) -> None:
        """Note one; what SQLite does within a statement, a trigger's, is none of its own."""
        if not sql.lstrip().startswith((*CONTROL, "--")):
            self.ran.append(" ".join(sql.split()))

    @property
    def kinds(self) -> set[str]:
        """The statements, each once whatever its values: SQLite has no round trip to save by an array."""
        return {re.sub(r"'(?:[^']|'')*'|\b\d+\b|-\d+|NULL", "?", sql) for sql in self.ran}

    def watch(self, connection: psycopg.Connection[Any]) -> None:
        """Have the cursors of a connection tell."""
        told = self

        class TellingCursor(psycopg.Cursor[Any]):
            def execute(self, query: Any, params: Any = None, **options: Any) -> Any:  # noqa: ANN401
                told.trace(query.decode() if isinstance(query, bytes) else query)
                return super().execute(query, params, **options)

        connection.cursor_factory = TellingCursor


class CountingConnection:
    """A sqlite3 connection that counts what it is asked to run; an `executemany` is one statement."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.statements = 0

    def __getattr__(self, name: str) -> object:
        value = getattr(self._connection, name)
        if name not in ("execute", "executemany"):
            return value

        def counted(*arguments: object) -> object:
            self.statements += 1
            return value(*arguments)

        return counted


def steps_of(connection: sqlite3.Connection, call: Callable[[], object]) -> int:
    """Return how many steps SQLite's machine took, to the nearest hundred."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(tick, STEP)
    try:
        call()
    finally:
        connection.set_progress_handler(None, STEP)
    return count * STEP
