"""The store suite on SQLite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.ports.store import Store
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.store_suite import StoreSuite


class TestSqlite(StoreSuite):
    """SQLite keeps every promise of the port."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A fresh file."""
        store = SqliteStore(tmp_path / "penstock.db")
        store.migrate()
        yield store
        store.close()
