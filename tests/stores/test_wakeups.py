"""News of real databases: connections that break, servers that fall silent, callers who say too much."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import psycopg
import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.errors import StoreUnavailable
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.postgres.wakeups import AT_ONCE, PER_SECOND, Pace, PostgresWakeups
from penstock.stores.sqlite.store import SqliteStore
from penstock.stores.sqlite.wakeups import SqliteWakeups

LONG = timedelta(seconds=30)
SHORT = timedelta(milliseconds=30)
LISTENERS = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


def notify(url: str, *lanes: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name in lanes:
            connection.execute("SELECT pg_notify('penstock', %s)", [name])


def test_a_listener_that_was_cut_off_says_so_and_comes_back(postgres_url: str) -> None:
    with closing(PostgresWakeups(postgres_url)) as wakeups:
        assert wakeups.wait(LONG) == frozenset()
        notify(postgres_url, "a", "b")
        assert wakeups.wait(LONG) is not None
        while wakeups.wait(SHORT) is not None:
            pass
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"SELECT pg_terminate_backend(pid) {LISTENERS}".encode())

        with pytest.raises(StoreUnavailable, match="listen"):
            wakeups.wait(LONG)
        assert wakeups.wait(LONG) == frozenset()
        notify(postgres_url, "a")
        assert wakeups.wait(LONG) == {"a"}


def test_a_server_that_cannot_be_reached_is_no_news(postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    nowhere = parts._replace(netloc=f"{parts.username}@127.0.0.1:1").geturl()
    with closing(PostgresWakeups(nowhere)) as wakeups:
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                wakeups.wait(LONG)


def test_a_listener_is_asked_now_and_then_and_goes_on_listening(postgres_url: str) -> None:
    often = timedelta(milliseconds=1)
    with closing(PostgresWakeups(postgres_url, ask_every=often)) as wakeups:
        wakeups.wait(LONG)
        for number in range(20):
            assert wakeups.wait(SHORT) is None
            notify(postgres_url, f"lane-{number}")
            assert wakeups.wait(LONG) == {f"lane-{number}"}


def test_a_listener_whose_server_falls_silent_notices(postgres_url: str) -> None:
    often, patience = timedelta(milliseconds=50), timedelta(seconds=2)
    with (
        relay(postgres_url) as (url, silence),
        closing(PostgresWakeups(url, ask_every=often, patience=patience)) as wakeups,
    ):
        wakeups.wait(LONG)
        notify(postgres_url, "a")
        assert wakeups.wait(LONG) == {"a"}
        silence.set()
        with pytest.raises(StoreUnavailable, match="does not answer"):
            wakeups.wait(LONG)


@contextmanager
def relay(url: str) -> Iterator[tuple[str, Event]]:
    """Give the address of a relay to the server, and what makes it keep everything to itself."""
    parts, silence = urlsplit(url), Event()
    with socket.create_server(("127.0.0.1", 0)) as door:
        ends: list[socket.socket] = []

        def pump(source: socket.socket, sink: socket.socket) -> None:
            with suppress(OSError):
                while data := source.recv(65536):
                    if not silence.is_set():
                        sink.sendall(data)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    here, _ = door.accept()
                    there = socket.create_connection((parts.hostname or "", parts.port or 5432))
                    ends.extend([here, there])
                    for pair in ((here, there), (there, here)):
                        Thread(target=pump, args=pair, daemon=True).start()

        Thread(target=serve, daemon=True).start()
        try:
            port = door.getsockname()[1]
            yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl(), silence
        finally:
            for end in ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


def test_a_store_says_no_more_than_so_much_a_second() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])

    assert sum(pace.allows(1) for _ in range(1000)) == AT_ONCE
    allowed = 0
    for _ in range(2000):
        now[0] += 0.001
        allowed += pace.allows(1)
    assert allowed == pytest.approx(2 * PER_SECOND, abs=2)
    now[0] += 1000
    assert not pace.allows(AT_ONCE + 1)
    assert pace.allows(AT_ONCE)


def test_news_of_a_busy_store_are_forgotten_rather_than_sent_late(postgres_url: str) -> None:
    with closing(PostgresStore(postgres_url)) as store, closing(store.wakeups()) as wakeups:
        assert wakeups is not None
        wakeups.wait(LONG)
        for number in range(10 * AT_ONCE):
            store.wake([f"lane-{number}"])
        heard: set[str] = set()
        while (news := wakeups.wait(10 * SHORT)) is not None:
            heard |= news
        assert AT_ONCE <= len(heard) < 10 * AT_ONCE


def test_a_commit_of_another_process_ends_a_wait(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    with closing(SqliteStore(path)) as store:
        store.migrate()
        store.put_lane(lane("orders"), actor="test")
        with closing(store.wakeups()) as wakeups:
            assert wakeups is not None
            assert wakeups.wait(LONG) == frozenset()
            assert wakeups.wait(SHORT) is None
            store.enqueue([NewJob("orders")])
            assert wakeups.wait(LONG) == frozenset()
            code = f"import sqlite3; c = sqlite3.connect({str(path)!r}); "
            code += "c.execute(\"INSERT INTO penstock_enqueue (lane) VALUES ('orders')\"); c.commit()"
            subprocess.run([sys.executable, "-c", code], check=True)
            assert wakeups.wait(LONG) == frozenset()
            assert wakeups.wait(SHORT) is None


def test_a_database_in_memory_has_no_news() -> None:
    with closing(SqliteStore(":memory:")) as store:
        store.wake(["orders"])
        assert store.wakeups() is None


def test_a_file_that_cannot_be_read_is_no_news(tmp_path: Path) -> None:
    with (
        closing(SqliteWakeups(str(tmp_path))) as wakeups,
        pytest.raises(StoreUnavailable, match="watch"),
    ):
        wakeups.wait(LONG)
