"""Replay: a job that ended goes again, in its old place."""

import pytest

from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched, Failed
from penstock.domain.states import Effect, JobState, Reason, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    PAST,
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

S = JobState


class ReplayTests:
    """Replays."""

    @pytest.mark.parametrize("start", [S.DEAD, S.EXPIRED, S.CANCELLED], ids=lambda state: state.label)
    def test_a_replay_starts_over_in_the_same_place(self, store: Store, start: JobState) -> None:
        """Same id, arrival and sequence; attempts and recoveries from nought; due now; history kept."""
        put_lane(store)
        job_id = in_state(store, start, mode=Mode.BLOCK_ON_ERROR, group="g", sequence=5)
        before = find(store, job_id)
        operate(store, Verb.RETRY, job_id)
        after = find(store, job_id)
        row = after.live

        assert (row.arrival, row.ord, row.holds) == (before.live.arrival, 5, True)
        assert (row.attempt, row.recoveries, row.reason) == (0, 0, None)
        assert (row.send, row.open) == (before.live.send, False)
        assert row.due_at <= store.now()
        assert (after.finished_at, after.result) == (None, None)
        assert after.context == before.context
        assert drain(store) == [job_id]

    def test_a_replayed_job_does_not_expire_again(self, store: Store) -> None:
        """Whoever replays an expired job wants it to run."""
        put_lane(store)
        job_id = in_state(store, S.EXPIRED)
        operate(store, Verb.RETRY, job_id)

        assert store.expire(10) == 0
        assert drain(store) == [job_id]

    def test_a_replay_keeps_the_timeline(self, store: Store) -> None:
        """What went wrong before stays on record."""
        put_lane(store)
        job_id = in_state(store, S.DEAD)
        operate(store, Verb.RETRY, job_id)
        drain(store)
        timeline = store.timeline(job_id)

        assert [attempt.outcome for attempt in timeline.attempts] == ["permanent"]
        assert [(audit.before, audit.after) for audit in timeline.audit] == [("dead", "pending")]

    @pytest.mark.parametrize("gone", ["succeeded", "dispatched", "in back-off", "claimed", "dead"])
    def test_a_replay_behind_which_jobs_went_is_refused(self, store: Store, gone: str) -> None:
        """Unless forced; the text says how many."""
        put_lane(store, mode="next_on_error")
        [first, *rest] = enqueue(store, *(job(group="g") for _ in range(3)))
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        for index in range(2):
            batch = some(claim_groups(store))
            last = index == 1
            if last and gone == "dispatched":
                settle(store, batch, Dispatched(HOUR))
            elif last and gone == "in back-off":
                settle(store, batch, Failed("no", HOUR))
            elif last and gone == "dead":
                settle(store, batch, Dead(Reason.PERMANENT))
            elif not last or gone == "succeeded":
                store.settle(batch)
        refused = operate(store, Verb.RETRY, first)

        assert (refused.effect, refused.state) == (Effect.REFUSED, S.DEAD)
        assert "2" in refused.text
        assert operate(store, Verb.RETRY, first, force=True).effect is Effect.NOW
        assert state(store, rest[0]) is S.SUCCEEDED

    def test_jobs_replayed_by_one_call_go_again_in_order(self, store: Store) -> None:
        """They are not in each other's way, in whichever order they are named."""
        put_lane(store, mode="next_on_error")
        for backwards in (False, True):
            job_ids = enqueue(store, *(job(group="g") for _ in range(3)))
            for _ in job_ids:
                settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
            named = job_ids[::-1] if backwards else job_ids
            done = store.operate(Verb.RETRY, named, actor="ops", reason="because")

            assert [each.effect for each in done] == [Effect.NOW] * 3
            assert drain(store) == job_ids

    def test_jobs_replayed_by_one_call_still_look_at_the_others(self, store: Store) -> None:
        """One that went behind all of them is in the way of all of them."""
        put_lane(store, mode="next_on_error")
        [a, b, _] = enqueue(store, *(job(group="g") for _ in range(3)))
        for _ in range(2):
            settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        drain(store)
        done = store.operate(Verb.RETRY, [a, b], actor="ops", reason="because")

        assert [each.effect for each in done] == [Effect.REFUSED] * 2
        assert all("1" in each.text for each in done)

    def test_a_replay_with_only_unsent_jobs_behind_it_is_fine(self, store: Store) -> None:
        """Nobody went before it: pending, held, cancelled and expired ones were never sent."""
        put_lane(store)
        [first, waits, held, gone] = enqueue(store, *(ordered() for _ in range(4)))
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        operate(store, Verb.HOLD, held)
        operate(store, Verb.CANCEL, gone)
        enqueue(store, ordered(start_by=store.now() + PAST))
        store.expire(10)

        assert operate(store, Verb.RETRY, first).effect is Effect.NOW
        assert drain(store) == [first, waits]

    def test_a_replay_does_not_look_at_other_groups_or_at_what_went_before(self, store: Store) -> None:
        """Only successors in its own group matter."""
        put_lane(store)
        [_, dead] = enqueue(store, ordered("g", sequence=1), ordered("g", sequence=2))
        drain_one = some(claim_groups(store))
        store.settle(drain_one)
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        enqueue(store, ordered("other", sequence=9), job(group="g", sequence=9))
        drain(store)

        assert operate(store, Verb.RETRY, dead).effect is Effect.NOW

    def test_an_immediate_job_is_replayed_whatever_went_after_it(self, store: Store) -> None:
        """It has no successors."""
        put_lane(store)
        dead = in_state(store, S.DEAD, group="g")
        enqueue(store, job(group="g"))
        drain(store)

        assert operate(store, Verb.RETRY, dead).effect is Effect.NOW
