"""Engines on SQLite and PostgreSQL; the fastest of each kind, the conformance suite has the others.

What is about claims, limits and recovery runs on both each time. A module that is not about the dialect of a
store says `STORES = ONE`: then PostgreSQL is left to the soak.
"""

from collections.abc import AsyncIterator, Iterator

import pytest

from penstock.client import Client
from penstock.stores.connect import connect
from tests.conftest import Migrated
from tests.scheduler.engine import BOTH, Engine


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on the stores that its module names, else on both."""
    if "url" in metafunc.fixturenames:
        metafunc.parametrize("url", getattr(metafunc.module, "STORES", BOTH), indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest, migrated_postgres: Migrated) -> Iterator[str]:
    """Return a store's URL, with its tables and nothing in them."""
    if request.param == "sqlite":
        yield request.getfixturevalue("migrated_sqlite")
        return
    with migrated_postgres(18) as found:
        yield found


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    """Return an engine with one lane, `orders`; start nodes with `engine.node()`."""
    store = connect(url)
    engine = Engine(url, store, Client(store))
    engine.lane()
    yield engine
    store.close()
