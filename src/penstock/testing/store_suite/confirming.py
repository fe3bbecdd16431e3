"""The last look before a send: whose claim it is, what is stopped, what operators asked for."""

from datetime import datetime

import pytest

from penstock.domain.outcomes import Succeeded
from penstock.domain.states import Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    claim,
    claim_groups,
    enqueue,
    job,
    operate,
    ordered,
    pause_and_wait,
    put_lane,
    some,
)
from penstock.testing.store_suite.pools import put_pool


class ConfirmTests:
    """Confirm."""

    def test_a_claim_that_nothing_disturbs_is_ours_and_may_go(self, store: Store) -> None:
        """By the store's time; heads of groups are no different."""
        put_lane(store)
        enqueue(store, job(), ordered())
        for batch in (some(claim(store)), some(claim_groups(store))):
            before = store.now()
            told = store.confirm(batch)

            assert (told.ours, told.stopped, told.asked) == (True, None, {})
            assert before <= told.now <= store.now()

    def test_a_claim_that_was_taken_over_or_is_settled_is_not_ours(self, store: Store) -> None:
        """Whatever was asked of its jobs is for the new holder."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        old = some(claim(store, lease=PAST))
        operate(store, Verb.CANCEL, job_id)
        [new] = store.takeover(2, HOUR, 10)

        assert (store.confirm(old).ours, store.confirm(old).asked) == (False, {})
        assert (store.confirm(new).ours, len(store.confirm(new).asked)) == (True, 1)
        store.settle(new)
        assert (store.confirm(new).ours, store.confirm(new).asked) == (False, {})

    def test_only_what_was_asked_of_jobs_still_claimed_is_told(self, store: Store) -> None:
        """In whatever place of the claim they are."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(20)))
        batch = some(claim(store))
        arrivals = [claimed.job.arrival for claimed in batch.jobs]
        for job_id in job_ids:
            operate(store, Verb.CANCEL, job_id)
        store.settle(batch, dict.fromkeys(arrivals[::3], Succeeded()))

        assert set(store.confirm(batch).asked) == set(arrivals) - set(arrivals[::3])

    @pytest.mark.parametrize("over", [False, True], ids=["ahead", "over"])
    def test_a_paused_lane_may_not_send_until_the_pause_is_over(self, store: Store, *, over: bool) -> None:
        """Who paused it and why is said."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store))

        def pause(until: datetime) -> None:
            store.pause_lane(LANE, paused=True, until=until, actor="ann", reason="outage")

        if over:
            pause_and_wait(store, pause)
        else:
            pause(store.now() + HOUR)
        stopped = store.confirm(batch).stopped

        if over:
            assert stopped is None
        else:
            assert f'lane "{LANE}" is paused by ann: outage (until ' in str(stopped)
        store.pause_lane(LANE, paused=False, actor="ann", reason="over")
        assert store.confirm(batch).stopped is None

    def test_a_disabled_lane_may_not_send(self, store: Store) -> None:
        """The kill switch works on what is claimed already."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store))
        put_lane(store, enabled=False)

        assert store.confirm(batch).stopped == f'lane "{LANE}" is disabled'

    def test_a_lane_of_a_paused_pool_may_not_send(self, store: Store) -> None:
        """Another pool's pause is none of its business."""
        for name in ("web", "other"):
            put_pool(store, name)
        put_lane(store, pool="web")
        enqueue(store, job())
        batch = some(claim(store))
        store.pause_pool("other", paused=True, actor="ann", reason="outage")
        assert store.confirm(batch).stopped is None
        store.pause_pool("web", paused=True, actor="bob", reason="audit")

        assert store.confirm(batch).stopped == 'pool "web" is paused by bob: audit'
