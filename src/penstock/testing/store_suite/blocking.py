"""What stands in a group's way: dead, held and put-away jobs, pauses."""

from datetime import datetime
from functools import partial

import pytest

from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched
from penstock.domain.states import Reason, Verb
from penstock.errors import UnknownLane
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    claim_groups,
    drain,
    enqueue,
    ids,
    operate,
    ordered,
    pause_and_wait,
    put_lane,
    settle,
    some,
)

BLOCK, NEXT = Mode.BLOCK_ON_ERROR, Mode.NEXT_ON_ERROR
DEAD = Dead(Reason.PERMANENT, "boom")


class BlockingTests:
    """Blocked groups."""

    def test_a_held_job_holds_those_behind_it(self, store: Store) -> None:
        """Whatever their mode; released, it goes first."""
        put_lane(store)
        [first, second] = enqueue(store, ordered(), ordered(mode=NEXT))
        operate(store, Verb.HOLD, first)

        assert claim_groups(store) is None

        operate(store, Verb.RELEASE, first)

        assert drain(store) == [first, second]

    def test_a_held_job_does_not_hold_those_before_it(self, store: Store) -> None:
        """Order looks back only."""
        put_lane(store)
        [first, second, _] = enqueue(store, ordered(), ordered(), ordered())
        operate(store, Verb.HOLD, second)

        assert drain(store) == [first]

    @pytest.mark.parametrize("dead_mode", [BLOCK, NEXT], ids=lambda mode: mode.label)
    def test_the_job_that_waits_says_whether_it_waits_for_the_dead(
        self, store: Store, dead_mode: Mode
    ) -> None:
        """`next_on_error` goes on, `block_on_error` stays, whatever the dead job's own mode was."""
        put_lane(store)
        [dead, goes, stays] = enqueue(store, ordered(mode=dead_mode), ordered(mode=NEXT), ordered(mode=BLOCK))
        settle(store, some(claim_groups(store)), DEAD)

        assert drain(store) == [goes]
        group = store.group(LANE, GROUP)
        assert group is not None
        assert (group.blocked, group.claim) == (True, None)

        operate(store, Verb.SKIP, dead)

        assert drain(store) == [stays]

    def test_a_blocked_job_blocks_those_behind_it(self, store: Store) -> None:
        """A `next_on_error` job waits for earlier jobs that are not terminal."""
        put_lane(store)
        enqueue(store, ordered(), ordered(mode=BLOCK), ordered(mode=NEXT))
        settle(store, some(claim_groups(store)), DEAD)

        assert claim_groups(store) is None

    def test_a_dead_job_does_not_block_those_before_it(self, store: Store) -> None:
        """Only earlier dead jobs are in the way."""
        put_lane(store)
        enqueue(store, ordered(sequence=50))
        settle(store, some(claim_groups(store)), DEAD)
        [before, behind] = enqueue(store, ordered(sequence=49), ordered(sequence=51))

        assert drain(store) == [before]
        assert ids(claim_groups(store)) != [behind]

    @pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.SKIP, Verb.SETTLE_SUCCEEDED])
    def test_a_decision_about_the_dead_unblocks(self, store: Store, verb: Verb) -> None:
        """Cancelled, skipped or settled, it is in nobody's way."""
        put_lane(store)
        [dead, waits] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), DEAD)
        operate(store, verb, dead)

        assert drain(store) == [waits]

    def test_every_dead_job_must_be_decided(self, store: Store) -> None:
        """Resolving the first of two leaves the second in the way."""
        put_lane(store)
        [one, two, waits] = enqueue(store, ordered(mode=NEXT), ordered(mode=NEXT), ordered())
        settle(store, some(claim_groups(store)), DEAD)
        settle(store, some(claim_groups(store)), DEAD)
        operate(store, Verb.SKIP, one)

        assert claim_groups(store) is None

        operate(store, Verb.SKIP, two)

        assert drain(store) == [waits]

    def test_a_replayed_job_goes_before_those_that_waited_for_it(self, store: Store) -> None:
        """It has its old place."""
        put_lane(store)
        [dead, waits] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), DEAD)
        operate(store, Verb.RETRY, dead)

        assert drain(store) == [dead, waits]

    @pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.SKIP])
    def test_a_pending_head_that_is_put_away_lets_the_next_go(self, store: Store, verb: Verb) -> None:
        """Cancelled and skipped jobs never block."""
        put_lane(store)
        [first, second] = enqueue(store, ordered(run_at=store.now() + HOUR), ordered())
        operate(store, verb, first)

        assert drain(store) == [second]

    def test_an_expired_head_lets_the_next_go(self, store: Store) -> None:
        """Expired jobs never block."""
        put_lane(store)
        now = store.now()
        [_, second] = enqueue(store, ordered(run_at=now + HOUR, start_by=now - HOUR), ordered())

        assert claim_groups(store) is None
        assert store.expire(10) == 1
        assert drain(store) == [second]

    def test_a_pause_of_a_group_ends_when_its_time_has_come(self, store: Store) -> None:
        """Whoever leads lets it go; a pause without an end, or one that is not over, stays."""
        put_lane(store)
        enqueue(store, ordered("a"), ordered("b"), ordered("c"))

        def pause(group: str, until: datetime | None) -> None:
            store.pause_group(LANE, group, paused=True, actor="ops", reason="lunch", until=until)

        pause("b", store.now() + HOUR)
        pause("c", None)
        pause_and_wait(store, partial(pause, "a"))
        assert claim_groups(store) is None

        store.expire(10)

        assert [claimed.job.grp for claimed in some(claim_groups(store)).jobs] == ["a"]
        assert store.audit_log(limit=1).entries[0].reason == "its time is over"
        store.pause_group(LANE, "b", paused=False, actor="ops", reason="over")
        assert [claimed.job.grp for claimed in some(claim_groups(store)).jobs] == ["b"]

    def test_a_paused_group_is_left_alone(self, store: Store) -> None:
        """The others go on; resumed, it goes too."""
        put_lane(store)
        [a, b] = enqueue(store, ordered("a"), ordered("b"))
        store.pause_group(LANE, "a", paused=True, actor="ops", reason="customer asked")

        assert ids(claim_groups(store)) == [b]
        assert claim_groups(store) is None

        store.pause_group(LANE, "a", paused=False, actor="ops", reason="done")

        assert ids(claim_groups(store)) == [a]

    def test_a_group_of_a_lane_nobody_knows_cannot_be_paused(self, store: Store) -> None:
        """A pause that nothing would ever read is a mistake."""
        with pytest.raises(UnknownLane):
            store.pause_group("nobody", GROUP, paused=True, actor="ops", reason="typo")

    def test_a_group_can_be_paused_before_it_has_jobs(self, store: Store) -> None:
        """The pause is about the name."""
        put_lane(store)
        store.pause_group(LANE, GROUP, paused=True, actor="ops", reason="not yet")
        [job_id] = enqueue(store, ordered())

        assert claim_groups(store) is None

        store.pause_group(LANE, GROUP, paused=False, actor="ops", reason="now")

        assert drain(store) == [job_id]

    def test_blocked_groups_in_front_do_not_hide_the_free_one(self, store: Store) -> None:
        """Eligible heads first, then the limit: 200 groups that cannot go, each for another reason."""
        put_lane(store)
        now = store.now()
        old = now - 2 * HOUR
        dead = enqueue(store, *(ordered(f"a{i}", run_at=old) for i in range(50)))
        settle(store, some(claim_groups(store, limit=50)), DEAD)
        enqueue(store, *(ordered(f"a{i}", run_at=old) for i in range(50)))
        held = enqueue(store, *(ordered(f"b{i}", run_at=old) for i in range(50)))
        store.operate(Verb.HOLD, held, actor="ops", reason="check")
        enqueue(store, *(ordered(f"c{i}", run_at=now + HOUR) for i in range(50)))
        enqueue(store, *(ordered(f"d{i}", run_at=old) for i in range(50)))
        settle(store, some(claim_groups(store, limit=100)), Dispatched(HOUR))
        [free] = enqueue(store, ordered("z"))

        assert ids(claim_groups(store, limit=1)) == [free]
        assert len(dead) == 50
