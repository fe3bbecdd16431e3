"""Databases to measure on: filled once, copied for every run."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from bench import shapes
from bench.shapes import LANE, PAYLOAD, Backlog
from penstock.domain.lanes import lane
from penstock.ports.store import Store
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from tests.servers import Server, running_server

HISTORY_SLICE = 250_000
AUTOVACUUMS = """
    SELECT count(*) FROM pg_stat_activity
     WHERE backend_type = 'autovacuum worker' AND datname = current_database()"""


def server_cpu(postmaster: int, database: str = "") -> float:
    """Return the CPU seconds of a server with all its processes, or of those that serve one database."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            own, ended = ([int(field) for field in fields[at : at + 2]] for at in (11, 13))
            if database:
                served = f" {database} " in (folder / "cmdline").read_text()
                ticks += sum(own) if served and int(fields[1]) == postmaster else 0
            elif int(folder.name) == postmaster:
                ticks += sum(own) + sum(ended)
            elif int(fields[1]) == postmaster:
                ticks += sum(own)
    return ticks / os.sysconf("SC_CLK_TCK")


def open_store(target: str) -> Store:
    """Open the store on a URL or a path."""
    return PostgresStore(target) if target.startswith("postgresql:") else SqliteStore(target)


@dataclass
class PostgresPlace:
    """One server; databases are copied file by file."""

    server: Server
    say: Callable[[str], None]
    claimers: int = 2
    _templates: dict[tuple[Backlog, int], str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def name(self) -> str:
        return f"PostgreSQL {self.server.version}"

    def cpu(self, target: str = "") -> float:
        """Return the CPU seconds the server has used, for one database while somebody is connected to it."""
        postmaster = (self.server.data_dir / "postmaster.pid").read_text().split()[0]
        return server_cpu(int(postmaster), target.rpartition("/")[2])

    @contextmanager
    def copy(self, backlog: Backlog, history: int = 0) -> Iterator[str]:
        """Give a database of its own with this backlog."""
        template = self._template(backlog, history)
        name = f"run_{next(self._numbers)}"
        self._create(name, template)
        try:
            yield self.server.url(name)
        finally:
            self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    def tidy(self, store: SqlStore) -> None:
        """Do what autovacuum does once a minute: what the warm-up left behind is not what is measured."""
        for table in ("wakes", "groups", "jobs"):
            store.db.single(lambda tx, table=table: tx.cursor.execute(f"VACUUM penstock.{table}".encode()))
        # While autovacuum looks at what was just copied no index entry is marked as dead: it is read again.
        while store.db.single(lambda tx: tx.cursor.execute(AUTOVACUUMS).fetchall())[0][0]:
            time.sleep(0.5)

    def rows(self, target: str, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(target, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    def _template(self, backlog: Backlog, history: int) -> str:
        if (backlog, history) in self._templates:
            return self._templates[backlog, history]
        name = f"template_{next(self._numbers)}"
        if backlog == Backlog():
            self._create(name, "template0")
            with closing(PostgresStore(self.server.url(name))) as store:
                store.migrate()
                store.put_lane(lane(LANE), actor="bench")
        else:
            self._create(name, self._template(Backlog(), history))
        self.say(f"{self.name}: filling {backlog} with {history:,} finished jobs")
        self._fill(self.server.url(name), backlog, history if backlog == Backlog() else 0)
        self._templates[backlog, history] = name
        return name

    def _fill(self, url: str, backlog: Backlog, history: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            number = connection.execute("SELECT id FROM penstock.lanes WHERE name = %s", (LANE,)).fetchall()[
                0
            ][0]
            for statement in _postgres_statements(number, backlog, history):
                connection.execute(statement.encode())
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def _create(self, name: str, template: str) -> None:
        self._administer(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())


def _postgres_statements(number: int, backlog: Backlog, history: int) -> Iterator[str]:
    common = {"lane": number, "payload": PAYLOAD}
    for first in range(1, history + 1, HISTORY_SLICE):
        last = min(history, first + HISTORY_SLICE - 1)
        yield shapes.POSTGRES_HISTORY.format(lane=number, first=first, last=last)
    if backlog.plain:
        yield shapes.POSTGRES_JOBS.format(
            **common, mode=0, later="0", name="p", group="NULL", n=backlog.plain
        )
    if backlog.future:
        yield shapes.POSTGRES_JOBS.format(
            **common, mode=0, later="1 day", name="f", group="NULL", n=backlog.future
        )
    if backlog.groups:
        which = f"i / {backlog.per_group}" if backlog.together else f"i % {backlog.groups}"
        group, jobs = f"'group-' || lpad(({which})::text, 8, '0')", backlog.groups * backlog.per_group
        yield shapes.POSTGRES_JOBS.format(**common, mode=2, later="0", name="g", group=group, n=jobs)
    if backlog.blocked:
        yield shapes.POSTGRES_BLOCKED.format(blocked=backlog.blocked)


@dataclass
class SqlitePlace:
    """A folder of files."""

    folder: Path
    say: Callable[[str], None]
    claimers: int = 1
    _templates: dict[tuple[Backlog, int], Path] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def name(self) -> str:
        return "SQLite"

    def cpu(self, target: str = "") -> float:  # noqa: ARG002
        """Return nothing: there is no server."""
        return 0.0

    @contextmanager
    def copy(self, backlog: Backlog, history: int = 0) -> Iterator[str]:
        """Give a file of its own with this backlog."""
        path = self.folder / f"run-{next(self._numbers)}.db"
        shutil.copy(self._template(backlog, history), path)
        with path.open("rb+") as file:
            os.fsync(file.fileno())  # else the first commits of the run wait for the copy to reach the disk
        try:
            yield str(path)
        finally:
            for file in self.folder.glob(f"{path.name}*"):
                file.unlink()

    def tidy(self, store: SqlStore) -> None:
        """Nothing is left behind."""

    def rows(self, target: str, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(target)) as connection:
            return connection.execute(sql.replace("penstock.", "penstock_")).fetchall()

    def _template(self, backlog: Backlog, history: int) -> Path:
        if (backlog, history) in self._templates:
            return self._templates[backlog, history]
        path = self.folder / f"template-{next(self._numbers)}.db"
        if backlog == Backlog():
            with closing(SqliteStore(path)) as store:
                store.migrate()
                store.put_lane(lane(LANE), actor="bench")
        else:
            shutil.copy(self._template(Backlog(), history), path)
        self.say(f"{self.name}: filling {backlog} with {history:,} finished jobs")
        self._fill(path, backlog, history if backlog == Backlog() else 0)
        self._templates[backlog, history] = path
        return path

    def _fill(self, path: Path, backlog: Backlog, history: int) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            [(number,)] = connection.execute("SELECT id FROM penstock_lanes WHERE name = ?", (LANE,))
            connection.execute("BEGIN IMMEDIATE")
            for statement in _sqlite_statements(number, backlog, history):
                connection.execute(statement)
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _sqlite_statements(number: int, backlog: Backlog, history: int) -> Iterator[str]:
    now = time.time_ns() // 1000
    common = {"lane": number, "payload": PAYLOAD, "now": now}
    if history:
        yield shapes.SQLITE_HISTORY.format(lane=number, now=now, first=1, last=history)
    if backlog.plain:
        yield shapes.SQLITE_JOBS.format(**common, mode=0, later=0, name="p", group="NULL", n=backlog.plain)
    if backlog.future:
        day = 86_400_000_000
        yield shapes.SQLITE_JOBS.format(**common, mode=0, later=day, name="f", group="NULL", n=backlog.future)
    if backlog.groups:
        which = f"i / {backlog.per_group}" if backlog.together else f"i % {backlog.groups}"
        group, jobs = f"printf('group-%08d', {which})", backlog.groups * backlog.per_group
        yield shapes.SQLITE_JOBS.format(**common, mode=2, later=0, name="g", group=group, n=jobs)
    if backlog.blocked:
        yield from (s.format(blocked=backlog.blocked, now=now) for s in shapes.SQLITE_BLOCKED)


Place = PostgresPlace | SqlitePlace


@contextmanager
def place(name: str, say: Callable[[str], None]) -> Iterator[Place]:
    """Give `sqlite`, or `15` and the like for PostgreSQL of that version."""
    with ExitStack() as stack:
        if name == "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-"))
            yield SqlitePlace(Path(folder), say)
        else:
            yield PostgresPlace(stack.enter_context(running_server(int(name))), say)
