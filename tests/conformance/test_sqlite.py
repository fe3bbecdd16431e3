"""The store suite on SQLite."""

from collections.abc import Iterator

import pytest

from penstock.ports.store import Store
from penstock.stores.connect import connect
from penstock.testing.store_suite import StoreSuite


class TestSqlite(StoreSuite):
    """SQLite keeps every promise of the port."""

    @pytest.fixture
    def store(self, migrated_sqlite: str) -> Iterator[Store]:
        """A file of its own."""
        store = connect(migrated_sqlite)
        yield store
        store.close()
