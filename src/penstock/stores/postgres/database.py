"""PostgreSQL connections: a pool, a transaction is a closure, deadlocks are run again.

Every session is READ COMMITTED on purpose: a claim leases group rows in one statement and reads their jobs in
the next, which must see everything committed before the lock was had. Plans are pinned to indexes
(`enable_seqscan=off`): queue tables change size faster than statistics do, and one sequential scan of a
million jobs is worse than any index.

No closure waits for anything but the database. A session that is idle within a transaction therefore belongs
to a process that is stopped or cut off, and holds locks for which others wait: the server ends it after 5 s.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from time import monotonic
from typing import Any, ClassVar, Final, Self, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from penstock.domain.job import Live
from penstock.errors import RIGHTS, StoreClosed, StoreError, StoreUnavailable
from penstock.stores.postgres.addresses import discreet
from penstock.stores.postgres.arrays import array, listed
from penstock.stores.postgres.columns import TYPES
from penstock.stores.postgres.copying import copy_sql, rows_text
from penstock.stores.postgres.wakeups import NOTIFY, Pace, PostgresWakeups, allowed
from penstock.stores.sql.database import Row

T = TypeVar("T")
# Callers are told by an exception; what the pool logs meanwhile is for those who have set up a log.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class Moved(Exception):
    """A row went elsewhere between being chosen and being taken; the transaction must start again."""


RUN_AGAIN: Final = (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable, Moved)
# Errors that pass as a lost connection does, though the driver has them among those that do not.
PASSING: Final = (pg.IdleInTransactionSessionTimeout, pg.TransactionTimeout, pg.ReadOnlySqlTransaction)
RUNS: Final = 10
IDLE_S: Final = 1.0
BACK_WITHIN_S: Final = 4.0
PATIENCE_S: Final = 4.0  # for a connection: whoever asks a node must hear in time that the server is away
# A server or a network that is gone without a word is noticed within half a minute, not in two hours.
PATIENCE: Final[Mapping[str, int]] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
SETTINGS: Final = """
    SET default_transaction_isolation = 'read committed';
    SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET timezone = 'UTC'; SET search_path = pg_catalog;
    SET idle_in_transaction_session_timeout = '5s'"""
_NAME: Final = re.compile(r"(?<!:):([a-z_]\w*)")
_INDEX: Final = re.compile(r"\s+INDEXED BY \S+")
# What is read like this is read in the order of an index: never sort what can be had sorted, nor read a whole
# table to join some rows of it.
SNAPSHOT: Final = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL statement_timeout = '10s'; SET LOCAL enable_sort = off;
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
    SELECT now()"""


@lru_cache(maxsize=512)
def compiled(sql: str) -> str:
    """Turn a shared statement into psycopg's form; a cast (`::bigint[]`) survives."""
    return _NAME.sub(r"%(\1)s", _INDEX.sub("", sql).replace("%", "%%"))


@lru_cache(maxsize=256)
def each_sql(sql: str, names: tuple[str, ...], best: str) -> str:
    """Return a statement that runs another for each set of values; its LIMIT keeps it from being a join."""
    body = re.sub(rf"(?<!:):({'|'.join(names)})\b", r"each.\1", sql)
    arrays = ", ".join(f":{name}::{TYPES[name]}[]" for name in names)
    order = f"ORDER BY {best} LIMIT :limit" if best else ""
    return f"SELECT q.* FROM unnest({arrays}) each({', '.join(names)}) CROSS JOIN LATERAL ({body}) q {order}"


@lru_cache(maxsize=256)
def insert_sql(table: str, columns: tuple[str, ...], on_conflict: str) -> str:
    """Return an INSERT that takes one array per column."""
    names, arrays = ",".join(columns), ",".join(f"%s::{TYPES[column]}[]" for column in columns)
    return f"INSERT INTO penstock.{table} AS t ({names}) SELECT * FROM unnest({arrays}) {on_conflict}"


