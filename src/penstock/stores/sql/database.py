"""The seam under the shared SQL: a transaction is a closure over a `Tx`.

Shared statements are written once, in a small common language:
- tables are `penstock.jobs` (SQLite: `penstock_jobs`), parameters are `:name`;
- a list is matched by `column = ANY(:list)`; row locks are asked for by a final `FOR UPDATE`;
- `INDEXED BY penstock.index` holds SQLite to an index (PostgreSQL sessions never scan whole tables);
- `now()` is the store's time, `clock_timestamp()` that of a statement which may have had to wait for a lock;
- times go in and come out as aware datetimes; `Tx.time` reads one.
Each dialect compiles that to its own form. What must be fast is written by hand in the dialect's hotpath.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar

from penstock.domain.job import Live
from penstock.ports.wakeups import Wakeups

T = TypeVar("T")
Row = tuple[Any, ...]


class Tx(Protocol):
    """One open transaction; `lanes` are its lanes' numbers and names once somebody has read them."""

    lanes: list[Row] | None

    @property
    def now(self) -> datetime:
        """The store's time, the same throughout the transaction."""

    def fetch(self, sql: str, **params: object) -> list[Row]:
        """Run a statement and return its rows."""

    def fetch_each(
        self, sql: str, each: Mapping[str, Sequence[object]], *, best: str = "", **params: object
    ) -> list[Row]:
        """Run a SELECT that ends in LIMIT for the first values of `each`, for the second, and so on.

        Return all rows, or with `best`, an ORDER BY, at least the first `limit` of them, in any order.
        """

    def execute(self, sql: str, **params: object) -> int:
        """Run a statement and return how many rows it touched."""

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, on_conflict: str = ""
    ) -> None:
        """Insert the rows with one statement, if there are any; `t` names the table in a conflict."""

    def script(self, sql: str) -> None:
        """Run several statements that take no parameters."""

    def time(self, value: Any) -> datetime | None:
        """Read a time as this dialect returns it."""

    def live(self, row: Sequence[Any]) -> Live:
        """Read the columns LIVE_COLUMNS."""


class Database(Protocol):
    """Connections to one database."""

    dialect: str

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run the closure in one transaction; run it again when the database asked for that."""

    def relaxed(self, work: Callable[[Tx], T]) -> T:
        """Run the closure in one transaction that only matters while the nodes of now are alive."""

    def read(self, work: Callable[[Tx], T]) -> T:
        """Run the closure on a connection that never waits for writers."""

    def look(self, work: Callable[[Tx], T]) -> T:
        """Run a closure that is one SELECT, in one round trip."""

    def snapshot(self, work: Callable[[Tx], T]) -> T:
        """Run a closure that only reads, and sees nothing that is committed after it began."""

    def frozen(self) -> AbstractContextManager[Tx]:
        """Open a snapshot for several closures that only read."""

    def wake(self, lanes: Collection[str]) -> None:
        """Tell those who wait that these lanes have news; it may be forgotten."""

    def wakeups(self) -> Wakeups | None:
        """Return a way to wait for news; None = there is none."""

    def close(self) -> None:
        """Close every connection."""


def one(rows: list[Row]) -> Row | None:
    """Return the only row, or None."""
    return rows[0] if rows else None
