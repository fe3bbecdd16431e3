"""SQLite connections: one writer behind a lock, readers apart, a transaction is a closure.

`journal_mode=WAL` lets readers go on while the writer writes; `synchronous=FULL` makes a commit durable when
it returns. SQLite has one writer at a time, in this process and in all others: a caller that leaves a
transaction open makes everybody else wait, up to `busy_timeout`, after which StoreUnavailable is raised and
the call can be repeated.

A file that was moved, deleted or replaced under its connections would still take what is written, and nobody
would ever find it: so it is looked at before every transaction and every commit, and nothing is accepted
until it is back.
"""

import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, TypeVar

from penstock.domain.job import Live
from penstock.errors import StoreClosed, StoreError, StoreUnavailable
from penstock.stores.sql.database import Row
from penstock.stores.sqlite.times import from_us, to_us
from penstock.stores.sqlite.wakeups import SqliteWakeups

T = TypeVar("T")
MEMORY: Final = ":memory:"
BUSY_TIMEOUT_S: Final = 10.0
ASK_AGAIN_MS: Final = 8  # it looks after 1, 3 and 8
MIN_VERSION: Final = (3, 35, 0)
BROKEN_TEXT: Final = "Could not decode to UTF-8"
_ANY: Final = re.compile(r"=\s*ANY\((:\w+)\)")
# How PostgreSQL's planner is kept from another index.
_FILLED: Final = re.compile(r"num_nulls\(([\w.]+)\) = 0")
_LOCK: Final = re.compile(r"\s+FOR (?:UPDATE|NO KEY UPDATE|KEY SHARE)(?: SKIP LOCKED)?\s*$")


@lru_cache(maxsize=512)
def compiled(sql: str) -> str:
    """Turn a shared statement into SQLite's form."""
    sql = _LOCK.sub("", sql.rstrip())
    sql = _ANY.sub(r"IN (SELECT value FROM json_each(\1))", sql)
    sql = _FILLED.sub(r"\1 IS NOT NULL", sql)
    sql = sql.replace(" OVERRIDING SYSTEM VALUE", "")
    return sql.replace("penstock.", "penstock_").replace("clock_timestamp()", ":now").replace("now()", ":now")


def encoded(value: object) -> object:
    """Turn a parameter into what SQLite stores."""
    if isinstance(value, datetime):
        return to_us(value)
    if isinstance(value, list | tuple | set | frozenset):
        return json.dumps([encoded(item) for item in value])
    return value


class SqliteTx:
    """One transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], datetime]) -> None:
        self.connection = connection
        self._clock = clock
        self._now: datetime | None = None
        self.lanes: list[Row] | None = None

    @property
    def now(self) -> datetime:
        """The injected clock, read once per transaction."""
        if self._now is None:
            self._now = self._clock()
        return self._now

    def fetch(self, sql: str, **params: object) -> list[Row]:
        """Run a shared statement and return its rows."""
        return self._run(sql, params).fetchall()

    def fetch_each(
        self,
        sql: str,
        each: Mapping[str, Sequence[object]],
        *,
        best: str = "",  # noqa: ARG002
        **params: object,
    ) -> list[Row]:
        """Run a shared statement once for each set of values: there is no round trip to save."""
        text, shared = self._prepared(sql, params)
        rows: list[Row] = []
        for values in zip(*each.values(), strict=True):
            own = {name: encoded(value) for name, value in zip(each, values, strict=True)}
            rows += self.connection.execute(text, shared | own)
        return rows

    def execute(self, sql: str, **params: object) -> int:
        """Run a shared statement and return how many rows it touched."""
        return self._run(sql, params).rowcount

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, on_conflict: str = ""
    ) -> None:
        """Insert the rows with one prepared statement."""
        if rows:
            names, marks = ",".join(columns), ",".join("?" * len(columns))
            sql = f"INSERT INTO penstock_{table} AS t ({names}) VALUES ({marks}) {on_conflict}"
            self.connection.executemany(sql, ([encoded(value) for value in row] for row in rows))

    def script(self, sql: str) -> None:
        """Run several statements, inside the transaction (executescript would commit it)."""
        for statement in statements(sql):
            self.connection.execute(statement)

    def time(self, value: int | None) -> datetime | None:
        """Read a time column."""
        return from_us(value)

    def live(self, row: Sequence[Any]) -> Live:
        """Read the columns of a live row."""
        return live(row)

    def _run(self, sql: str, params: Mapping[str, object]) -> sqlite3.Cursor:
        return self.connection.execute(*self._prepared(sql, params))

    def _prepared(self, sql: str, params: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        """Return a shared statement in SQLite's words, and the values for it as it has them."""
        values = {name: encoded(value) for name, value in params.items()}
        if "now()" in sql or "clock_timestamp()" in sql:
            values["now"] = to_us(self.now)
        return compiled(sql), values