class PostgresTx:
    """One transaction on one connection."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection
        self.cursor = connection.cursor(binary=True)
        self._now: datetime | None = None
        self.lanes: list[Row] | None = None

    @property
    def now(self) -> datetime:
        """The database's time at the start of the transaction."""
        if self._now is None:
            self._now = self.fetch("SELECT now()")[0][0]
        return self._now

    def fetch(self, sql: str, **params: object) -> list[Row]:
        """Run a shared statement and return its rows."""
        return self._run(sql, params).fetchall()

    def fetch_each(
        self, sql: str, each: Mapping[str, Sequence[object]], *, best: str = "", **params: object
    ) -> list[Row]:
        """Run a shared statement for each set of values, all in one round trip; for none of them, none."""
        if not all(each.values()):
            return []
        arrays = {name: list(values) for name, values in each.items()}
        return self.fetch(each_sql(sql, tuple(each), best), **arrays, **params)

    def execute(self, sql: str, **params: object) -> int:
        """Run a shared statement and return how many rows it touched."""
        return self._run(sql, params).rowcount

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, on_conflict: str = ""
    ) -> None:
        """Insert the rows with one statement."""
        if rows:
            arrays = [
                array(TYPES[name], column)
                for name, column in zip(columns, zip(*rows, strict=True), strict=True)
            ]
            self.cursor.execute(insert_sql(table, tuple(columns), on_conflict), arrays)

    def copy(
        self,
        table: str,
        kinds: Mapping[str, str],
        shared: Mapping[str, object],
        own: Mapping[str, Sequence[Any]],
    ) -> None:
        """Append rows by COPY: the values that all rows share, and the columns of those they do not."""
        with self.cursor.copy(copy_sql(table, (*shared, *own))) as copy:
            for text in rows_text(kinds, shared, own):
                copy.write(text)

    def script(self, sql: str) -> None:
        """Run several statements."""
        self.connection.execute(sql.encode(), prepare=False)

    def begin_snapshot(self) -> None:
        """Read as of now, and learn by the way when that is."""
        answers = self.connection.execute(SNAPSHOT.encode(), prepare=False)
        while answers.nextset():
            pass
        [(self._now,)] = answers.fetchall()

    def time(self, value: datetime | None) -> datetime | None:
        """Read a time column: psycopg has done it."""
        return value

    def live(self, row: Sequence[Any]) -> Live:
        """Read the columns of a live row."""
        return Live._make(row)

    def _run(self, sql: str, params: Mapping[str, object]) -> psycopg.Cursor[Row]:
        return self.cursor.execute(compiled(sql), {name: listed(value) for name, value in params.items()})


class PooledConnection(psycopg.Connection[Row]):
    """A connection that knows when it last answered, of a class that knows why there is none."""

    answered_at = 0.0
    refused: ClassVar[dict[str, str]] = {}  # by connection string: what came of the last try, if it failed

    @classmethod
    def connect(cls, conninfo: str = "", **options: Any) -> Self:  # noqa: ANN401 - the driver's own
        """Connect, and remember why that failed: the pool only says that it took too long."""
        try:
            with discreet(conninfo):
                connection = super().connect(conninfo, **options)
        except psycopg.Error as error:
            cls.refused[conninfo] = " ".join(str(error).split())
            raise
        cls.refused.pop(conninfo, None)
        return connection


