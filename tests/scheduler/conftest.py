"""Engines on SQLite and PostgreSQL; the fastest of each kind, the conformance suite has the others."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock.client import Client
from penstock.stores.connect import connect
from tests.conftest import PgServer
from tests.scheduler.engine import Engine


@pytest.fixture(params=["sqlite", "pg18"])
def url(request: pytest.FixtureRequest, tmp_path: Path, pg_server: PgServer) -> Iterator[str]:
    """Return a store's URL, with its tables and nothing in them."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/penstock.db"
        return
    with pg_server(18).database() as found:
        yield found


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    """Return an engine with one lane, `orders`; start nodes with `engine.node()`."""
    store = connect(url)
    store.migrate()
    engine = Engine(url, store, Client(store))
    engine.lane()
    yield engine
    store.close()
