"""The store on a PostgreSQL database."""

import os
from collections.abc import Callable

from penstock.domain.ulid import Ulids
from penstock.ports.clock import SystemClock
from penstock.stores.postgres.database import PostgresDatabase
from penstock.stores.postgres.hotpath import PostgresHotPath
from penstock.stores.sql.store import SqlStore


def PostgresStore(  # noqa: N802 - reads as the type it makes
    url: str,
    *,
    ids: Callable[[], str] | None = None,
    max_connections: int = 8,
    entropy: Callable[[int], bytes] = os.urandom,
) -> SqlStore:
    """Connect; `migrate` makes the tables. Every time that is stored is the database's own."""
    ids = ids or Ulids(lambda: int(SystemClock().now().timestamp() * 1000), entropy)
    database = PostgresDatabase(url, max_connections=max_connections)
    return SqlStore(database, PostgresHotPath(), ids, "penstock.stores.postgres", entropy)
