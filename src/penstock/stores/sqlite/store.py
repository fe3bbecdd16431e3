"""The store on one SQLite file."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from penstock.domain.ulid import Ulids
from penstock.ports.clock import SystemClock
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.database import BUSY_TIMEOUT_S, SqliteDatabase
from penstock.stores.sqlite.hotpath import SqliteHotPath


def SqliteStore(  # noqa: N802 - reads as the type it makes
    path: str | Path,
    *,
    clock: Callable[[], datetime] | None = None,
    ids: Callable[[], str] | None = None,
    busy_timeout: float = BUSY_TIMEOUT_S,
    trace: Callable[[str], None] | None = None,
    entropy: Callable[[int], bytes] = os.urandom,
) -> SqlStore:
    """Open (and create) the file; `migrate` makes the tables. `clock` gives every time that is stored."""
    database = SqliteDatabase(path, clock=clock or SystemClock().now, busy_timeout=busy_timeout, trace=trace)
    ids = ids or Ulids(lambda: int(SystemClock().now().timestamp() * 1000), entropy)
    return SqlStore(database, SqliteHotPath(), ids, "penstock.stores.sqlite", entropy)
