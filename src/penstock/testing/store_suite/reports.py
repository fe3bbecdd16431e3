"""Executors' reports: matched by send number, whatever happened to the job meanwhile."""

import pytest

from penstock.domain.outcomes import Dead, Deferred, Dispatched, Failed, Outcome, Running, Succeeded
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Report, Reported, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    ZERO,
    claim,
    claim_groups,
    drain,
    enqueue,
    find,
    ids,
    in_state,
    job,
    only,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
    state,
    with_open_send,
)

IN_FLIGHT = (JobState.CLAIMED, JobState.DISPATCHED, JobState.RUNNING)
PARKED = (JobState.PENDING, JobState.HELD)
ENDED = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED, JobState.EXPIRED, JobState.DEAD)

# outcome, states in which it counts, where it leads to, what it adds one to
WORDS: list[tuple[Outcome, tuple[JobState, ...], JobState, str | None]] = [
    (Succeeded(), IN_FLIGHT + PARKED, JobState.SUCCEEDED, "attempt"),
    (Failed("no", HOUR), IN_FLIGHT + PARKED, JobState.PENDING, "attempt"),
    (Dead(Reason.PERMANENT, "never"), IN_FLIGHT + PARKED, JobState.DEAD, "attempt"),
    (Running(HOUR), (*IN_FLIGHT, JobState.PENDING), JobState.RUNNING, None),
    (Deferred(HOUR), IN_FLIGHT, JobState.PENDING, "deferrals"),
]
COUNTING = [(o, s, to, what) for o, states, to, what in WORDS for s in states]
SILENT = [(o, s) for o, states, _, _ in WORDS for s in IN_FLIGHT + PARKED if s not in states]


def _name(value: object) -> str:
    return value.label if isinstance(value, JobState) else type(value).__name__.lower()


