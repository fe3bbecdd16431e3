"""What a SQLite store drops, told by a clock that can be set."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.outcomes import Dead, Returned, Succeeded
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Store
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.store_suite.factories import (
    LANE,
    claim,
    enqueue,
    in_state,
    job,
    operate,
    put_lane,
    settle,
    some,
)


@pytest.fixture
def clock() -> list[datetime]:
    return [datetime(2026, 3, 1, 12, tzinfo=UTC)]


@pytest.fixture
def store(clock: list[datetime]) -> Iterator[Store]:
    store = SqliteStore(":memory:", clock=lambda: clock[0])
    store.migrate()
    yield store
    store.close()


def test_what_is_dropped_is_no_longer_counted(store: Store, clock: list[datetime]) -> None:
    put_lane(store, retention="1d")
    for state in (JobState.SUCCEEDED, JobState.SUCCEEDED, JobState.CANCELLED):
        in_state(store, state)
    clock[0] += timedelta(days=1, seconds=1)
    in_state(store, JobState.SUCCEEDED)

    assert store.retire(slice_rows=10) == 3
    assert store.counts() == {(LANE, JobState.SUCCEEDED): 1}


def test_jobs_go_though_their_lane_keeps_longer_now(store: Store, clock: list[datetime]) -> None:
    put_lane(store, retention="1d")
    job_id = in_state(store, JobState.SUCCEEDED)
    put_lane(store, retention="30d")
    kept = in_state(store, JobState.SUCCEEDED)
    clock[0] += timedelta(days=2)

    assert store.retire(slice_rows=10) == 1
    assert set(store.find([job_id, kept])) == {kept}


@pytest.mark.parametrize("ended", [JobState.SUCCEEDED, JobState.DEAD])
def test_what_nodes_noted_of_a_job_goes_with_it_and_what_people_did_stays(
    store: Store, clock: list[datetime], ended: JobState
) -> None:
    put_lane(store, retention="1d", dead_retention="1d")
    [job_id] = enqueue(store, job())
    operate(store, Verb.HOLD, job_id)
    operate(store, Verb.RELEASE, job_id)
    settle(store, some(claim(store)), Returned("no token"))
    last = Succeeded() if ended is JobState.SUCCEEDED else Dead(Reason.PERMANENT, "no")
    settle(store, some(claim(store)), last)
    assert [note.action for note in store.timeline(job_id).audit] == ["hold", "release", "return"]
    clock[0] += timedelta(days=1, seconds=1)
    store.retire(slice_rows=10)

    assert store.find([job_id]) == {}
    actions = [one.action for one in store.audit_log().entries]
    assert [action for action in actions if action in ("hold", "release", "return")] == ["release", "hold"]
