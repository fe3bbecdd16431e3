"""A client on every kind of store; each test finds it empty, with one lane."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile

import psycopg
import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.ulid import Ulids
from penstock.ports.clock import SystemClock
from penstock.ports.store import Store
from penstock.stores.connect import connect
from penstock.stores.memory import MemoryStore
from tests.conformance.test_postgres import EMPTY, NO_TRIGGERS
from tests.conftest import PgServer

LANE = "orders"
SHOP = "CREATE TABLE shop (n integer)"


def put_lane(store: Store, name: str = LANE, **settings: object) -> None:
    store.put_lane(lane(name, **settings), actor="test")


class Postgres:
    """A database with Penstock's tables, and a table of the callers' own; made once, emptied often."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._store = connect(url)
        self._store.migrate()
        self._plain = psycopg.connect(url, autocommit=True)
        self._plain.execute(SHOP)
        self._plain.execute(NO_TRIGGERS)

    def emptied(self) -> str:
        """Return the URL; there is one lane and nothing else."""
        self._plain.execute(EMPTY)
        self._plain.execute("DELETE FROM shop")
        put_lane(self._store)
        return self.url

    def close(self) -> None:
        self._plain.close()
        self._store.close()


@pytest.fixture(scope="session")
def empty_postgres(pg_server: PgServer) -> Iterator[Callable[[int], str]]:
    """Return `empty_postgres(18)`: the URL of an empty store, in one database per version and session."""
    made: dict[int, Postgres] = {}
    with ExitStack() as stack:

        def get(version: int) -> str:
            if version not in made:
                url = stack.enter_context(pg_server(version).database())
                made[version] = stack.enter_context(closing(Postgres(url)))
            return made[version].emptied()

        yield get


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Path:
    """Return a file with one lane and nothing else, to be copied: twenty times as fast as to migrate."""
    file = copyfile(migrated_file, tmp_path_factory.mktemp("empty") / "penstock.db")
    with closing(connect(f"sqlite:///{file}")) as store:
        put_lane(store)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(SHOP)
    return file


@pytest.fixture
def sqlite_url(tmp_path: Path, empty_sqlite: Path) -> str:
    return f"sqlite:///{copyfile(empty_sqlite, tmp_path / 'penstock.db')}"


@pytest.fixture
def pg_url(empty_postgres: Callable[[int], str]) -> str:
    """Return the URL of an empty store on PostgreSQL 18."""
    return empty_postgres(18)


def memory_store() -> MemoryStore:
    ids = Ulids(lambda: int(SystemClock().now().timestamp() * 1000), bytes)
    store = MemoryStore(clock=lambda: datetime.now(UTC), ids=ids)
    put_lane(store)
    return store


@pytest.fixture
def memory() -> MemoryStore:
    return memory_store()


@pytest.fixture(params=["memory", "sqlite", "pg18"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Return a client on each kind of store in turn."""
    fixture = {"memory": "memory", "sqlite": "sqlite_url", "pg18": "pg_url"}[request.param]
    with Client(request.getfixturevalue(fixture), actor="ann") as client:
        yield client
