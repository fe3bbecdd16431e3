"""What nodes and callers leave behind does not grow for ever, and what must stay hides nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.domain.access import ROLES
from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.ports.access import NewKey
from penstock.ports.store import Ask, Tick
from penstock.stores.sql.database import Tx
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


def test_targets_that_were_never_called_again_are_forgotten_after_a_day(
    store: SqliteStore, clock: Clock
) -> None:
    day, minute = timedelta(days=1), timedelta(minutes=1)

    def called(name: str, *, failed: int = 0, slow_for: timedelta = timedelta(0)) -> None:
        store.mark_target(name, failed=failed, ok=0, trip_after=3, open_for=minute, slow_for=slow_for)

    called("http://failed", failed=1)
    called("http://open", failed=3)
    called("http://slow", slow_for=minute)
    clock.now += day - minute
    called("http://again", failed=1)
    store.retire(slice_rows=2)
    assert count(store, "targets") == 3
    clock.now += 3 * minute
    store.retire(slice_rows=2)

    assert store.targets() == {}
    assert (
        store.mark_target(
            "http://again", failed=2, ok=0, trip_after=3, open_for=minute, slow_for=timedelta(0)
        ).state
        == "open"
    )
    assert count(store, "targets") == 1


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


def test_a_key_that_opens_something_is_listed_however_many_were_revoked(
    store: SqliteStore, clock: Clock
) -> None:
    store.add_key(NewKey("k0", "admin", "h0", ROLES["admin"]), actor="test")
    clock.now += timedelta(days=1)
    columns = ("id", "name", "hash", "scopes", "created_at", "created_by", "revoked_at")
    rows = [(f"k{n}", "ci", f"h{n}", "read", clock.now, "ci", clock.now) for n in range(1, 1101)]
    store.db.write(lambda tx: tx.insert("api_keys", columns, rows))

    listed = store.api_keys()
    assert len(listed) == 1000
    assert (listed[-1].name, listed[0].name) == ("admin", "ci")


def test_the_jobs_of_an_operation_go_before_it(store: SqliteStore, clock: Clock) -> None:
    """Without it nobody would look for them any more."""
    said = (
        "id",
        "verb",
        "filter",
        "actor",
        "reason",
        "force",
        "state",
        "created_at",
        "next_at",
        "finished_at",
    )
    ended = [(str(n), "hold", "", "ann", "", False, "done", *[clock.now] * 3) for n in range(2)]
    place = ("operation", "lane", "grp", "seq", "arrival", "id")
    jobs = [(str(n), 1, "", 99, arrival, f"job-{arrival}") for n in range(2) for arrival in range(400)]

    def fill(tx: Tx) -> None:
        tx.insert("operations", said, ended)
        tx.insert("operation_jobs", place, jobs)

    store.db.write(fill)
    clock.now += timedelta(days=31)
    store.retire(slice_rows=5)
    assert (count(store, "operations"), count(store, "operation_jobs")) == (2, 550)
    for _ in range(3):
        store.retire(slice_rows=5)

    assert count(store, "operations") == count(store, "operation_jobs") == 0
