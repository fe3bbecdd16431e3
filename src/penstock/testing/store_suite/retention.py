"""Housekeeping: what expires, what is dropped, and what must stay."""

from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Failed
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import KeyConflict
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    PAST,
    ZERO,
    claim,
    claim_groups,
    drain,
    enqueue,
    find,
    in_state,
    job,
    operate,
    ordered,
    put_lane,
    settle,
    some,
    state,
)


class ExpiryTests:
    """Expiry."""

    def test_a_job_whose_start_has_passed_expires(self, store: Store) -> None:
        """It is finished, with the move on record."""
        put_lane(store)
        [job_id] = enqueue(store, job(start_by=store.now() + PAST))

        assert store.expire(10) == 1
        assert state(store, job_id) is JobState.EXPIRED
        assert claim(store) is None
        [audit] = store.timeline(job_id).audit
        assert (audit.action, audit.before, audit.after) == ("expire", "pending", "expired")

    def test_what_may_still_start_does_not_expire(self, store: Store) -> None:
        """Nor does what has no `start_by`."""
        put_lane(store)
        enqueue(store, job(start_by=store.now() + HOUR), job())

        assert store.expire(10) == 0
        assert store.counts() == {(LANE, JobState.PENDING): 2}

    def test_only_pending_jobs_expire(self, store: Store) -> None:
        """What is claimed, out or held is not touched."""
        put_lane(store)
        late = store.now() + PAST
        for wanted in (JobState.CLAIMED, JobState.DISPATCHED, JobState.RUNNING, JobState.HELD):
            in_state(store, wanted, start_by=late)

        assert store.expire(10) == 0

    def test_expiry_is_bounded_and_goes_on(self, store: Store) -> None:
        """As many as asked for, until none is left."""
        put_lane(store)
        late = store.now() + PAST
        enqueue(store, *(job(start_by=late) for _ in range(5)))

        assert [store.expire(2) for _ in range(4)] == [2, 2, 1, 0]

    def test_an_expired_job_in_back_off_frees_its_group(self, store: Store) -> None:
        """A head that was tried and may start no more."""
        put_lane(store)
        [_, tail] = enqueue(store, ordered(start_by=store.now() + PAST), ordered())
        settle(store, some(claim_groups(store)), Failed("no", HOUR))

        assert store.expire(10) == 1
        assert drain(store) == [tail]


class RetentionTests:
    """Retention."""

    def test_what_is_young_stays(self, store: Store) -> None:
        """Nothing that retention still keeps is dropped."""
        put_lane(store, retention="1d")
        put_lane(store, "other")
        job_ids = [
            in_state(store, wanted, lane=LANE if wanted is JobState.SUCCEEDED else "other")
            for wanted in (JobState.SUCCEEDED, JobState.CANCELLED, JobState.EXPIRED, JobState.DEAD)
        ]

        assert store.retire(slice_rows=1_000) == 0
        assert len(store.find(job_ids)) == len(job_ids)

    def test_an_old_dead_job_goes(self, store: Store) -> None:
        """With a `dead_retention` of nothing, at once; it is unknown afterwards."""
        put_lane(store, dead_retention="0s")
        job_id = in_state(store, JobState.DEAD)

        assert store.retire(slice_rows=1_000) == 1
        assert store.find([job_id]) == {}
        assert claim(store) is None

    def test_a_dead_job_may_stay_as_long_as_can_be_said(self, store: Store) -> None:
        """Longer than there are years behind us, and ahead: for ever."""
        put_lane(store, dead_retention="999999999d", key_ttl="999999999d")
        job_ids = [in_state(store, JobState.DEAD), in_state(store, JobState.SUCCEEDED, key="k")]

        assert store.retire(slice_rows=1_000) == 0
        assert len(store.find(job_ids)) == len(job_ids)
        assert isinstance(store.enqueue([job(key="k", payload="another")])[0], KeyConflict)

    def test_a_dead_job_that_blocks_its_group_stays(self, store: Store) -> None:
        """However old; once it blocks nobody, it goes."""
        put_lane(store, dead_retention="0s")
        [dead, waits] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))

        assert store.retire(slice_rows=1_000) == 0
        assert claim_groups(store) is None
        assert state(store, dead) is JobState.DEAD

        operate(store, Verb.CANCEL, waits)

        assert store.retire(slice_rows=1_000) == 1
        assert store.group(LANE, GROUP) is None

    def test_a_dead_job_stays_while_its_group_is_at_work(self, store: Store) -> None:
        """Also where nobody waits for it: whoever arrives next might."""
        put_lane(store, dead_retention="0s")
        [dead, _] = enqueue(store, *(ordered(mode=Mode.NEXT_ON_ERROR) for _ in range(2)))
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))

        assert store.retire(slice_rows=1_000) == 0

        batch = some(claim_groups(store))

        assert store.retire(slice_rows=1_000) == 0
        assert state(store, dead) is JobState.DEAD

        store.settle(batch)

        assert store.retire(slice_rows=1_000) == 1

    def test_a_group_goes_on_after_its_dead_job_was_dropped(self, store: Store) -> None:
        """Nothing remembers what is gone."""
        put_lane(store, dead_retention="0s")
        enqueue(store, ordered())
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        store.retire(slice_rows=1_000)
        [later] = enqueue(store, ordered())

        assert drain(store) == [later]

    def test_dropping_is_bounded_and_goes_on(self, store: Store) -> None:
        """As many rows as asked for, until none is left."""
        put_lane(store, dead_retention="0s")
        enqueue(store, *(job() for _ in range(5)))
        settle(store, some(claim(store)), Dead(Reason.PERMANENT))
        dropped = [store.retire(slice_rows=2) for _ in range(6)]

        assert sum(dropped) == 5
        assert max(dropped) <= 2
        assert dropped[-1] == 0

    def test_the_key_of_a_dropped_job_is_free(self, store: Store) -> None:
        """Whatever its `key_ttl`: there is no job left that it could name."""
        put_lane(store, dead_retention="0s", key_ttl="24h")
        before = in_state(store, JobState.DEAD, key="k")
        store.retire(slice_rows=1_000)

        assert enqueue(store, job(key="k")) != [before]

    def test_live_jobs_are_never_dropped(self, store: Store) -> None:
        """However long ago they came."""
        put_lane(store, retention="1d", dead_retention="0s", key_ttl="0s")
        [job_id] = enqueue(store, job(run_at=store.now() - 1_000 * HOUR))
        settle(store, some(claim(store)), Failed("no", ZERO))

        assert store.retire(slice_rows=1_000) == 0
        assert find(store, job_id).context is not None
