"""What the store suite cannot show of the embedded queue, because it never moves a clock."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.ports.queue import REMEMBERED, Message
from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore

Q = "q"
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def _memory(clock: Hand, _: Path) -> Store:
    return MemoryStore(clock.now, str)


def _sqlite(clock: Hand, folder: Path) -> Store:
    store = SqliteStore(folder / "penstock.db", clock=clock.now, entropy=os.urandom)
    store.migrate()
    return store


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture(params=[_memory, _sqlite], ids=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, clock: Hand, tmp_path: Path) -> Iterator[Store]:
    opened: Callable[[Hand, Path], Store] = request.param
    with closing(opened(clock, tmp_path)) as store:
        yield store


def test_a_name_is_free_again_some_minutes_after_its_message_went(store: Store, clock: Hand) -> None:
    assert REMEMBERED >= 5 * MINUTE
    store.push(Q, [Message("a", "g", "d")])
    clock.time += 60 * MINUTE
    store.ack(store.receive(Q, 1, visibility=MINUTE))
    clock.time += REMEMBERED - TICK
    assert store.push(Q, [Message("b", "g", "d")]) == [None]
    clock.time += TICK

    assert store.push(Q, [Message("c", "g", "d")]) != [None]
    assert store.push(Q, [Message("d", "g", "d")]) == [None]
    store.ack(store.receive(Q, 1, visibility=MINUTE))
    clock.time += REMEMBERED - TICK
    assert store.push(Q, [Message("e", "g", "d")]) == [None]


def test_a_hidden_message_is_visible_when_its_time_is_up(store: Store, clock: Hand) -> None:
    store.push(Q, [Message("a"), Message("b", "g")])
    first = store.receive(Q, 10, visibility=MINUTE)
    clock.time += MINUTE - TICK
    assert store.receive(Q, 10, visibility=MINUTE) == []
    clock.time += TICK
    again = store.receive(Q, 10, visibility=MINUTE)

    assert [(d.body, d.receives) for d in first + again] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    store.nack(again, delay=5 * MINUTE)
    clock.time += 5 * MINUTE - TICK
    assert store.receive(Q, 10, visibility=MINUTE) == []
    clock.time += TICK
    assert len(store.receive(Q, 10, visibility=MINUTE)) == 2


def test_what_comes_back_stands_behind_what_waited_longer(store: Store, clock: Hand) -> None:
    store.push(Q, [Message("a")])
    received = store.receive(Q, 1, visibility=MINUTE)
    clock.time += MINUTE
    store.push(Q, [Message("b")])
    clock.time += MINUTE
    store.nack(received, delay=timedelta(0))

    assert [d.body for d in store.receive(Q, 10, visibility=MINUTE)] == ["b", "a"]


def test_names_of_long_ago_are_dropped_as_others_come(clock: Hand, tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "penstock.db", clock=clock.now)) as store:
        store.migrate()
        for n in range(50):
            store.push(Q, [Message("a", None, f"d{n}")])
            store.ack(store.receive(Q, 1, visibility=MINUTE))
            clock.time += MINUTE

        assert _remembered(store) <= REMEMBERED / MINUTE + 1


def _remembered(store: SqlStore) -> int:
    number: int = store.db.read(lambda tx: tx.fetch("SELECT count(*) FROM penstock.queue_dedups"))[0][0]
    return number
