"""The memory store keeps the contract, on a clock that runs and on one that stands still."""

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.job import Enqueued
from penstock.domain.states import JobState
from penstock.domain.ulid import Ulids
from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore
from penstock.testing.store_suite import StoreSuite
from penstock.testing.store_suite.factories import LANE, enqueue, in_state, job, put_lane


def _ids() -> Ulids:
    return Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)


class TestMemory(StoreSuite):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore(clock=lambda: datetime.now(UTC), ids=_ids())


class TestMemoryOnAFrozenClock(StoreSuite):
    @pytest.fixture
    def store(self) -> Store:
        frozen = datetime(2026, 3, 1, 12, tzinfo=UTC)
        return MemoryStore(clock=lambda: frozen, ids=_ids())


class TestMemoryAsTimePasses:
    """What the suite cannot show because it never moves a clock."""

    @pytest.fixture
    def clock(self) -> list[datetime]:
        return [datetime(2026, 3, 1, 12, tzinfo=UTC)]

    @pytest.fixture
    def store(self, clock: list[datetime]) -> Store:
        store = MemoryStore(clock=lambda: clock[0], ids=_ids())
        assert store.migrate() == []
        store.check_schema()
        return store

    def test_history_goes_when_its_retention_is_over(self, store: Store, clock: list[datetime]) -> None:
        put_lane(store, retention="7d")
        job_id = in_state(store, JobState.SUCCEEDED)
        clock[0] += timedelta(days=7, microseconds=-1)
        assert store.retire(slice_rows=10) == 0
        clock[0] += timedelta(microseconds=1)

        assert store.retire(slice_rows=10) == 1
        assert store.find([job_id]) == {}
        assert store.counts() == {}
        store.close()

    def test_a_key_is_free_after_its_time(self, store: Store, clock: list[datetime]) -> None:
        put_lane(store, key_ttl="24h")
        job_id = in_state(store, JobState.SUCCEEDED, key="k")
        clock[0] += timedelta(hours=24, microseconds=-1)
        assert store.enqueue([job(key="k")]) == [Enqueued(job_id, duplicate=True)]
        clock[0] += timedelta(microseconds=1)

        assert enqueue(store, job(key="k")) != [job_id]

    def test_a_key_goes_with_its_jobs_history(self, store: Store, clock: list[datetime]) -> None:
        """Nobody can be told of a job that is gone, however long its `key_ttl` would be."""
        put_lane(store, retention="1d", key_ttl="7d")
        job_id = in_state(store, JobState.SUCCEEDED, key="k", payload="1")
        clock[0] += timedelta(days=1, microseconds=-1)
        assert store.enqueue([job(key="k", payload="1")]) == [Enqueued(job_id, duplicate=True)]
        clock[0] += timedelta(microseconds=1)
        assert store.retire(slice_rows=10) == 1

        assert enqueue(store, job(key="k", payload="2")) != [job_id]

    def test_a_key_goes_with_its_dead_job(self, store: Store, clock: list[datetime]) -> None:
        put_lane(store, dead_retention="1d", key_ttl="2d")
        job_id = in_state(store, JobState.DEAD, key="k")
        clock[0] += timedelta(days=1)
        assert store.enqueue([job(key="k")]) == [Enqueued(job_id, duplicate=True)]
        assert store.retire(slice_rows=10) == 1

        enqueue(store, job(key="k"))
        assert store.counts() == {(LANE, JobState.PENDING): 1}
