"""The store suite on PostgreSQL 15 and 18.

One database per version, emptied before each test: a fresh one each time would take ten times as long.
"""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from penstock.ports.store import Store
from penstock.stores.postgres.store import PostgresStore
from penstock.testing.store_suite import StoreSuite
from tests.model.databases import quick
from tests.servers import Server

# Triggers off: emptying the lanes is no change of configuration that anybody should be told of.
EMPTY = """
    SET session_replication_role = replica;
    DO $$ DECLARE t text; BEGIN
      FOR t IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'penstock'::regnamespace
                  AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'migrations'
      LOOP EXECUTE format('DELETE FROM penstock.%I', t); END LOOP; END $$"""


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def migrated_url(request: pytest.FixtureRequest, pg_server: Callable[[int], Server]) -> Iterator[str]:
    """A database with Penstock's tables, shared by the module."""
    server = pg_server(request.param)
    with server.database() as url:
        store = PostgresStore(url)
        store.migrate()
        store.close()
        yield quick(server, url)


class TestPostgres(StoreSuite):
    """PostgreSQL keeps every promise of the port."""

    @pytest.fixture
    def store(self, migrated_url: str) -> Iterator[Store]:
        """An empty store."""
        with psycopg.connect(migrated_url, autocommit=True) as connection:
            connection.execute(EMPTY.encode())
        store = PostgresStore(migrated_url)
        yield store
        store.close()
