"""One snapshot in the place of a database: what several calls read through it is of one moment."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from penstock.errors import StoreError
from penstock.ports.wakeups import Wakeups
from penstock.stores.sql.database import Tx

T = TypeVar("T")
_READ_ONLY: Final = "nothing can be written through a store that stands still"


class Snapshot:
    """A database that stands still."""

    def __init__(self, tx: Tx, dialect: str) -> None:
        self._tx, self.dialect = tx, dialect

    def read(self, work: Callable[[Tx], T]) -> T:
        """Run the closure on the snapshot."""
        return work(self._tx)

    look = snapshot = read

    @contextmanager
    def frozen(self) -> Iterator[Tx]:
        """Give the snapshot there is."""
        yield self._tx

    def write(self, work: Callable[[Tx], T]) -> T:  # noqa: ARG002
        """Refuse."""
        raise StoreError(_READ_ONLY)

    relaxed = write

    def wake(self, lanes: Collection[str]) -> None:  # noqa: ARG002
        """Refuse."""
        raise StoreError(_READ_ONLY)

    def wakeups(self) -> Wakeups | None:
        """Return none: there are no news."""
        return None

    def close(self) -> None:
        """Leave it to whoever opened it."""
