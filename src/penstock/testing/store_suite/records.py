"""What is on record: how deep a lane is, and who did what."""

import json
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.job import AuditEntry
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.domain.states import JobState, Verb
from penstock.errors import InvalidCursor, InvalidQuery, UnknownLane
from penstock.ports.store import JobQuery, Store
from penstock.testing.store_suite.factories import (
    LANE,
    claim,
    enqueue,
    in_state,
    job,
    operate,
    put_lane,
    some,
)
from penstock.testing.store_suite.pools import put_pool

S = JobState


def audit(store: Store, **which: Any) -> list[AuditEntry]:  # noqa: ANN401 - as the log takes it
    """Return the newest audit rows, oldest first."""
    return store.audit_log(limit=100, **which).entries[::-1]


class DepthTests:
    """How much there is to do."""

    def test_the_depth_of_a_lane_is_its_jobs_that_are_not_ended(self, store: Store) -> None:
        """In any state, and of no other lane."""
        put_lane(store)
        put_lane(store, "other")
        assert store.depth(LANE) == 0
        for state in (S.DISPATCHED, S.RUNNING, S.HELD, S.SUCCEEDED, S.DEAD, S.CANCELLED):
            in_state(store, state)
        enqueue(store, job(), job(), job("other"))
        some(claim(store, limit=1))

        assert store.depth(LANE) == 5
        store.fold_counts()
        assert (store.depth(LANE), store.depth("other")) == (5, 1)

    def test_a_lane_nobody_knows_has_no_depth(self, store: Store) -> None:
        """A name misspelt is not an empty lane."""
        with pytest.raises(UnknownLane):
            store.depth("nowhere")


class AuditLogTests:
    """The log of who did what."""

    def test_lanes_and_pools_leave_their_marks(self, store: Store) -> None:
        """Creation, change, pause and deletion; actor, reason, and the values before and after."""
        put_lane(store, weight=2)
        put_lane(store, weight=3)
        store.pause_lane(LANE, paused=True, actor="ann", reason="outage")
        store.pause_lane(LANE, paused=False, actor="bob", reason="over")
        store.delete_lane(LANE, actor="carl", reason="unused")
        put_pool(store, rate="5/s")
        store.pause_pool("web", paused=True, actor="ann", reason="outage")
        store.delete_pool("web", actor="carl")
        rows = audit(store)

        assert [(row.action, row.actor, row.reason) for row in rows] == [
            ("lane.create", "suite", None),
            ("lane.update", "suite", None),
            ("lane.update", "ann", "outage"),
            ("lane.update", "bob", "over"),
            ("lane.delete", "carl", "unused"),
            ("pool.create", "suite", None),
            ("pool.update", "ann", "outage"),
            ("pool.delete", "carl", None),
        ]
        assert [row.lane for row in rows] == [LANE] * 5 + [None] * 3
        assert [json.loads(text or "") for text in rows[1][6:8]] == [{"weight": 2}, {"weight": 3}]
        assert json.loads(rows[2].after or "")["paused"] is True
        assert json.loads(rows[4].before or "")["weight"] == 3
        assert [json.loads(row.before or row.after or "")["name"] for row in rows[5:]] == ["web"] * 3
        assert all(row.at <= store.now() for row in rows)

    def test_the_log_is_read_newest_first_page_by_page(self, store: Store) -> None:
        """What is written meanwhile does not shift it."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(5)))
        for job_id in job_ids:
            operate(store, Verb.HOLD, job_id)
        first = store.audit_log(limit=2)
        operate(store, Verb.RELEASE, job_ids[0])
        second = store.audit_log(limit=2, after=first.next)
        third = store.audit_log(limit=2, after=second.next)

        assert [row.job for page in (first, second, third) for row in page.entries] == [*job_ids[::-1], None]
        assert third.next is None
        assert {(row.lane, row.action, row.actor) for row in first.entries} == {(LANE, "hold", "ops")}
        numbers = [row.number for page in (first, second, third) for row in page.entries]
        assert numbers == sorted(numbers, reverse=True)

    def test_the_log_of_one_lane_is_its_own_and_its_jobs(self, store: Store) -> None:
        """And of the lanes that had its name before."""
        put_lane(store)
        put_lane(store, "other")
        [job_id] = enqueue(store, job("other"))
        operate(store, Verb.CANCEL, job_id)
        put_pool(store)
        store.delete_lane("other", actor="ops")
        put_lane(store, "other")

        actions = [(row.action, row.job) for row in audit(store, lane="other")]
        assert actions == [
            ("lane.create", None),
            ("cancel", job_id),
            ("lane.delete", None),
            ("lane.create", None),
        ]
        assert [row.action for row in audit(store, lane=LANE)] == ["lane.create"]
        assert audit(store, lane="nowhere") == []

    def test_the_log_of_people_leaves_out_what_nodes_did(self, store: Store) -> None:
        """Page by page, of all lanes and of one."""
        put_lane(store)
        late, job_id = enqueue(store, job(start_by=store.now() - timedelta(hours=1)), job())
        operate(store, Verb.HOLD, job_id)
        store.expire(10)
        operate(store, Verb.RELEASE, job_id)

        assert late in [row.job for row in audit(store)]
        people = [row.action for row in audit(store, people=True)]
        assert people == [row.action for row in audit(store, people=True, lane=LANE)]
        assert people == ["lane.create", "hold", "release"]
        first = store.audit_log(people=True, limit=2)
        rest = store.audit_log(people=True, limit=2, after=first.next)
        assert [row.action for row in [*first.entries, *rest.entries]] == people[::-1]
        with pytest.raises(InvalidCursor):
            store.audit_log(after=first.next)

    def test_a_person_or_role_of_the_name_of_nodes_is_none_of_them(self, store: Store) -> None:
        """It is a likely name of a database role; nodes change no settings."""
        store.put_lane(lane(LANE), actor="penstock")
        store.put_pool(pool("web"), actor="penstock")

        assert [row.action for row in audit(store, people=True)] == ["lane.create", "pool.create"]
        assert [row.action for row in audit(store, people=True, lane=LANE)] == ["lane.create"]

    def test_a_cursor_of_another_log_is_refused(self, store: Store) -> None:
        """So is one of a list of jobs, and a page of nothing."""
        put_lane(store)
        put_lane(store, weight=2)
        enqueue(store, job(), job())
        cursor = store.audit_log(limit=1).next
        jobs = store.list_jobs(JobQuery(limit=1)).next

        for after in (cursor, jobs, "nonsense"):
            with pytest.raises(InvalidCursor):
                store.audit_log(lane=LANE, after=after)
        for limit in (0, 501):
            with pytest.raises(InvalidQuery, match="limit"):
                store.audit_log(limit=limit)
