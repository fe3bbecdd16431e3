"""The store on one SQLite file."""

import os
import time
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
    clock: Callable[[], datetime] = SystemClock().now,
    ids: Callable[[], str] | None = None,
    busy_timeout: float = BUSY_TIMEOUT_S,
    trace: Callable[[str], None] | None = None,
) -> SqlStore:
    """Open (and create) the file; `migrate` makes the tables. `clock` gives every time that is stored."""
    database = SqliteDatabase(path, clock=clock, busy_timeout=busy_timeout, trace=trace)
    ids = ids or Ulids(lambda: time.time_ns() // 1_000_000, os.urandom)
    return SqlStore(database, SqliteHotPath(), ids, "penstock.stores.sqlite")
