"""A store that is full or read-only: writes fail as SQLite's own do and leave nothing behind, reads go on."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.errors import StoreUnavailable
from penstock.ports.store import Store
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.sim.bed import Bed
from penstock.testing.sim.faults import WRITES_FAIL, Disaster
from penstock.testing.sim.world import World

PRAGMAS = {Disaster.FULL: "max_page_count=1", Disaster.READ_ONLY: "query_only=on"}
JOB = NewJob(lane="orders", payload='"' + "x" * 10_000 + '"')


def refusal(store: Store) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        store.enqueue([JOB])
    return str(caught.value)


@pytest.fixture
def world() -> Iterator[World]:
    with World(1) as world:
        yield world


@pytest.fixture
def store(world: World) -> Store:
    clock = world.store_clock.now
    return Bed().fresh([lane("orders")], clock=clock, ids=iter("abc").__next__, refuses=world.refuses)


@pytest.mark.parametrize("why", WRITES_FAIL, ids=lambda why: why.name)
def test_it_says_what_sqlite_itself_says(world: World, store: Store, why: Disaster) -> None:
    real = SqliteStore(":memory:")
    real.migrate()
    real.put_lane(lane("orders"), actor="test")
    real.db.write(lambda tx: tx.script(f"PRAGMA {PRAGMAS[why]};"))

    world.refuse_writes(why, timedelta(seconds=1))

    assert refusal(store) == refusal(real)
    real.close()


@pytest.mark.parametrize("why", WRITES_FAIL, ids=lambda why: why.name)
def test_nothing_is_written_reads_go_on_and_then_it_is_over(
    world: World, store: Store, why: Disaster
) -> None:
    world.refuse_writes(why, timedelta(seconds=1))
    refusal(store)

    assert store.counts() == {}
    assert list(store.lanes()) == ["orders"]
    world.run(until=timedelta(seconds=1))
    assert len(store.enqueue([JOB])) == 1
    assert sum(store.counts().values()) == 1


def test_what_changes_nothing_needs_no_room(world: World, store: Store) -> None:
    world.refuse_writes(Disaster.FULL, timedelta(seconds=1))

    assert store.expire(10) == 0


def test_it_is_over_when_the_faults_are(world: World, store: Store) -> None:
    world.refuse_writes(Disaster.READ_ONLY, timedelta(hours=1))
    world.stop_faults()

    assert len(store.enqueue([JOB])) == 1
