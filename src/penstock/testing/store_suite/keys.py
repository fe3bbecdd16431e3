"""Idempotency keys: the same thing said twice is one job."""

import pytest

from penstock.domain.job import Enqueued
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import InvalidJob, KeyConflict
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import LANE, drain, enqueue, in_state, job, operate, put_lane

KEPT = [state for state in JobState if state is not JobState.WAITING]
FINISHED = [JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED, JobState.EXPIRED]


class KeyTests:
    """Keys."""

    def test_a_key_with_the_same_payload_is_the_same_job(self, store: Store) -> None:
        """The second caller gets the first one's job."""
        put_lane(store)
        [job_id] = enqueue(store, job(key="k", payload="{}"))

        assert store.enqueue([job(key="k", payload="{}")]) == [Enqueued(job_id, duplicate=True)]
        assert store.counts() == {(LANE, JobState.PENDING): 1}

    def test_a_key_with_another_payload_is_refused_with_the_id(self, store: Store) -> None:
        """Two different things cannot have one name; the mates are unhurt."""
        put_lane(store)
        [job_id] = enqueue(store, job(key="k", payload="1"))
        [conflict, mate] = store.enqueue([job(key="k", payload="2"), job(key="l")])

        assert isinstance(conflict, KeyConflict)
        assert (conflict.key, conflict.job_id) == ("k", job_id)
        assert isinstance(mate, Enqueued)
        assert not mate.duplicate

    def test_payloads_are_compared_as_text(self, store: Store) -> None:
        """Equal JSON in other letters is another payload; no payload equals no payload."""
        put_lane(store)
        enqueue(store, job(key="k", payload='{"a":1}'), job(key="none"))
        [spaced, none, empty] = store.enqueue(
            [job(key="k", payload='{"a": 1}'), job(key="none"), job(key="none", payload="")]
        )

        assert isinstance(spaced, KeyConflict)
        assert isinstance(none, Enqueued)
        assert none.duplicate
        assert isinstance(empty, KeyConflict)

    def test_a_key_counts_within_one_batch(self, store: Store) -> None:
        """The first of the batch makes the job."""
        put_lane(store)
        [first, second, third] = store.enqueue(
            [job(key="k", payload="1"), job(key="k", payload="1"), job(key="k", payload="2")]
        )

        assert isinstance(first, Enqueued)
        assert not first.duplicate
        assert second == Enqueued(first.id, duplicate=True)
        assert isinstance(third, KeyConflict)

    def test_a_key_belongs_to_its_lane(self, store: Store) -> None:
        """Other lanes have keys of their own."""
        put_lane(store)
        put_lane(store, "other")
        enqueue(store, job(key="k", payload="1"), job("other", key="k", payload="2"))

        assert len(drain(store, "other")) == 1

    @pytest.mark.parametrize("state", KEPT, ids=lambda state: state.label)
    def test_a_key_is_kept_in_every_state(self, store: Store, state: JobState) -> None:
        """Live, dead, and finished within `key_ttl`."""
        put_lane(store)
        job_id = in_state(store, state, key="k", payload="1")
        [same, other] = store.enqueue([job(key="k", payload="1"), job(key="k", payload="2")])

        assert same == Enqueued(job_id, duplicate=True)
        assert isinstance(other, KeyConflict)

    @pytest.mark.parametrize("state", FINISHED, ids=lambda state: state.label)
    def test_a_key_is_free_when_its_time_is_over(self, store: Store, state: JobState) -> None:
        """With a `key_ttl` of nothing it is free as soon as the job is finished."""
        put_lane(store, key_ttl="0s")
        first = in_state(store, state, key="k", payload="1")
        [second] = enqueue(store, job(key="k", payload="2"))

        assert second != first
        assert store.enqueue([job(key="k", payload="2")]) == [Enqueued(second, duplicate=True)]

    def test_a_dead_job_keeps_its_key_for_ever(self, store: Store) -> None:
        """Nobody has decided about it yet, so `key_ttl` has not begun."""
        put_lane(store, key_ttl="0s")
        job_id = in_state(store, JobState.DEAD, key="k")

        assert store.enqueue([job(key="k")]) == [Enqueued(job_id, duplicate=True)]

        operate(store, Verb.SKIP, job_id)

        assert enqueue(store, job(key="k")) != [job_id]

    def test_a_replayed_job_has_its_key_again(self, store: Store) -> None:
        """Live once more, it is found by its key."""
        put_lane(store, key_ttl="0s")
        job_id = in_state(store, JobState.CANCELLED, key="k")
        operate(store, Verb.RETRY, job_id)

        assert store.enqueue([job(key="k")]) == [Enqueued(job_id, duplicate=True)]

    @pytest.mark.parametrize("ended", [JobState.CANCELLED, JobState.EXPIRED], ids=lambda state: state.label)
    @pytest.mark.parametrize("edit", [False, True], ids=["retry", "edit"])
    def test_a_job_whose_key_another_has_is_not_replayed(
        self, store: Store, ended: JobState, *, edit: bool
    ) -> None:
        """A key names one job at a time; force is for order only."""
        put_lane(store, key_ttl="0s")
        first = in_state(store, ended, key="k", payload="1")
        [second] = enqueue(store, job(key="k", payload="2"))
        done = (
            store.edit(first, actor="ops", reason="again", payload="3", replay=True, force=True)
            if edit
            else operate(store, Verb.RETRY, first, force=True)
        )

        assert (done.effect, done.state) == (Effect.REFUSED, ended)
        assert f'its key "k" belongs to job {second} now' in done.text
        assert store.enqueue([job(key="k", payload="2")]) == [Enqueued(second, duplicate=True)]

        operate(store, Verb.CANCEL, second)

        assert operate(store, Verb.RETRY, first).effect is Effect.NOW
        assert store.enqueue([job(key="k", payload="1")]) == [Enqueued(first, duplicate=True)]

    def test_of_two_jobs_with_one_key_one_is_replayed(self, store: Store) -> None:
        """Also when both are called at once."""
        put_lane(store, key_ttl="0s")
        first, second = (in_state(store, JobState.CANCELLED, key="k", payload=text) for text in "12")
        [one, other] = store.operate(Verb.RETRY, [second, first], actor="ops", reason="again")

        assert (one.effect, other.effect) == (Effect.NOW, Effect.REFUSED)
        assert store.enqueue([job(key="k", payload="2")]) == [Enqueued(second, duplicate=True)]
        assert drain(store) == [second]

    def test_a_replayed_job_has_a_key_again_that_was_given_up(self, store: Store) -> None:
        """Housekeeping had dropped it."""
        put_lane(store, key_ttl="0s")
        job_id = in_state(store, JobState.CANCELLED, key="k", payload="1")
        store.retire(slice_rows=1_000)
        operate(store, Verb.RETRY, job_id)

        [same, other] = store.enqueue([job(key="k", payload="1"), job(key="k", payload="2")])

        assert same == Enqueued(job_id, duplicate=True)
        assert isinstance(other, KeyConflict)

    def test_a_whole_object_said_twice_is_a_duplicate(self, store: Store) -> None:
        """The key is looked at before the id: a client that repeats itself is answered, not refused."""
        put_lane(store)
        mine = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        said = job(id=mine, key="k", payload="1")
        enqueue(store, said)

        assert store.enqueue([said]) == [Enqueued(mine, duplicate=True)]

    def test_a_whole_object_said_twice_in_one_batch_is_a_duplicate(self, store: Store) -> None:
        """As if the second had come a moment later; another key or none does not excuse the id."""
        put_lane(store)
        mine = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        said = job(id=mine, key="k", payload="1")
        [first, again, changed, other, bare] = store.enqueue(
            [said, said, job(id=mine, key="k"), job(id=mine, key="l"), job(id=mine)]
        )

        assert [first, again] == [Enqueued(mine), Enqueued(mine, duplicate=True)]
        assert isinstance(changed, KeyConflict)
        assert [type(answer) for answer in (other, bare)] == [InvalidJob, InvalidJob]
        assert store.counts() == {(LANE, JobState.PENDING): 1}

    def test_jobs_without_a_key_are_all_different(self, store: Store) -> None:
        """Equal payloads alone mean nothing."""
        put_lane(store)

        assert len(set(enqueue(store, job(payload="1"), job(payload="1")))) == 2