class ReportTests:
    """Reports."""

    @pytest.mark.parametrize(("outcome", "start", "to", "counts"), COUNTING, ids=_name)
    def test_a_word_on_the_open_send_counts(
        self, store: Store, outcome: Outcome, start: JobState, to: JobState, counts: str | None
    ) -> None:
        """Each outcome from each state it may leave, and exactly what it adds."""
        put_lane(store)
        job_id = with_open_send(store, start)
        before = find(store, job_id).live

        assert report(store, job_id, 1, outcome) == Reported(applied=True, late=False)
        after = find(store, job_id).live
        assert after.state == to
        assert (after.send, after.open) == (1, to is JobState.RUNNING)
        for counter in ("attempt", "deferrals", "recoveries"):
            assert getattr(after, counter) - getattr(before, counter) == (counter == counts)

    @pytest.mark.parametrize("start", [*IN_FLIGHT, JobState.PENDING], ids=_name)
    def test_who_wants_to_be_alone_is_the_only_one(self, store: Store, start: JobState) -> None:
        """Of two that begin the same send the second is refused, until the first was silent for too long."""
        put_lane(store)
        job_id, alone = with_open_send(store, start), Running(HOUR, alone=True)
        first = Reported(applied=start is not JobState.RUNNING, late=start is JobState.RUNNING)

        assert report(store, job_id, 1, alone) == first
        assert report(store, job_id, 1, alone) == Reported(applied=False, late=True)
        assert report(store, job_id, 1, Running(ZERO, alone=True)) == Reported(applied=True, late=False)
        assert find(store, job_id).live.state == JobState.RUNNING

    @pytest.mark.parametrize(("outcome", "start"), SILENT, ids=_name)
    def test_a_word_the_machine_does_not_know_is_late(
        self, store: Store, outcome: Outcome, start: JobState
    ) -> None:
        """A held job does not start, a parked one is not deferred."""
        put_lane(store)
        job_id = with_open_send(store, start)
        before = find(store, job_id)

        assert report(store, job_id, 1, outcome) == Reported(applied=False, late=True)
        assert find(store, job_id) == before

    @pytest.mark.parametrize("ended", ENDED, ids=_name)
    def test_a_job_that_ended_is_not_moved(self, store: Store, ended: JobState) -> None:
        """The word is kept in its timeline and changes nothing."""
        put_lane(store)
        job_id = in_state(store, ended)
        before = find(store, job_id)

        assert report(store, job_id, 1, Succeeded()) == Reported(applied=False, late=True)
        assert find(store, job_id) == before
        last = store.timeline(job_id).audit[-1]
        assert (last.action, last.before, last.after) == ("late", ended.label, ended.label)
        assert last.reason is not None
        assert "succeeded" in last.reason

    def test_an_unknown_job_is_late(self, store: Store) -> None:
        """There is nobody to tell; the others of the batch are unhurt."""
        put_lane(store)
        job_id = in_state(store, JobState.DISPATCHED)
        unknown = Report(id="01ARZ3NDEKTSV4RRFFQ69G5FAV", send=1, outcome=Succeeded())
        known = Report(id=job_id, send=1, outcome=Succeeded())

        assert store.report([unknown, known]) == [
            Reported(applied=False, late=True),
            Reported(applied=True, late=False),
        ]

    def test_reports_are_applied_in_order(self, store: Store) -> None:
        """Started, alive, done in one call; the second "done" is late."""
        put_lane(store)
        job_id = in_state(store, JobState.DISPATCHED)
        words: list[Outcome] = [Running(HOUR), Running(2 * HOUR), Succeeded(), Succeeded()]
        answers = store.report([Report(id=job_id, send=1, outcome=word) for word in words])

        assert [answer.applied for answer in answers] == [True, True, True, False]
        assert state(store, job_id) is JobState.SUCCEEDED

    def test_a_heartbeat_moves_the_deadline_and_keeps_the_start(self, store: Store) -> None:
        """The job started once."""
        put_lane(store)
        job_id = in_state(store, JobState.DISPATCHED)
        report(store, job_id, 1, Running(HOUR))
        first = find(store, job_id).live
        report(store, job_id, 1, Running(5 * HOUR))
        second = find(store, job_id).live

        assert first.started_at == second.started_at is not None
        assert first.deadline is not None
        assert second.deadline is not None
        assert second.deadline > first.deadline + HOUR

    def test_a_report_leaves_the_receipt_of_the_sink(self, store: Store) -> None:
        """What the broker called the message is still known when the job is done."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(HOUR, receipt="m-1"))
        report(store, job_id, 1, Running(HOUR))
        report(store, job_id, 1, Succeeded())
        row = find(store, job_id).live

        assert (row.receipt, row.sent_at is None, row.started_at is None) == ("m-1", False, False)

    def test_a_report_before_the_settle_settles_that_job(self, store: Store) -> None:
        """The callback may be faster than the holder; the holder's word is then refused."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        assert report(store, a, 1, Succeeded(result="r")).applied
        arrivals = {job_id: find(store, job_id).live.arrival for job_id in (a, b)}
        settled = store.settle(batch, dict.fromkeys(arrivals.values(), Dispatched(HOUR)))

        assert settled.refused == {arrivals[a]}
        assert settled.applied == {arrivals[b]}
        assert (state(store, a), find(store, a).result) == (JobState.SUCCEEDED, "r")
        assert not store.mark_sending(batch.epoch)

    def test_the_last_report_of_a_claim_ends_the_claim(self, store: Store) -> None:
        """Nothing is left to settle or to take over."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store, lease=-HOUR))
        report(store, job_id, 1, Running(HOUR))

        assert store.takeover(2, HOUR, 10) == []
        assert store.settle(batch).refused == {only(batch).arrival}
        assert state(store, job_id) is JobState.RUNNING

    def test_a_report_on_a_claimed_head_opens_its_group(self, store: Store) -> None:
        """Done is done, whoever says so."""
        put_lane(store)
        [a, b] = enqueue(store, ordered(), ordered())
        batch = some(claim_groups(store))
        report(store, a, 1, Succeeded())

        assert ids(claim_groups(store)) == [b]
        assert store.settle(batch).applied == frozenset()

    @pytest.mark.parametrize("parked", PARKED, ids=_name)
    def test_a_report_on_a_parked_head_opens_its_group(self, store: Store, parked: JobState) -> None:
        """A job put back in doubt turns out to be done: the next one goes, not this one again."""
        put_lane(store, mode="block_on_error")
        head = with_open_send(store, parked, group="g")
        [tail] = enqueue(store, ordered("g"))
        report(store, head, 1, Succeeded())

        assert drain(store) == [tail]

    def test_a_report_that_it_runs_takes_a_parked_head_out_again(self, store: Store) -> None:
        """It is not sent a second time while it runs."""
        put_lane(store, mode="block_on_error")
        head = with_open_send(store, JobState.PENDING, group="g")
        enqueue(store, ordered("g"))
        report(store, head, 1, Running(HOUR))

        assert claim_groups(store) is None
        assert state(store, head) is JobState.RUNNING

    def test_a_retry_by_report_is_claimed_again(self, store: Store) -> None:
        """With a new send number and the attempt counted."""
        put_lane(store)
        job_id = in_state(store, JobState.RUNNING)
        report(store, job_id, 1, Failed("no", ZERO))
        row = only(claim(store))

        assert (row.attempt, row.current_send) == (1, 2)
        assert find(store, job_id).error == "no"

    def test_a_dead_job_by_report_blocks_its_group(self, store: Store) -> None:
        """As if its holder had said so."""
        put_lane(store)
        [a, _] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dispatched(HOUR))
        report(store, a, 1, Dead(Reason.PERMANENT))

        assert claim_groups(store) is None

    def test_the_executor_learns_that_it_should_stop(self, store: Store) -> None:
        """Each heartbeat says whether a cancel was asked for."""
        put_lane(store)
        job_id = in_state(store, JobState.RUNNING)
        assert not report(store, job_id, 1, Running(HOUR)).cancel_requested
        operate(store, Verb.CANCEL, job_id)

        assert report(store, job_id, 1, Running(HOUR)) == Reported(
            applied=True, late=False, cancel_requested=True
        )
        assert find(store, job_id).request == Verb.CANCEL

    def test_an_executor_of_a_finished_job_is_not_told_of_a_cancel(self, store: Store) -> None:
        """The request ended with the job, however that was settled."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store))
        operate(store, Verb.CANCEL, job_id)
        store.settle(batch)

        assert report(store, job_id, 1, Succeeded()) == Reported(applied=False, late=True)

    def test_a_hold_is_not_a_cancel(self, store: Store) -> None:
        """Only a cancel concerns the executor."""
        put_lane(store)
        job_id = in_state(store, JobState.CLAIMED)
        operate(store, Verb.HOLD, job_id)

        assert not report(store, job_id, 1, Running(HOUR)).cancel_requested

    def test_a_failure_honours_the_cancel(self, store: Store) -> None:
        """Instead of another try the job is cancelled; the attempt is on record."""
        put_lane(store)
        job_id = in_state(store, JobState.RUNNING)
        operate(store, Verb.CANCEL, job_id)
        report(store, job_id, 1, Failed("no", HOUR))

        assert (state(store, job_id), find(store, job_id).request) == (JobState.CANCELLED, None)
        assert [attempt.outcome for attempt in store.timeline(job_id).attempts] == ["failed"]

    def test_a_late_failure_does_not_release_what_somebody_holds(self, store: Store) -> None:
        """Nobody but an operator takes back a hold."""
        put_lane(store)
        job_id = with_open_send(store, JobState.PENDING)
        operate(store, Verb.HOLD, job_id)
        assert report(store, job_id, 1, Failed("no", ZERO)).applied

        assert (state(store, job_id), find(store, job_id).live.reason) == (JobState.HELD, "operator")
        assert claim(store) is None
        operate(store, Verb.RELEASE, job_id)
        assert state(store, job_id) is JobState.PENDING