_TIMES: Final = tuple(
    map(
        Live._fields.index, ("due_at", "start_by", "since", "claimed_at", "sent_at", "started_at", "deadline")
    )
)
_FLAGS: Final = tuple(map(Live._fields.index, ("open", "holds")))


def live(row: Sequence[Any]) -> Live:
    """Read the columns of a live row."""
    values = list(row)
    for index in _TIMES:
        values[index] = from_us(values[index])
    for index in _FLAGS:
        values[index] = bool(values[index])
    return Live._make(values)


def statements(script: str) -> Iterable[str]:
    """Split a script at the semicolons that end a statement (a trigger's body holds some that do not)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _kept_bytes(value: bytes) -> str:
    """Read text in which bytes that are no UTF-8 stand for themselves: encoding it back gives them again."""
    return value.decode("utf-8", "surrogateescape")


class SqliteDatabase:
    """One database file (or `:memory:`), shared by the threads of a process."""

    dialect = "sqlite"

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], datetime],
        busy_timeout: float = BUSY_TIMEOUT_S,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        if sqlite3.sqlite_version_info < MIN_VERSION:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; Penstock needs 3.35 or newer")
        self._path = str(path) if str(path) == MEMORY else str(Path(path).absolute())
        self._clock = clock
        self._timeout = busy_timeout
        self._trace = trace
        self._lock = threading.RLock()
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._closed = False
        self._writer = self._connect()
        self._writer.execute(f"PRAGMA busy_timeout={ASK_AGAIN_MS}")  # see _begin
        self._file = _identity(self._path)

    def write(self, work: Callable[[SqliteTx], T]) -> T:
        """Run the closure between BEGIN IMMEDIATE and COMMIT; nothing of it stays if it raises."""
        with self._lock, translated("write"):
            self._require_open("write")
            try:
                return self._transaction(work)
            except sqlite3.OperationalError as error:
                if BROKEN_TEXT not in str(error):
                    raise
            # Somebody stored bytes that are no text, by plain SQL: one such job must not stop its lane.
            self._writer.text_factory = _kept_bytes
            try:
                return self._transaction(work)
            finally:
                self._writer.text_factory = str

    def relaxed(self, work: Callable[[SqliteTx], T]) -> T:
        """Run the closure as `write` does, without waiting for the disk.

        It survives the death of any process. When the machine dies it may be lost, but so are all nodes then.
        """
        with self._lock:
            self._require_open("write")
            self._writer.execute("PRAGMA synchronous=NORMAL")
            try:
                return self.write(work)
            finally:
                self._writer.execute("PRAGMA synchronous=FULL")

    def _transaction(self, work: Callable[[SqliteTx], T]) -> T:
        self._require_file("write")
        self._begin()
        try:
            result = work(SqliteTx(self._writer, self._clock))
            self._require_file("write")
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise
        return result

    def _begin(self) -> None:
        """Become the one who writes, as soon as nobody else does.

        SQLite looks less and less often whether the file is free, at last ten times a second. Whoever met one
        slow commit would wait much longer than that took: so it is told to give up soon, and asked again.
        """
        until = monotonic() + self._timeout
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or monotonic() >= until:
                    raise
            else:
                return

    def read(self, work: Callable[[SqliteTx], T]) -> T:
        """Run the closure on one snapshot, beside the writer."""
        with self.frozen() as tx:
            return work(tx)

    @contextmanager
    def frozen(self) -> Iterator[SqliteTx]:
        """Open a snapshot, beside the writer."""
        self._require_open("read")
        if self._path == MEMORY:
            with self._lock:
                yield SqliteTx(self._writer, self._clock)
            return
        self._require_file("read")
        with self._reader() as connection, translated("read"):
            connection.execute("BEGIN")
            try:
                yield SqliteTx(connection, self._clock)
            finally:
                connection.execute("ROLLBACK")

    def look(self, work: Callable[[SqliteTx], T]) -> T:
        """Run the closure as every read is."""
        return self.read(work)

    def snapshot(self, work: Callable[[SqliteTx], T]) -> T:
        """Run the closure on one snapshot, as every read is."""
        return self.read(work)

    def wake(self, lanes: Collection[str]) -> None:
        """Do nothing: those who wait look at the file."""

    def wakeups(self) -> SqliteWakeups | None:
        """Return a way to wait for commits; none in memory, where only this process could make one."""
        return None if self._path == MEMORY else SqliteWakeups(self._path)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._closed = True
            self._writer.close()
        while True:
            try:
                self._readers.get_nowait().close()
            except Empty:
                return

    def _require_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosed(operation)

    def _require_file(self, operation: str) -> None:
        """Raise StoreUnavailable unless the path still leads to the file that is open."""
        there = _identity(self._path)
        if there == self._file:
            return
        what = "moved or deleted" if there is None else "replaced by another one"
        raise StoreUnavailable(
            f"{operation} (the file {self._path} was {what} while it is in use: put it back,"
            " or restart everything that uses it to go on with what is there)"
        )

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._readers.get_nowait()
        except Empty:
            connection = self._connect()
        try:
            yield connection
        finally:
            self._readers.put(connection)

    def _connect(self) -> sqlite3.Connection:
        with translated("connect", self._path):
            connection = sqlite3.connect(
                self._path,
                timeout=self._timeout,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            if self._trace is not None:
                connection.set_trace_callback(self._trace)
            return connection


def _identity(path: str) -> tuple[int, int] | None:
    """Return which file a path leads to; None = to none."""
    if path == MEMORY:
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - on every transaction: no Path is made for it
    except OSError:
        return None
    return found.st_dev, found.st_ino


PRAGMAS: Final = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=OFF",
    "cache_size=-65536",
    "temp_store=MEMORY",
    "recursive_triggers=OFF",
)
_TRANSIENT: Final = {
    "locked": ": somebody has been writing to it for long; end that transaction, or try again",
    "busy": "",
    "unable to open": ": see that its folder is there and that you may write in it",
    "disk I/O": "",
    "readonly": ": see that you may write to the file and in its folder",
    "full": ": make room",
}  # words of errors that pass by themselves, and what to do about them
_NOT_OURS: Final = "not a database"
_ANOTHER: Final = (
    ": it is no SQLite file; name another store (--store, PENSTOCK_STORE), or move this file away"
)


@contextmanager
def translated(operation: str, file: str = "") -> Iterator[None]:
    """Name the errors that pass by themselves; leave bugs as they are."""
    where = f" {file}" if file else ""
    try:
        yield
    except sqlite3.OperationalError as error:
        for word, fix in _TRANSIENT.items():
            if word in str(error):
                raise StoreUnavailable(f"{operation}{where and f' to{where}'} ({error}{fix})") from error
        raise
    except sqlite3.DatabaseError as error:
        # Of its own class when the file is damaged or none of SQLite's: waiting will not help.
        if type(error) is sqlite3.DatabaseError:
            fix = _ANOTHER if _NOT_OURS in str(error) else ""
            raise StoreError(f"cannot {operation}{where and f' to{where}'}: {error}{fix}") from error
        raise
