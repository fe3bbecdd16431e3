"""The processing endpoint on every kind of store."""

from collections.abc import AsyncIterator, Iterator

import pytest

from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.stores.connect import connect
from tests.api.conftest import empty_postgres, memory_store
from tests.delivery.bed import Bed, served

__all__ = ["empty_postgres"]


@pytest.fixture
def executor() -> Iterator[ThreadExecutor]:
    with ThreadExecutor(4, name="test") as threads:
        yield threads


@pytest.fixture(params=["memory", "sqlite", "pg18"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        store: Store = memory_store()
    elif request.param == "sqlite":
        store = connect(request.getfixturevalue("migrated_sqlite"))
    else:
        store = connect(request.getfixturevalue("empty_postgres")())
    store.migrate()
    yield store
    store.close()


@pytest.fixture
async def bed(store: Store, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with served(Bed(store, executor)) as bed:
        yield bed
