"""News by LISTEN and NOTIFY: optional, coalesced, outside any transaction; polling is the truth.

A notification takes a lock of the whole server when it is sent, so a store sends so many a second and no
more. A listener has a connection of its own. One that dies silently is noticed: by TCP's own keepalive, and
by a question it has to answer now and then.
"""

import selectors
import socket
from collections.abc import Callable, Collection
from datetime import timedelta
from threading import Lock
from time import monotonic
from typing import Any, Final

import psycopg

from penstock.errors import StoreUnavailable
from penstock.stores.postgres.addresses import discreet

CHANNEL: Final = "penstock"
NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', lane) FROM unnest(:lanes::text[]) lane"
PER_SECOND: Final = 200
AT_ONCE: Final = 50
ASK_EVERY: Final = timedelta(seconds=10)
PATIENCE: Final = timedelta(seconds=5)
OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Pace:
    """How many notifications may be sent now; the rest is forgotten."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left, self._at = float(AT_ONCE), clock()
        self._lock = Lock()

    def allows(self, number: int) -> bool:
        """Say whether that many may be sent, and count them."""
        with self._lock:
            now = self._clock()
            self._left = min(AT_ONCE, self._left + (now - self._at) * PER_SECOND)
            self._at = now
            if number > self._left:
                return False
            self._left -= number
            return True


class PostgresWakeups:
    """A connection that listens."""

    def __init__(self, url: str, *, ask_every: timedelta = ASK_EVERY, patience: timedelta = PATIENCE) -> None:
        self._url = url
        self._every, self._patience = ask_every.total_seconds(), patience.total_seconds()
        self._connection: psycopg.Connection[Any] | None = None
        self._heard_at = 0.0
        self._asked_at: float | None = None
        self._bell, self._ringer = socket.socketpair()
        self._closed = False
        self._lock = Lock()

    def wait(self, timeout: timedelta) -> frozenset[str] | None:
        """Return the lanes that have news, an empty set when it is not known which; None = the time is up."""
        with self._lock:
            try:
                if self._closed:
                    return None
                if self._connection is None:
                    self._connection = self._connect()
                    return frozenset()  # what was said before nobody heard
                return self._listen(self._connection.pgconn, monotonic() + timeout.total_seconds())
            except psycopg.Error as error:
                self._drop()
                raise StoreUnavailable(f"listen ({error})") from error

    def close(self) -> None:
        """Give up the connection; a `wait` in another thread ends."""
        if self._closed:
            return
        self._closed = True
        self._ringer.send(b"!")
        with self._lock:
            self._drop()
            self._bell.close()
            self._ringer.close()

    def _connect(self) -> "psycopg.Connection[Any]":
        with discreet(self._url):
            connection = psycopg.connect(self._url, **OPTIONS)
        connection.execute(f"LISTEN {CHANNEL}".encode())
        self._heard_at, self._asked_at = monotonic(), None
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _listen(self, connection: Any, until: float) -> frozenset[str] | None:  # noqa: ANN401
        while True:
            lanes = self._news(connection)
            now = monotonic()
            if lanes:
                return frozenset() if "" in lanes else frozenset(lanes)
            if self._closed or now >= until:
                return None
            self._look_for(connection, min(until - now, self._ask(connection, now)))

    def _news(self, connection: Any) -> set[str]:  # noqa: ANN401
        """Take in what the server sent: notifications, and the answer to our question."""
        connection.consume_input()
        if self._asked_at is not None and not connection.is_busy():
            while connection.get_result() is not None:
                pass
            self._heard_at, self._asked_at = monotonic(), None
        lanes = set()
        while (notify := connection.notifies()) is not None:
            lanes.add(notify.extra.decode())
        return lanes

    def _ask(self, connection: Any, now: float) -> float:  # noqa: ANN401
        """Ask the server whether it is there, if it is time; return how long there is nothing to do."""
        if self._asked_at is None and now - self._heard_at >= self._every:
            connection.send_query(b"SELECT 1")
            connection.flush()
            self._asked_at = now
        if self._asked_at is None:
            return self._heard_at + self._every - now
        if now - self._asked_at >= self._patience:
            raise psycopg.OperationalError("the server does not answer")
        return self._asked_at + self._patience - now

    def _look_for(self, connection: Any, seconds: float) -> None:  # noqa: ANN401
        """Wait until the server says something, or somebody closes this."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.socket, selectors.EVENT_READ)
            selector.register(self._bell, selectors.EVENT_READ)
            selector.select(max(0.0, seconds))


def allowed(pace: Pace, lanes: Collection[str]) -> list[str]:
    """Return what to send for these lanes: their names, or one word for all of them when they are many."""
    names = sorted(lanes) if 0 < len(lanes) <= AT_ONCE // 2 else [""]
    return names if pace.allows(len(names)) else []
