"""The store suite on PostgreSQL 15 and 18.

One database per version, emptied before each test, and its connections kept: a fresh one each time would
take ten times as long, and a server that plans everything anew twice as long.
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from penstock.ports.store import Store
from penstock.stores.postgres.hotpath import PostgresHotPath
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore
from penstock.testing.store_suite import StoreSuite
from tests.model.databases import quick, restarted
from tests.servers import Server

Emptied = Callable[[], SqlStore]

# Triggers off: emptying the lanes is no change of configuration that anybody should be told of.
NO_TRIGGERS = b"SET session_replication_role = replica"
EMPTY = b"""
    DO $$ DECLARE t text; BEGIN
      FOR t IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'penstock'::regnamespace
                  AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'migrations'
      LOOP EXECUTE format('DELETE FROM penstock.%I', t); END LOOP; END $$"""


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def emptied(request: pytest.FixtureRequest, pg_server: Callable[[int], Server]) -> Iterator[Emptied]:
    """Return what empties the module's database and gives the store as a new process sees it."""
    server = pg_server(request.param)
    with server.database() as fresh:
        url = quick(server, fresh)
        with closing(PostgresStore(url)) as store, psycopg.connect(url, autocommit=True) as connection:
            store.migrate()
            connection.execute(NO_TRIGGERS)

            def get() -> SqlStore:
                connection.execute(EMPTY)
                return restarted(store, PostgresHotPath())

            yield get


class TestPostgres(StoreSuite):
    """PostgreSQL keeps every promise of the port."""

    @pytest.fixture
    def store(self, emptied: Emptied) -> Store:
        """An empty store."""
        return emptied()
