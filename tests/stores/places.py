"""A database of each dialect, as a node opens it and as a program does that knows nothing of Penstock."""

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import psycopg

from penstock.ports.clock import SystemClock
from penstock.stores.postgres.database import PostgresDatabase
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.database import Database
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.database import SqliteDatabase
from penstock.stores.sqlite.store import SqliteStore
from tests.servers import Server


@dataclass
class Plain:
    """A driver's connection that commits every statement; statements are written as for PostgreSQL."""

    connection: Any
    prefix: str
    mark: str
    refusal: type[Exception]

    def __call__(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(
            sql.replace("penstock.", self.prefix).replace("%s", self.mark), values
        )
        return list(cursor.fetchall()) if cursor.description else []

    def audit(self) -> Sequence[tuple[Any, ...]]:
        """Return actor, action, before, after and reason of every row, oldest first."""
        return self("SELECT actor, action, before, after, reason FROM penstock.audit ORDER BY id")

    def close(self) -> None:
        self.connection.close()


@dataclass
class Place:
    """Where the tables go: the path of a SQLite file, or a database on a PostgreSQL server."""

    url: str
    server: Server | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    @property
    def dialect(self) -> str:
        return "sqlite" if self.server is None else "postgres"

    @property
    def package(self) -> str:
        return f"penstock.stores.{self.dialect}"

    @property
    def prefix(self) -> str:
        return "penstock_" if self.server is None else "penstock."

    def open_database(self) -> Database:
        """Return a database as a node of its own would open it; the caller closes it."""
        if self.server is None:
            return SqliteDatabase(self.url, clock=SystemClock().now)
        return PostgresDatabase(self.url)

    def open_store(self) -> SqlStore:
        """Return a store as a node of its own would open it; the caller closes it."""
        return SqliteStore(self.url) if self.server is None else PostgresStore(self.url)

    def open_plain(self) -> Plain:
        """Return a connection as any other program would open it; the caller closes it."""
        if self.server is None:
            connection = sqlite3.connect(self.url, isolation_level=None, check_same_thread=False)
            return Plain(connection, self.prefix, "?", sqlite3.IntegrityError)
        opened = psycopg.connect(self.url, autocommit=True)
        return Plain(opened, self.prefix, "%s", psycopg.errors.IntegrityError)

    def database(self) -> Database:
        """Return a database that is closed with the place."""
        return self._open.enter_context(closing(self.open_database()))

    def plain(self) -> Plain:
        """Return a plain connection that is closed with the place."""
        return self._open.enter_context(closing(self.open_plain()))

    def close(self) -> None:
        self._open.close()