class PostgresDatabase:
    """A pool of connections to one database."""

    dialect = "postgres"

    def __init__(
        self,
        url: str,
        *,
        max_connections: int = 8,
        connection_class: type[PooledConnection] = PooledConnection,
    ) -> None:
        self._lost_at = 0.0
        self._url = url
        self._pace = Pace()
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=max_connections,
            connection_class=connection_class,
            kwargs={"autocommit": True, "prepare_threshold": 2} | _patience(url),
            configure=_configure,
            check=self._check,
            timeout=PATIENCE_S,
            # The pool waits twice as long after each failure, but starts afresh when it has given up.
            reconnect_timeout=BACK_WITHIN_S,
            open=False,
            name="penstock",
        )
        self._pool.open()

    def write(self, work: Callable[[PostgresTx], T]) -> T:
        """Run the closure in a transaction; again from the start after a deadlock."""
        return self._again(lambda connection: self._transaction(connection, work))

    def relaxed(self, work: Callable[[PostgresTx], T]) -> T:
        """Run the closure as `write` does: nodes outlive a server that crashes, so it must not forget."""
        return self.write(work)

    def single(self, work: Callable[[PostgresTx], T]) -> T:
        """Run a closure that is one statement: it commits by itself, without two round trips more."""
        return self._again(lambda connection: work(PostgresTx(connection)))

    def queued(self, work: Callable[[PostgresTx], T]) -> T:
        """Run a closure that looks at no result in a transaction: all of it is one round trip.

        What its cursors brought is there when this returns; an error comes then, too. There is no BEGIN: what
        is sent before an answer is asked for is one transaction, to say so took as long as three statements.
        """

        def piped(connection: psycopg.Connection[Row]) -> T:
            with connection.pipeline():
                return work(PostgresTx(connection))

        return self._again(piped)

    def read(self, work: Callable[[PostgresTx], T]) -> T:
        """Run a closure that only reads: each statement sees what is committed by then, as in a transaction.

        That would cost two round trips more; a look at all settings is half a dozen of these.
        """
        return self.single(work)

    def look(self, work: Callable[[PostgresTx], T]) -> T:
        """Run a closure that is one SELECT."""
        return self.single(work)

    def snapshot(self, work: Callable[[PostgresTx], T]) -> T:
        """Run a closure that only reads, on one snapshot and not for long."""

        def frozen(tx: PostgresTx) -> T:
            tx.begin_snapshot()
            return work(tx)

        return self.write(frozen)

    @contextmanager
    def frozen(self) -> Iterator[PostgresTx]:
        """Open a snapshot."""
        try:
            with translated("transaction"), self._pool.connection() as connection, connection.transaction():
                tx = PostgresTx(connection)
                tx.begin_snapshot()
                yield tx
                connection.answered_at = monotonic()
        except RUN_AGAIN as error:  # whoever reads has seen a part of it
            raise StoreUnavailable(f"transaction ({_first_line(error)})") from error

    def wake(self, lanes: Collection[str]) -> None:
        """Notify those who listen, not too often."""
        names = allowed(self._pace, lanes)
        if names:
            self.single(lambda tx: tx.fetch(NOTIFY, lanes=names))

    def wakeups(self) -> PostgresWakeups:
        """Return a connection that listens."""
        return PostgresWakeups(self._url)

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    def _transaction(self, connection: psycopg.Connection[Row], work: Callable[[PostgresTx], T]) -> T:
        with connection.transaction():
            return work(PostgresTx(connection))

    def _again(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        for left in range(RUNS - 1, -1, -1):
            try:
                with translated("transaction"), self._pool.connection() as connection, writable(connection):
                    result = work(connection)
                    connection.answered_at = monotonic()
                    return result
            except StoreUnavailable as error:
                self._lost_at = monotonic()
                why = PooledConnection.refused.get(self._url)
                if why is not None and isinstance(error.__cause__, PoolTimeout):
                    raise StoreUnavailable(f"transaction ({why})") from error
                raise
            except RUN_AGAIN as error:
                if not left:
                    raise StoreUnavailable(f"transaction ({_first_line(error)})") from error
            except pg.CheckViolation as error:
                if not left or "no partition of relation" not in str(error):
                    raise
                self._prepare()
        raise AssertionError("unreachable")

    def _check(self, connection: PooledConnection) -> None:
        """Ask a connection whether it is still there if it was idle, or if another one was lost since."""
        if connection.answered_at < max(self._lost_at, monotonic() - IDLE_S):
            ConnectionPool.check_connection(connection)

    def _prepare(self) -> None:
        """Make the partitions that housekeeping would have made, had any node run these days."""
        with self._pool.connection() as connection:
            connection.execute("SELECT penstock.prepare()")


def _patience(url: str) -> dict[str, int]:
    """Return how long to wait for a network that says nothing; what the URL says about that counts."""
    try:
        said = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return {}  # whoever connects is told
    return {name: value for name, value in PATIENCE.items() if name not in said}


def _first_line(error: Exception) -> str:
    """Return what an error says, without the statement that the server quotes below."""
    return str(error).partition("\n")[0]


def _configure(connection: psycopg.Connection[Row]) -> None:
    connection.execute(SETTINGS.encode(), prepare=False)


@contextmanager
def writable(connection: PooledConnection) -> Iterator[None]:
    """Drop a connection to a server that takes no writes: after a failover another may lead elsewhere."""
    try:
        yield
    except pg.ReadOnlySqlTransaction:
        connection.close()
        raise


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Name the errors that pass by themselves; leave bugs as they are."""
    try:
        yield
    except (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable):
        raise
    except pg.InsufficientPrivilege as error:
        raise StoreError(f"the database refuses this user: {error.diag.message_primary}; {RIGHTS}") from error
    except pg.RestrictViolation as error:  # a lane got a job while it was being deleted
        raise StoreError(str(error.diag.message_primary)) from error
    except PoolClosed as error:
        raise StoreClosed(operation) from error
    except (psycopg.OperationalError, *PASSING, PoolTimeout) as error:
        raise StoreUnavailable(f"{operation} ({error})") from error
