"""Whether a caller's connection leads to the database of the client that checked the jobs.

Another database may have lanes of the same names: a job would be taken and never be sent from where it is
looked for. What a driver knows of its connection is compared first; only an address that is written otherwise
(a proxy, another name of the host) is asked, once, what database it is.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.errors import InvalidJob
from penstock.integrations.statements import Dialect, Rows, Statement
from penstock.ports.store import Store
from penstock.stores.connect import dialect_of, file_of, is_api

# Readable by everybody; the same after a failover. Databases of one server differ, and so do most of others.
IDENTITY: Final = """
    SELECT d.datname, d.oid::bigint, n.oid::bigint FROM pg_catalog.pg_database d
      LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'penstock' WHERE d.datname = current_database()"""
_FILES: Final = Statement("PRAGMA database_list", ())
MOST_ADDRESSES: Final = 100


@dataclass(slots=True)
class Home:
    """The database of a client: its kind, and its file or its identity; None = not known."""

    dialect: Dialect
    file: str | None = None
    identity: tuple[Any, ...] | None = None
    _known: set[str] = field(default_factory=set)

    def question(self, dialect: Dialect, address: str) -> Statement | None:
        """Return what to ask a connection, None = nothing; raise InvalidJob if it leads elsewhere."""
        if dialect != self.dialect:
            raise _elsewhere(dialect, self.dialect)
        if self.file is not None:
            return _FILES
        if self.identity is None or address in self._known:
            return None
        return Statement(IDENTITY, ())

    def check(self, rows: Rows, address: str) -> None:
        """Raise InvalidJob unless this is what a connection to the same database answers."""
        if self.file is not None:
            theirs = next((str(row[2]) for row in rows if row[1] == "main"), "")
            if not theirs or not Path(theirs).exists() or not Path(theirs).samefile(self.file):
                raise _elsewhere(theirs or "a database in memory", self.file)
        elif [tuple(row) for row in rows] != [self.identity]:
            theirs = str(rows[0][0]) if rows else "another database"
            ours = str((self.identity or ("another one",))[0])
            other = f"{theirs} of another server" if theirs == ours else theirs
            raise _elsewhere(f"the database {other}", ours)
        elif len(self._known) < MOST_ADDRESSES:
            self._known.add(address)


def home_of(url: str, store: Store) -> Home | None:
    """Return the database behind a client's URL; None = an API."""
    dialect, file = dialect_of(url), None if is_api(url) else file_of(url)
    if dialect is None:
        return None
    if file is not None:
        return Home(dialect, file=str(Path(file).absolute()))
    [identity] = store.db.look(lambda tx: tx.fetch(IDENTITY))  # type: ignore[attr-defined]
    return Home(dialect, identity=tuple(identity))


def _elsewhere(theirs: str, ours: str) -> InvalidJob:
    return InvalidJob(
        "connection", f"leads to {theirs}, but this client is on {ours}: give one to the same database"
    )
