"""News of a SQLite file: its version changes with every commit, whichever process makes it."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Final

from penstock.errors import StoreUnavailable

LOOK_EVERY_S: Final = 0.005


class SqliteWakeups:
    """A connection that looks at the file's version; a look costs microseconds and reads no table."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._version = 0
        self._closed = Event()
        self._lock = Lock()

    def wait(self, timeout: timedelta) -> frozenset[str] | None:
        """Return an empty set once something was committed; None = the time is up."""
        with self._lock:
            until = monotonic() + timeout.total_seconds()
            try:
                while not self._closed.is_set():
                    if self._changed():
                        return frozenset()
                    left = until - monotonic()
                    if left <= 0:
                        return None
                    self._closed.wait(min(left, LOOK_EVERY_S))
            except sqlite3.Error as error:
                self._drop()
                raise StoreUnavailable(f"watch ({error})") from error
            return None

    def close(self) -> None:
        """Give up the connection; a `wait` in another thread ends."""
        self._closed.set()
        with self._lock:
            self._drop()

    def _changed(self) -> bool:
        """Say whether there was a commit since the last look; the first look does not know."""
        first = self._connection is None
        if self._connection is None:
            file = f"{Path(self._path).absolute().as_uri()}?mode=rw"  # never make one: it may have been moved
            self._connection = sqlite3.connect(file, uri=True, isolation_level=None, check_same_thread=False)
        before = self._version
        [[self._version]] = self._connection.execute("PRAGMA data_version").fetchall()
        return first or self._version != before

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
