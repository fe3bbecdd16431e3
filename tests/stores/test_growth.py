"""What nodes and callers leave behind does not grow for ever, and what must stay hides nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.ports.store import Ask, Tick
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.store_suite.factories import some


class Clock:
    now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "p.db", clock=clock)
    store.migrate()
    store.put_lane(lane("orders", key_ttl="1s"), actor="test")
    yield store
    store.close()


def count(store: SqliteStore, table: str) -> int:
    found: int = store.db.read(lambda tx: tx.fetch(f"SELECT count(*) FROM penstock.{table}"))[0][0]
    return found


def test_figures_go_after_a_week_and_nodes_after_a_day(store: SqliteStore, clock: Clock) -> None:
    node = store.register_node("old")
    store.record_ticks([Tick(node=node, lane="orders", claimed=1) for _ in range(5)])
    clock.now += timedelta(days=8)
    young = store.register_node("young")
    store.record_ticks([Tick(node=young, lane="orders")])
    store.retire(slice_rows=3)
    store.retire(slice_rows=3)

    assert count(store, "ticks") == 1
    assert count(store, "nodes") == 1


def test_keys_of_waiting_jobs_do_not_hide_those_that_may_go(store: SqliteStore, clock: Clock) -> None:
    later = clock.now + timedelta(days=300)
    store.enqueue([NewJob("orders", key=f"waits-{n}", run_at=later) for n in range(10)])
    clock.now += timedelta(seconds=1)
    store.enqueue([NewJob("orders", key=f"goes-{n}") for n in range(4)])
    claim = store.claim(Ask(lane="orders", node=1))
    assert claim is not None
    store.settle(claim)
    clock.now += timedelta(seconds=5)
    for _ in range(6):
        clock.now += timedelta(seconds=1)
        store.retire(slice_rows=4)

    assert count(store, "keys") == 10


def test_what_may_go_goes_as_fast_as_it_comes(store: SqliteStore, clock: Clock) -> None:
    """One slice of each a minute was the most that ever went, whatever came in."""
    node = store.register_node("old")
    store.record_ticks([Tick(node=node, lane="orders") for _ in range(50)])
    store.enqueue([NewJob("orders", key=f"key-{n}") for n in range(50)])
    store.settle(some(store.claim(Ask(lane="orders", node=node, limit=50))))
    clock.now += timedelta(days=8)
    store.retire(slice_rows=5)

    assert count(store, "ticks") == count(store, "keys") == 0
