"""Operators' verbs: what each does in each state, and that it is on record."""

import pytest

from penstock.domain.outcomes import Dead, Dispatched, Succeeded
from penstock.domain.states import CANCEL_STANDS, Effect, JobState, Reason, Verb
from penstock.ports.store import Done, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    by_id,
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
    with_open_send,
)

S = JobState
STATES = [state for state in JobState if state is not JobState.WAITING]
REQUESTED = "requested"
# What is not listed is refused.
TABLE: dict[Verb, dict[JobState, JobState | str]] = {
    Verb.CANCEL: {
        S.PENDING: S.CANCELLED,
        S.CLAIMED: REQUESTED,
        S.DISPATCHED: REQUESTED,
        S.RUNNING: REQUESTED,
        S.HELD: S.CANCELLED,
        S.DEAD: S.CANCELLED,
    },
    Verb.SKIP: {S.PENDING: S.SKIPPED, S.HELD: S.SKIPPED, S.DEAD: S.SKIPPED},
    Verb.HOLD: {S.PENDING: S.HELD, S.CLAIMED: REQUESTED},
    Verb.RELEASE: {S.HELD: S.PENDING},
    Verb.RETRY: {
        S.PENDING: S.PENDING,
        S.HELD: S.PENDING,
        S.DEAD: S.PENDING,
        S.EXPIRED: S.PENDING,
        S.CANCELLED: S.PENDING,
    },
    Verb.SETTLE_SUCCEEDED: {
        S.DISPATCHED: S.SUCCEEDED,
        S.RUNNING: S.SUCCEEDED,
        S.HELD: S.SUCCEEDED,
        S.DEAD: S.SUCCEEDED,
    },
    Verb.SETTLE_DEAD: {S.DISPATCHED: S.DEAD, S.RUNNING: S.DEAD, S.HELD: S.DEAD},
}
CELLS = [(verb, state) for verb in TABLE for state in STATES]


def _name(value: object) -> str:
    return value.label if isinstance(value, JobState) else str(value)


