"""Send numbers: a re-send in doubt repeats its number, a retry gets a new one, and it never restarts."""

import pytest

from penstock.domain.outcomes import (
    Dead,
    Deferred,
    Dispatched,
    Failed,
    Lapsed,
    Outcome,
    Returned,
    Running,
    Succeeded,
)
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    PAST,
    ZERO,
    claim,
    enqueue,
    find,
    in_state,
    job,
    only,
    operate,
    put_lane,
    report,
    settle,
    some,
    state,
    with_open_send,
)


class SendTests:
    """Send numbers."""

    @pytest.mark.parametrize(
        ("outcome", "number"),
        [
            (Returned("no token"), 1),
            (Lapsed(started=False), 1),
            (Lapsed(), 1),
            (Lapsed(started=True), 1),
            (Failed("no", ZERO), 2),
            (Failed("no answer", ZERO, known=False), 1),
            (Deferred(ZERO), 2),
        ],
        ids=["returned", "not started", "unknown", "started", "failed", "unanswered", "deferred"],
    )
    def test_the_number_advances_only_when_the_fate_is_known(
        self, store: Store, outcome: Outcome, number: int
    ) -> None:
        """What a second claim sends, after each way a first one can come back."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store))
        assert only(batch).current_send == 1
        settle(store, batch, outcome)

        assert only(claim(store)).current_send == number

    @pytest.mark.parametrize(
        ("outcome", "number"),
        [(Lapsed(started=False), 2), (Lapsed(), 1), (Failed("no", ZERO), 2), (Deferred(ZERO), 2)],
        ids=["not started", "unknown", "failed", "deferred"],
    )
    def test_a_dispatched_job_that_lapses_keeps_its_number_in_doubt(
        self, store: Store, outcome: Outcome, number: int
    ) -> None:
        """Once sent, "never started" is an answer too: the number is used up."""
        put_lane(store)
        enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(PAST))
        lapse = store.lapse(1, HOUR, 10)
        assert lapse is not None
        store.resolve(lapse, {lapse.jobs[0].job.arrival: outcome})

        assert only(claim(store)).current_send == number

    def test_a_send_without_an_answer_is_a_try_whose_number_stays_open(self, store: Store) -> None:
        """It costs an attempt; an executor that has the message all the same is listened to."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Failed("no answer", HOUR, known=False))
        row = find(store, job_id).live
        [tried] = store.timeline(job_id).attempts
        told = report(store, job_id, 1, Succeeded())

        assert (row.attempt, row.send, row.open) == (1, 1, True)
        assert (tried.outcome, tried.error, tried.send) == ("unanswered", "no answer", 1)
        assert told.applied
        assert state(store, job_id) == JobState.SUCCEEDED

    def test_a_takeover_repeats_the_number(self, store: Store) -> None:
        """The new holder sends what the old one may have sent."""
        put_lane(store)
        enqueue(store, job())
        claim(store, lease=PAST)
        [taken] = store.takeover(2, HOUR, 10)

        assert only(taken).current_send == 1

    def test_a_number_in_doubt_survives_being_returned(self, store: Store) -> None:
        """Not sending does not settle the old send's fate."""
        put_lane(store)
        job_id = with_open_send(store, JobState.PENDING)
        settle(store, some(claim(store)), Returned("stop"))
        row = find(store, job_id).live

        assert (row.send, row.open) == (1, True)
        assert only(claim(store)).current_send == 1

    def test_numbers_go_on_over_attempts(self, store: Store) -> None:
        """One, two, three; the row shows the last one on record."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        for number in (1, 2, 3):
            batch = some(claim(store))
            assert only(batch).current_send == number
            settle(store, batch, Failed("no", ZERO))
            assert find(store, job_id).live.send == number
        store.settle(some(claim(store)))

        assert find(store, job_id).live.send == 4

    @pytest.mark.parametrize("state", [JobState.DEAD, JobState.CANCELLED], ids=lambda state: state.label)
    def test_a_replay_does_not_restart_the_number(self, store: Store, state: JobState) -> None:
        """Also a send in doubt is over then: the replay is a send of its own."""
        put_lane(store)
        job_id = with_open_send(store, JobState.PENDING)
        if state is JobState.DEAD:
            settle(store, some(claim(store)), Dead(Reason.PERMANENT))
        else:
            operate(store, Verb.CANCEL, job_id)
        operate(store, Verb.RETRY, job_id)
        row = find(store, job_id).live

        assert (row.send, row.open, row.attempt) == (1, False, 0)
        assert only(claim(store)).current_send == 2

    def test_a_duplicate_keeps_the_first_send_valid(self, store: Store) -> None:
        """The broker says it had this send already: what is in flight is send 1, and its outcome counts."""
        put_lane(store)
        job_id = with_open_send(store, JobState.PENDING)
        settle(store, some(claim(store)), Dispatched(HOUR))

        assert find(store, job_id).live.send == 1
        assert report(store, job_id, 1, Succeeded()).applied
        assert state(store, job_id) is JobState.SUCCEEDED

    def test_an_outcome_of_an_older_send_is_late(self, store: Store) -> None:
        """Send 1 failed and send 2 is out: what comes from send 1 changes nothing."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Failed("timeout", ZERO))
        settle(store, some(claim(store)), Dispatched(HOUR))
        before = find(store, job_id)

        assert report(store, job_id, 1, Succeeded()) == (False, True, False)
        assert find(store, job_id) == before
        assert report(store, job_id, 2, Succeeded()).applied

    def test_an_outcome_of_a_future_send_is_late(self, store: Store) -> None:
        """Numbers nobody has sent mean nothing."""
        put_lane(store)
        [job_id] = enqueue(store, job())

        assert report(store, job_id, 1, Succeeded()).late

        settle(store, some(claim(store)), Dispatched(HOUR))

        assert report(store, job_id, 2, Succeeded()).late
        assert state(store, job_id) is JobState.DISPATCHED

    def test_an_outcome_after_a_known_fate_is_late(self, store: Store) -> None:
        """A job that failed and waits for its retry is not moved by the send that failed."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Failed("no", HOUR))

        assert report(store, job_id, 1, Succeeded()).late
        assert state(store, job_id) is JobState.PENDING

    def test_an_open_send_is_settled_while_the_job_is_claimed_again(self, store: Store) -> None:
        """The executor of the first try finishes during the second: one job, done once."""
        put_lane(store)
        job_id = with_open_send(store, JobState.PENDING)
        batch = some(claim(store))

        assert report(store, job_id, 1, Succeeded()).applied
        assert store.settle(batch).refused == {only(batch).arrival}
        assert find(store, job_id).live.attempt == 1

    def test_a_retry_under_way_is_not_settled_by_the_old_send(self, store: Store) -> None:
        """Claimed for send 2, the job does not listen to send 1."""
        put_lane(store)
        job_id = in_state(store, JobState.PENDING)
        settle(store, some(claim(store)), Failed("no", ZERO))
        batch = some(claim(store))

        assert report(store, job_id, 1, Running(HOUR)).late
        assert len(store.settle(batch).applied) == 1
