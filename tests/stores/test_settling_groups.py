"""A settle of groups is one round trip on PostgreSQL: it takes effect as a whole or not at all."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from penstock.domain.job import Claim, NewJob
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Succeeded
from penstock.domain.states import JobState
from penstock.errors import StoreUnavailable
from penstock.ports.store import Ask
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore

LANE = "ordered"
COUNT = 3


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET lock_timeout = 20'.encode())
    with closing(PostgresStore(postgres_url, max_connections=1)) as store:
        store.migrate()
        store.put_lane(lane(LANE, mode="block_on_error"), actor="test")
        store.enqueue([NewJob(lane=LANE, group="g")] * (COUNT + 1))
        yield store


def claimed(store: SqlStore) -> Claim:
    claim = store.claim_groups(Ask(lane=LANE, node=1, limit=1, run=COUNT))
    assert claim is not None
    assert len(claim.jobs) == COUNT
    return claim


def test_a_settle_that_fails_leaves_everything_as_it_was(store: SqlStore, postgres_url: str) -> None:
    claim = claimed(store)

    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT FROM penstock.groups FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            store.settle(claim)
        assert store.counts()[LANE, JobState.CLAIMED] == COUNT

    assert len(store.settle(claim).applied) == COUNT
    assert store.counts()[LANE, JobState.SUCCEEDED] == COUNT
    assert len(claimed_rest(store).jobs) == 1


def claimed_rest(store: SqlStore) -> Claim:
    claim = store.claim_groups(Ask(lane=LANE, node=1, limit=1, run=COUNT))
    assert claim is not None
    return claim


def test_groups_stay_with_a_claim_that_is_not_settled_as_a_whole(store: SqlStore) -> None:
    claim = claimed(store)
    store.settle(claim, {claim.jobs[0].job.arrival: Succeeded()})

    assert not store.hot.settle_succeeded(store.db, claim, claim.jobs[0].job.lane)

    group = store.group(LANE, "g")
    assert group is not None
    assert group.claim == claim.epoch


def test_a_group_with_nothing_left_goes(store: SqlStore) -> None:
    store.settle(claimed(store))
    assert store.group(LANE, "g") is not None

    store.settle(claimed_rest(store))

    assert store.group(LANE, "g") is None


def test_a_job_that_arrives_in_a_quiet_lane_is_claimed_by_the_next_who_looks(store: SqlStore) -> None:
    store.enqueue([NewJob(lane=LANE, group=f"g{number}") for number in range(5)])
    ask = Ask(lane=LANE, node=1, limit=1)
    for _ in range(3):
        assert store.claim_groups(ask) is not None
    store.enqueue([NewJob(lane=LANE, group="new")])

    rest = store.claim_groups(Ask(lane=LANE, node=1, limit=10))

    assert rest is not None
    assert {claimed.job.grp for claimed in rest.jobs} == {"g2", "g3", "g4", "new"}