class VerbTests:
    """Verbs."""

    @pytest.mark.parametrize(("verb", "start"), CELLS, ids=_name)
    def test_a_verb_does_what_the_table_says(self, store: Store, verb: Verb, start: JobState) -> None:
        """Moved now, asked of its holder, or refused with a text; each but the last is audited once."""
        put_lane(store)
        job_id = in_state(store, start)
        before = find(store, job_id)
        noted = len(store.timeline(job_id).audit)
        done = operate(store, verb, job_id)
        after = find(store, job_id)
        expected = TABLE[verb].get(start)
        audit = store.timeline(job_id).audit[noted:]

        if expected is None:
            assert (done.effect, done.state) == (Effect.REFUSED, start)
            assert done.text
            assert (after, audit) == (before, [])
            return
        [note] = audit
        assert (note.actor, note.action, note.reason) == ("ops", verb, "because")
        assert (note.before, note.after) == (start.label, after.state.label)
        if expected == REQUESTED:
            assert (done.effect, done.state) == (Effect.REQUESTED, start)
            assert after == before._replace(request=verb)
        else:
            assert (done.effect, done.state) == (Effect.NOW, expected)
            assert (after.state, after.request) == (expected, None)
            ended = expected in (S.CANCELLED, S.SKIPPED, S.SUCCEEDED, S.DEAD)
            assert (after.finished_at is not None) == ended

    def test_an_unknown_job_is_refused_and_the_others_are_not(self, store: Store) -> None:
        """One answer each, in order."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        done = store.operate(Verb.CANCEL, [a, "01ARZ3NDEKTSV4RRFFQ69G5FAV", b], actor="ops", reason="because")

        assert [each.state for each in done] == [S.CANCELLED, None, S.CANCELLED]
        assert done[1] == Done(Effect.REFUSED, None, "no such job")

    @pytest.mark.parametrize("start", [S.DISPATCHED, S.RUNNING], ids=_name)
    def test_force_cancels_what_is_already_out(self, store: Store, start: JobState) -> None:
        """Now, and the executor's word comes late."""
        put_lane(store)
        job_id = in_state(store, start)
        done = operate(store, Verb.CANCEL, job_id, force=True)

        assert (done.effect, done.state) == (Effect.NOW, S.CANCELLED)
        assert state(store, job_id) is S.CANCELLED

    def test_force_does_not_take_a_job_out_of_a_claim(self, store: Store) -> None:
        """It may be on its way this moment; the holder is asked."""
        put_lane(store)
        job_id = in_state(store, S.CLAIMED)

        assert operate(store, Verb.CANCEL, job_id, force=True).effect is Effect.REQUESTED

    def test_a_forced_cancel_ends_an_earlier_request(self, store: Store) -> None:
        """What was asked for is done."""
        put_lane(store)
        job_id = in_state(store, S.RUNNING)
        operate(store, Verb.CANCEL, job_id)
        operate(store, Verb.CANCEL, job_id, force=True)

        assert (state(store, job_id), find(store, job_id).request) == (S.CANCELLED, None)

    def test_a_cancel_that_was_asked_for_is_not_undone_by_a_hold(self, store: Store) -> None:
        """Released, the job would be sent after all; the other way round the later word counts."""
        put_lane(store)
        job_id = in_state(store, S.CLAIMED)
        operate(store, Verb.CANCEL, job_id)
        held = operate(store, Verb.HOLD, job_id)

        assert (held.effect, held.text) == (Effect.REFUSED, CANCEL_STANDS)
        assert find(store, job_id).request == Verb.CANCEL
        other = in_state(store, S.CLAIMED)
        operate(store, Verb.HOLD, other)
        operate(store, Verb.CANCEL, other)
        assert find(store, other).request == Verb.CANCEL

    def test_an_edit_is_not_made_here(self, store: Store) -> None:
        """It needs more than a verb."""
        put_lane(store)
        job_id = in_state(store, S.PENDING)
        done = operate(store, Verb.EDIT, job_id)

        assert (done.effect, done.state) == (Effect.REFUSED, S.PENDING)
        assert done.text

    def test_a_held_job_says_who_holds_it(self, store: Store) -> None:
        """And is silent about it once released, due when it was."""
        put_lane(store)
        [job_id] = enqueue(store, job(run_at=store.now() + HOUR))
        due_at = find(store, job_id).live.due_at
        operate(store, Verb.HOLD, job_id)
        assert find(store, job_id).live.reason == "operator"
        operate(store, Verb.RELEASE, job_id)
        row = find(store, job_id).live

        assert (row.reason, row.due_at) == (None, due_at)

    @pytest.mark.parametrize("start", [S.PENDING, S.HELD], ids=_name)
    def test_retry_makes_a_waiting_job_due_now(self, store: Store, start: JobState) -> None:
        """Back-off and run time no longer count."""
        put_lane(store)
        [job_id] = enqueue(store, job(run_at=store.now() + HOUR))
        if start is S.HELD:
            operate(store, Verb.HOLD, job_id)
        operate(store, Verb.RETRY, job_id)

        assert find(store, job_id).live.due_at <= store.now()
        assert drain(store) == [job_id]

    def test_a_released_job_in_doubt_repeats_its_send(self, store: Store) -> None:
        """Held does not mean known."""
        put_lane(store)
        job_id = with_open_send(store, S.HELD)
        operate(store, Verb.RELEASE, job_id)
        row = find(store, job_id).live

        assert (row.open, row.current_send) == (True, 1)

    def test_a_job_settled_by_hand_shows_what_was_decided(self, store: Store) -> None:
        """Dead with a reason, or succeeded; the error of a dead job stays readable."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        store.settle(batch, by_id(batch, {a: Dispatched(HOUR), b: Dead(Reason.PERMANENT, "boom")}))
        operate(store, Verb.SETTLE_DEAD, a)
        operate(store, Verb.SETTLE_SUCCEEDED, b)

        assert (state(store, a), find(store, a).live.reason) == (S.DEAD, Reason.STOPPED)
        assert (state(store, b), find(store, b).live.reason) == (S.SUCCEEDED, None)
        assert find(store, b).error == "boom"

    def test_a_job_settled_dead_blocks_its_group(self, store: Store) -> None:
        """A decision, not a pardon."""
        put_lane(store)
        [head, tail] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dispatched(HOUR))
        operate(store, Verb.SETTLE_DEAD, head)

        assert claim_groups(store) is None

        operate(store, Verb.SETTLE_SUCCEEDED, head)

        assert drain(store) == [tail]

    def test_the_same_job_twice_in_one_call(self, store: Store) -> None:
        """The second time it is no longer where it was."""
        put_lane(store)
        job_id = in_state(store, S.PENDING)
        done = store.operate(Verb.SKIP, [job_id, job_id], actor="ops", reason="because")

        assert [each.effect for each in done] == [Effect.NOW, Effect.REFUSED]

    def test_a_job_that_finished_is_not_touched(self, store: Store) -> None:
        """Succeeded is for ever."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Succeeded(result="42"))
        before = find(store, job_id)
        for verb in Verb:
            assert operate(store, verb, job_id, force=True).effect is Effect.REFUSED

        assert find(store, job_id) == before
