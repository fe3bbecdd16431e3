"""A SQLite file that is moved, deleted, replaced or locked while it is open: nothing is lost."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from shutil import copyfile

import pytest

from penstock.client import Client
from penstock.domain.lanes import lane
from penstock.errors import StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.stores.connect import connect
from penstock.stores.sqlite.store import SqliteStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "penstock.db"


@pytest.fixture
def client(file: Path) -> Iterator[Client]:
    store = connect(f"sqlite:///{file}")
    store.migrate()
    store.put_lane(lane("orders"), actor="test")
    with Client(store) as client:
        yield client


def test_a_file_that_was_moved_takes_nothing_until_it_is_back(client: Client, file: Path) -> None:
    elsewhere = file.with_name("moved.db")
    file.rename(elsewhere)
    with pytest.raises(
        StoreUnavailable, match=r"penstock\.db was moved or deleted .* put it back, or restart"
    ):
        client.enqueue("orders")
    with pytest.raises(StoreUnavailable, match="moved or deleted"):
        client.store.check_schema()
    assert not file.exists()

    elsewhere.rename(file)
    assert client.get(client.enqueue("orders").id).lane == "orders"


def test_a_file_that_was_replaced_is_not_taken_for_the_same(client: Client, file: Path) -> None:
    copy = file.with_name("copy.db")
    copyfile(file, copy)
    copy.replace(file)

    with pytest.raises(StoreUnavailable, match="replaced by another one"):
        client.enqueue("orders")


def test_a_file_that_goes_while_a_transaction_is_open_loses_nothing_in_silence(
    client: Client, file: Path
) -> None:
    """What is written between the look and the move is not told to be there."""
    database = client.store.db  # type: ignore[attr-defined]

    with pytest.raises(StoreUnavailable, match="moved or deleted"):
        database.write(lambda _: file.unlink())


def test_whoever_waits_for_news_makes_no_file(client: Client, file: Path) -> None:
    wakeups = client.store.wakeups()
    assert wakeups is not None
    file.rename(file.with_name("moved.db"))

    with pytest.raises(StoreUnavailable):
        wakeups.wait(timedelta(0))
    assert not file.exists()


def test_a_file_that_others_keep_locked_says_what_to_do(client: Client, file: Path) -> None:
    impatient = SqliteStore(file, clock=SystemClock().now, busy_timeout=0.05)
    with closing(impatient), closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=r"is locked: .* end that transaction, or try again"):
            impatient.put_lane(lane("more"), actor="test")
