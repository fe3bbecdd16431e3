"""A look that was slow is no reason to overlook jobs: machines are slow for a moment, networks always are."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from penstock.domain.outcomes import Returned
from penstock.stores.postgres.hints import Hints
from penstock.stores.postgres.statements import EVER
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.dearness import DEAR_S, LOOKS, MOST_REST_S, REST_S, Dearness
from penstock.stores.sql.pacing import Looks
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    claim,
    enqueue,
    find,
    ids,
    job,
    put_lane,
    settle,
    some,
)
from tests.stores.places import Place

SLOW, QUICK = 2.0, 0.001


@dataclass
class Pace:
    """A clock by which every look takes just so long."""

    took: float
    now: float = 0.0

    def __call__(self) -> float:
        self.now += self.took
        return self.now


@pytest.fixture
def pace() -> Pace:
    return Pace(SLOW)


@pytest.fixture
def store(postgres_place: Place, pace: Pace) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres_place.url)) as store:
        store.migrate()
        store._looks, store.hot._due = Looks(pace), Hints(pace, EVER)
        put_lane(store)
        yield store


def look_dear(store: PostgresStore, pace: Pace) -> None:
    """Make whole looks dear for sure, and those that begin further right cheap."""
    pace.took = SLOW
    for _ in range(LOOKS):
        store.scout()
    pace.took = QUICK
    store.scout()


def claim_dear(store: PostgresStore, pace: Pace) -> None:
    """The same for claims, with jobs of the next hour."""
    enqueue(store, *[job(run_at=store.now() + HOUR / 2)] * (LOOKS + 2))
    pace.took = SLOW
    for _ in range(LOOKS):
        some(claim(store, limit=1, ahead=HOUR))
    pace.took = QUICK
    some(claim(store, limit=1, ahead=HOUR))


def test_after_one_slow_look_a_job_that_comes_back_is_seen(store: PostgresStore, pace: Pace) -> None:
    [first, _] = enqueue(store, job(run_at=store.now() - HOUR), job(run_at=store.now() + HOUR))
    due = find(store, first).live.due_at
    back = some(claim(store, limit=1))
    store.scout()
    pace.took = QUICK
    settle(store, back, Returned("not now"))
    assert store.scout().work[LANE].jobs_at == due


def test_where_every_look_is_slow_a_job_that_comes_back_is_seen_soon(store: PostgresStore) -> None:
    [first, _] = enqueue(store, job(run_at=store.now() - HOUR), job(run_at=store.now() + HOUR))
    due = find(store, first).live.due_at
    back = some(claim(store, limit=1))
    for _ in range(LOOKS):
        store.scout()
    settle(store, back, Returned("not now"))
    assert due in [store.scout().work[LANE].jobs_at for _ in range(2)]


def test_while_looks_begin_further_right_a_new_job_is_seen(store: PostgresStore, pace: Pace) -> None:
    enqueue(store, job(run_at=store.now() + HOUR))
    look_dear(store, pace)
    [new] = enqueue(store, job())
    assert store.scout().work[LANE].jobs_at == find(store, new).live.due_at


def test_while_claims_begin_further_right_a_new_job_is_claimed(store: PostgresStore, pace: Pace) -> None:
    claim_dear(store, pace)
    [new] = enqueue(store, job())
    assert ids(claim(store, limit=1)) == [new]


def test_after_slow_claims_a_job_that_comes_back_waits_for_a_moment_only(
    store: PostgresStore, pace: Pace
) -> None:
    [old] = enqueue(store, job(run_at=store.now() - HOUR))
    back = some(claim(store, limit=1))
    claim_dear(store, pace)
    settle(store, back, Returned("not now"))
    pace.now += MOST_REST_S
    assert ids(claim(store, limit=1)) == [old]


def test_a_price_is_that_of_the_cheapest_of_the_last_looks() -> None:
    dearness = Dearness()
    for cost in (9.0, 9.0):
        dearness.whole(cost, at=0.0)
        assert not dearness.rests(0.0)
    dearness.whole(2 * DEAR_S, at=0.0)
    assert dearness.price == 2 * DEAR_S
    assert dearness.rests(1.9)
    assert not dearness.rests(2.0)
    dearness.whole(DEAR_S / 2, at=2.0)
    assert not dearness.rests(2.0)
    assert dearness.rests(2.0 + REST_S, above=DEAR_S / 4)


def test_whole_looks_never_rest_for_long() -> None:
    dearness = Dearness()
    for _ in range(LOOKS):
        dearness.whole(60.0, at=100.0)
    assert dearness.rests(99.0 + MOST_REST_S)
    assert not dearness.rests(100.0 + MOST_REST_S)


@pytest.mark.parametrize(("cost", "rests"), [(0.4, True), (0.6, False)])
def test_looks_further_right_must_be_worth_it(cost: float, *, rests: bool) -> None:
    dearness = Dearness()
    for _ in range(LOOKS):
        dearness.whole(1.0, at=0.0)
    dearness.part(cost)
    assert dearness.rests(0.0) is rests
