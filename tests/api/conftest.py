"""A node's HTTP on every kind of store, with one lane `orders`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest

from penstock import Client
from penstock.domain.ulid import Ulids
from penstock.ports.clock import SystemClock
from penstock.stores.connect import connect
from penstock.stores.memory import MemoryStore
from tests.api.node import Http, served
from tests.client.conftest import Postgres, put_lane
from tests.conftest import PgServer
from tests.faulty import Faulty

if TYPE_CHECKING:
    from penstock.ports.store import Store


@pytest.fixture(scope="session")
def empty_postgres(pg_server: PgServer) -> Iterator[Callable[[], str]]:
    """Return the URL of an empty store on PostgreSQL 18, in one database per session."""
    made: list[Postgres] = []
    with ExitStack() as stack:

        def get() -> str:
            if not made:
                url = stack.enter_context(pg_server(18).database())
                made.append(stack.enter_context(closing(Postgres(url))))
            return made[0].emptied()

        yield get


@pytest.fixture
def pg_url(empty_postgres: Callable[[], str]) -> str:
    return empty_postgres()


@pytest.fixture
def sqlite_url(migrated_sqlite: str) -> str:
    with closing(connect(migrated_sqlite)) as store:
        put_lane(store)
    return migrated_sqlite


@pytest.fixture
def memory() -> MemoryStore:
    store = memory_store()
    put_lane(store)
    return store


def memory_store() -> MemoryStore:
    ids = Ulids(lambda: int(SystemClock().now().timestamp() * 1000), bytes)
    return MemoryStore(clock=lambda: datetime.now(UTC), ids=ids)


@pytest.fixture
def faulty(sqlite_url: str) -> Faulty:
    return Faulty(connect(sqlite_url))


@pytest.fixture
def on_faulty(faulty: Faulty) -> Iterator[Http]:
    """Return a node on the store that fails when it is told to."""
    with Client(cast("Store", faulty), actor="api") as client, served(client) as http:
        http.node.start()
        yield http


@pytest.fixture
def http(sqlite_url: str) -> Iterator[Http]:
    """Return a node on SQLite that has started."""
    with Client(sqlite_url, actor="api") as client, served(client) as http:
        http.node.start()
        yield http


KINDS = {"memory": "memory", "sqlite": "sqlite_url", "pg18": "pg_url"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Start a node on each kind of store; a module may leave some of them to the soak."""
    if "every" in metafunc.fixturenames:
        metafunc.parametrize("every", getattr(metafunc.module, "STORES", list(KINDS)), indirect=True)


@pytest.fixture
def every(request: pytest.FixtureRequest) -> Iterator[Http]:
    """Return a node on each kind of store in turn."""
    with Client(request.getfixturevalue(KINDS[request.param]), actor="api") as client, served(client) as http:
        http.node.start()
        yield http


@pytest.fixture(scope="module", params=["memory", "sqlite", "pg18"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """Return a node on each kind of store, started once: for tests that leave nothing behind."""
    with ExitStack() as stack:
        store: Store
        if request.param == "pg18":
            store = connect(request.getfixturevalue("empty_postgres")())
        elif request.param == "sqlite":
            store = connect(f"sqlite:///{tmp_path_factory.mktemp('shared')}/penstock.db")
            store.migrate()
        else:
            store = memory_store()
        put_lane(store)
        http = stack.enter_context(served(stack.enter_context(Client(store, actor="api"))))
        http.node.start()
        yield http
