"""Runs: several consecutive jobs of a group in one claim, and groups that go on once a job was sent."""

from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched, Failed, Lapsed, Returned, Succeeded
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    ZERO,
    by_id,
    claim_groups,
    drain,
    enqueue,
    find,
    ids,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
    state,
)

PASSES = Dispatched(HOUR, passes=True)


class RunTests:
    """Runs."""

    def test_a_run_takes_consecutive_jobs_in_order(self, store: Store) -> None:
        """As many of each group as asked for."""
        put_lane(store)
        [c, a, b] = enqueue(store, ordered(sequence=3), ordered(sequence=1), ordered(sequence=2))
        [d] = enqueue(store, ordered("other"))
        batch = some(claim_groups(store, run=2))

        assert batch.groups
        assert [job_id for job_id in ids(batch) if job_id != d] == [a, b]
        assert d in ids(batch)
        assert state(store, c) is JobState.PENDING

    def test_a_run_ends_before_a_job_that_may_not_go(self, store: Store) -> None:
        """A future job, a held one, a blocked one: nothing behind it goes either."""
        put_lane(store)
        now = store.now()
        [a, _, _] = enqueue(store, ordered("a"), ordered("a", run_at=now + HOUR), ordered("a"))
        [b, held, _] = enqueue(store, *(ordered("b") for _ in range(3)))
        operate(store, Verb.HOLD, held)

        assert set(ids(claim_groups(store, run=5))) == {a, b}

    def test_a_run_ends_before_a_job_that_waits_for_the_dead(self, store: Store) -> None:
        """`next_on_error` jobs go, the first `block_on_error` one ends the run."""
        put_lane(store)
        [_, a, b, _, _] = enqueue(
            store,
            ordered(),
            ordered(mode=Mode.NEXT_ON_ERROR),
            ordered(mode=Mode.NEXT_ON_ERROR),
            ordered(mode=Mode.BLOCK_ON_ERROR),
            ordered(mode=Mode.NEXT_ON_ERROR),
        )
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))

        assert ids(claim_groups(store, run=5)) == [a, b]

    def test_a_group_is_in_one_claim_only(self, store: Store) -> None:
        """Jobs behind a run wait until all of the run is settled."""
        put_lane(store)
        [a, b, c] = enqueue(store, *(ordered() for _ in range(3)))
        batch = some(claim_groups(store, run=2))

        assert claim_groups(store, run=2) is None

        store.settle(batch, by_id(batch, {a: Succeeded()}))

        assert claim_groups(store) is None

        store.settle(batch, by_id(batch, {b: Succeeded()}))

        assert ids(claim_groups(store)) == [c]

    def test_a_settled_group_is_free_while_the_claim_lives(self, store: Store) -> None:
        """Groups of one claim do not wait for each other."""
        put_lane(store)
        [a1, b1, a2, _] = enqueue(store, ordered("a"), ordered("b"), ordered("a"), ordered("b"))
        batch = some(claim_groups(store))
        store.settle(batch, by_id(batch, {a1: Succeeded()}))

        assert ids(claim_groups(store)) == [a2]
        assert state(store, b1) is JobState.CLAIMED

    def test_the_unsent_rest_of_a_run_goes_again_in_order(self, store: Store) -> None:
        """Nothing is sent past a failure: the failed job is first, the others follow."""
        put_lane(store)
        [a, b, c] = enqueue(store, *(ordered() for _ in range(3)))
        batch = some(claim_groups(store, run=3))
        rest = Returned("a failure before it")
        store.settle(batch, by_id(batch, {a: Failed("no", ZERO), b: rest, c: rest}))

        assert drain(store) == [a, b, c]

    def test_a_failure_in_back_off_holds_the_rest_of_its_run(self, store: Store) -> None:
        """Also when later jobs of the run were sent before."""
        put_lane(store)
        [a, b, _] = enqueue(store, *(ordered() for _ in range(3)))
        batch = some(claim_groups(store, run=2))
        store.settle(batch, by_id(batch, {a: Failed("no", HOUR), b: Returned("a failure before it")}))

        assert claim_groups(store, run=3) is None

    def test_a_job_that_passes_lets_the_next_go(self, store: Store) -> None:
        """`hold_until = sent`: the sink keeps the order from then on."""
        put_lane(store)
        [a, b, c] = enqueue(store, *(ordered() for _ in range(3)))
        settle(store, some(claim_groups(store)), PASSES)

        assert not find(store, a).live.holds
        assert ids(claim_groups(store, run=2)) == [b, c]
        assert state(store, a) is JobState.DISPATCHED

    def test_a_group_with_nothing_but_passed_jobs_is_quiet(self, store: Store) -> None:
        """There is nothing to claim until something arrives."""
        put_lane(store)
        enqueue(store, ordered())
        settle(store, some(claim_groups(store)), PASSES)

        assert claim_groups(store) is None
        assert store.group(LANE, GROUP) is None

        [later] = enqueue(store, ordered())

        assert ids(claim_groups(store)) == [later]

    def test_a_retry_after_its_successors_takes_its_own_place(self, store: Store) -> None:
        """It stands first again, and holds the group while it waits."""
        put_lane(store)
        [a, b] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store, run=2)), PASSES)
        [c] = enqueue(store, ordered())
        assert report(store, a, 1, Failed("no", HOUR)).applied

        assert find(store, a).live.holds
        assert claim_groups(store) is None

        operate(store, Verb.RETRY, a)

        assert drain(store) == [a, c]
        assert state(store, b) is JobState.DISPATCHED

    def test_a_lapsed_job_that_passed_holds_its_group_again(self, store: Store) -> None:
        """In doubt, it is pending and first."""
        put_lane(store)
        [a, b] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dispatched(-HOUR, passes=True))
        lapse = store.lapse(1, HOUR, 10)
        assert lapse is not None
        store.resolve(lapse, {find(store, a).live.arrival: Lapsed()})

        assert drain(store) == [a, b]

    def test_a_success_of_a_passed_job_leaves_the_claim_of_its_group_alone(self, store: Store) -> None:
        """A report about a job that holds nothing does not open a group that is claimed."""
        put_lane(store)
        [a, b, _] = enqueue(store, *(ordered() for _ in range(3)))
        settle(store, some(claim_groups(store)), PASSES)
        batch = some(claim_groups(store))
        assert report(store, a, 1, Succeeded()).applied

        assert claim_groups(store) is None
        assert ids(batch) == [b]
        group = store.group(LANE, GROUP)
        assert group is not None
        assert group.claim == batch.epoch
