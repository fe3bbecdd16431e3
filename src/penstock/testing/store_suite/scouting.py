"""One look at all lanes: who has something to do, and when."""

from datetime import datetime

from penstock.domain.outcomes import Dead, Dispatched, Failed
from penstock.domain.states import Reason, Verb
from penstock.ports.flow import Work
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    claim,
    claim_groups,
    drain,
    enqueue,
    find,
    job,
    operate,
    ordered,
    put_lane,
    settle,
    some,
)


def looked(store: Store, lane: str = LANE) -> Work:
    """Return what a look at one lane finds once a claimer has been by: no news are left to be taken in."""
    claim_groups(store, lane, ahead=-1000 * HOUR)
    return store.scout().work.get(lane, Work(None, None))


def due(store: Store, job_id: str) -> datetime:
    """Return when a job is due."""
    return find(store, job_id).live.due_at


class ScoutTests:
    """Scouting."""

    def test_lanes_with_nothing_to_do_are_missing(self, store: Store) -> None:
        """Also where all is done, or there are no lanes at all."""
        before = store.now()
        assert store.scout().work == {}
        put_lane(store)
        put_lane(store, "other")
        enqueue(store, job(), ordered())
        drain(store)
        scouted = store.scout()

        assert scouted.work == {}
        assert before <= scouted.now <= store.now()

    def test_the_earliest_job_of_each_lane_counts(self, store: Store) -> None:
        """With a tenant or without one, due or not yet; what is claimed is gone."""
        for name in (LANE, "other", "idle"):
            put_lane(store, name)
        now = store.now()
        [late] = enqueue(store, job(run_at=now + 2 * HOUR))
        [tenant] = enqueue(store, job(run_at=now + HOUR, tenant="acme"))
        [first] = enqueue(store, job(run_at=now - HOUR))
        [other] = enqueue(store, job("other", run_at=now - 2 * HOUR, tenant="acme"))

        assert store.scout().work == {
            LANE: Work(due(store, first), None),
            "other": Work(due(store, other), None),
        }
        store.settle(some(claim(store)))
        assert store.scout().work[LANE] == Work(due(store, tenant), None)
        operate(store, Verb.CANCEL, tenant)
        assert store.scout().work[LANE] == Work(due(store, late), None)
        some(claim(store, ahead=3 * HOUR))
        assert LANE not in store.scout().work

    def test_new_jobs_of_groups_are_seen_before_any_claim(self, store: Store) -> None:
        """Whether their turn has come is for the claim to find out."""
        put_lane(store)
        put_lane(store, "other")
        enqueue(store, ordered())
        scouted = store.scout()

        groups_at = scouted.work[LANE].groups_at
        assert groups_at is not None
        assert groups_at <= scouted.now
        assert set(scouted.work) == {LANE}

    def test_a_group_is_ready_when_its_head_is(self, store: Store) -> None:
        """The earliest of all groups counts, with a tenant or without one."""
        put_lane(store)
        now = store.now()
        [_, a, _, b] = enqueue(
            store,
            ordered("a", sequence=2, run_at=now - HOUR),
            ordered("a", sequence=1, run_at=now + 2 * HOUR),
            ordered("b", sequence=2, run_at=now - HOUR, tenant="acme"),
            ordered("b", sequence=1, run_at=now + 3 * HOUR, tenant="acme"),
        )
        assert claim_groups(store) is None
        assert looked(store) == Work(None, due(store, a))
        settle(store, some(claim_groups(store, ahead=2 * HOUR)), Dispatched(HOUR))
        assert looked(store) == Work(None, due(store, b))

    def test_groups_that_cannot_go_are_not_ready(self, store: Store) -> None:
        """In flight, out, blocked by a dead job, or paused."""
        put_lane(store)
        enqueue(store, *(ordered(name) for name in ("flight", "out", "dead", "paused") for _ in "ab"))
        for name in ("paused", "flight", "out"):
            store.pause_group(LANE, name, paused=True, actor="ops", reason="because")
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        store.pause_group(LANE, "out", paused=False, actor="ops", reason="over")
        settle(store, some(claim_groups(store)), Dispatched(HOUR))
        store.pause_group(LANE, "flight", paused=False, actor="ops", reason="over")
        some(claim_groups(store))

        assert looked(store) == Work(None, None)

    def test_a_head_in_back_off_is_ready_when_that_is_over(self, store: Store) -> None:
        """Its successors are nothing to go by."""
        put_lane(store)
        [first, _] = enqueue(store, ordered(GROUP), ordered(GROUP))
        settle(store, some(claim_groups(store)), Failed("no", HOUR))

        assert looked(store) == Work(None, due(store, first))
