"""Order inside a group: every rule of it, one at a time."""

import pytest

from penstock.domain.ordering import DEFAULT_GROUP, Mode
from penstock.domain.outcomes import Dead, Deferred, Dispatched, Failed, Lapsed, Returned, Running
from penstock.domain.states import Reason, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    ZERO,
    claim,
    claim_groups,
    drain,
    enqueue,
    ids,
    job,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
)

BLOCK, NEXT = Mode.BLOCK_ON_ERROR, Mode.NEXT_ON_ERROR
DEAD = Dead(Reason.PERMANENT, "boom")


class GroupTests:
    """Groups."""

    def test_jobs_go_by_sequence_then_arrival(self, store: Store) -> None:
        """Neither due time nor batch matters."""
        put_lane(store)
        now = store.now()
        [d, b, c] = enqueue(
            store,
            ordered(sequence=9, run_at=now - 3 * HOUR),
            ordered(sequence=5, run_at=now - HOUR),
            ordered(sequence=5, run_at=now - 2 * HOUR),
        )
        [a] = enqueue(store, ordered(sequence=0))

        assert drain(store) == [a, b, c, d]

    def test_a_group_has_one_job_in_flight(self, store: Store) -> None:
        """While its head is claimed the group is nobody else's."""
        put_lane(store)
        [first, _] = enqueue(store, ordered(), ordered())

        assert ids(claim_groups(store)) == [first]
        assert claim_groups(store) is None

    @pytest.mark.parametrize("outcome", [Dispatched(HOUR), Running(HOUR)], ids=["dispatched", "running"])
    def test_a_job_that_is_out_holds_its_group(self, store: Store, outcome: Dispatched | Running) -> None:
        """Until it is reported."""
        put_lane(store)
        [first, second] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), outcome)

        assert claim_groups(store) is None

        operate(store, Verb.SETTLE_SUCCEEDED, first)

        assert ids(claim_groups(store)) == [second]

    @pytest.mark.parametrize(
        "outcome",
        [Failed("no", HOUR), Deferred(HOUR), Lapsed(hold=True)],
        ids=["back-off", "throttled", "outcome unknown"],
    )
    def test_a_job_that_was_sent_keeps_its_group(
        self, store: Store, outcome: Failed | Deferred | Lapsed
    ) -> None:
        """Through back-off, throttling and doubt."""
        put_lane(store)
        enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), outcome)

        assert claim_groups(store) is None

    @pytest.mark.parametrize(
        "outcome", [Failed("no", ZERO), Deferred(ZERO), Lapsed()], ids=["failed", "deferred", "lapsed"]
    )
    def test_nothing_overtakes_a_job_that_was_sent(
        self, store: Store, outcome: Failed | Deferred | Lapsed
    ) -> None:
        """A lower sequence that arrives later stands behind it."""
        put_lane(store)
        [first] = enqueue(store, ordered(sequence=50))
        settle(store, some(claim_groups(store)), outcome)
        [lower] = enqueue(store, ordered(sequence=1))

        assert drain(store) == [first, lower]

    def test_a_lower_sequence_overtakes_an_unsent_head(self, store: Store) -> None:
        """A head that is only pending has no claim to the place."""
        put_lane(store)
        [first] = enqueue(store, ordered(sequence=50))
        [lower] = enqueue(store, ordered(sequence=1))

        assert drain(store) == [lower, first]

    @pytest.mark.parametrize("outcome", [Returned("stop"), Lapsed(started=False)], ids=["returned", "lapsed"])
    def test_a_lower_sequence_overtakes_a_job_that_came_back_unsent(
        self, store: Store, outcome: Returned | Lapsed
    ) -> None:
        """Being claimed alone is not being sent."""
        put_lane(store)
        [first] = enqueue(store, ordered(sequence=50))
        batch = some(claim_groups(store))
        [lower] = enqueue(store, ordered(sequence=1))
        settle(store, batch, outcome)

        assert drain(store) == [lower, first]

    def test_a_lower_sequence_waits_for_a_job_being_sent(self, store: Store) -> None:
        """A claim in flight is not disturbed."""
        put_lane(store)
        [first] = enqueue(store, ordered(sequence=50))
        batch = some(claim_groups(store))
        [lower] = enqueue(store, ordered(sequence=1))

        assert claim_groups(store) is None

        store.settle(batch)

        assert drain(store) == [lower]
        assert ids(batch) == [first]

    def test_a_future_head_holds_its_group(self, store: Store) -> None:
        """Order is by sequence, not by time; `ahead` opens it."""
        put_lane(store)
        [head, _] = enqueue(store, ordered(sequence=1, run_at=store.now() + HOUR), ordered(sequence=2))

        assert claim_groups(store) is None
        assert ids(claim_groups(store, ahead=2 * HOUR)) == [head]

    def test_a_hurried_head_opens_its_group(self, store: Store) -> None:
        """Due now, it goes now, and the others after it."""
        put_lane(store)
        [first, second] = enqueue(store, ordered(run_at=store.now() + HOUR), ordered())
        operate(store, Verb.RETRY, first)

        assert drain(store) == [first, second]

    def test_a_report_lets_the_next_go(self, store: Store) -> None:
        """Not only the holder's settle promotes a group."""
        put_lane(store)
        [first, second] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dispatched(HOUR))
        operate(store, Verb.CANCEL, first, force=True)

        assert drain(store) == [second]
        assert report(store, first, 1, Running(HOUR)).late

    def test_groups_do_not_wait_for_each_other(self, store: Store) -> None:
        """Nor do equal names in different lanes."""
        put_lane(store)
        put_lane(store, "other")
        [a, b, c] = enqueue(store, ordered("a"), ordered("b"), ordered("a", lane="other"))

        assert set(ids(claim_groups(store))) == {a, b}
        assert ids(claim_groups(store, "other")) == [c]

    def test_immediate_jobs_neither_wait_nor_block(self, store: Store) -> None:
        """With a group's name on them they are still in nobody's order."""
        put_lane(store)
        [head] = enqueue(store, ordered("g", sequence=5))
        [plain] = enqueue(store, job(group="g", sequence=1))
        settle(store, some(claim(store)), DEAD)
        assert ids(claim_groups(store)) == [head]
        [another] = enqueue(store, job(group="g", sequence=9))

        assert ids(claim(store)) == [another] != [plain]

    def test_ordered_jobs_without_a_group_wait_for_each_other(self, store: Store) -> None:
        """They share the lane's group `default`, also with those who name it."""
        put_lane(store)
        [first, _] = enqueue(store, ordered(None), ordered(DEFAULT_GROUP))

        assert ids(claim_groups(store)) == [first]

    def test_the_limit_counts_groups(self, store: Store) -> None:
        """One head each."""
        put_lane(store)
        enqueue(store, *(ordered(f"g{i}") for i in range(5) for _ in range(2)))

        assert [len(ids(claim_groups(store, limit=2))) for _ in range(4)] == [2, 2, 1, 0]
