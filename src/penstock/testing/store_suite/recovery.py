"""Recovery: claims whose holder is gone, and jobs whose executor fell silent."""

from datetime import timedelta

from penstock.domain.outcomes import (
    Dispatched,
    Failed,
    Lapsed,
    LapsedTooOften,
    Outcome,
    Returned,
    Running,
    Succeeded,
)
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Lapse, Settled, Store
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    PAST,
    by_id,
    claim,
    claim_groups,
    drain,
    enqueue,
    find,
    ids,
    job,
    only,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
    state,
)


def _ids(lapse: Lapse) -> set[str]:
    return {claimed.context.id for claimed in lapse.jobs if claimed.context is not None}


def _lapse(store: Store, lease: timedelta = HOUR, limit: int = 100) -> Lapse:
    lapse = store.lapse(2, lease, limit)
    assert lapse is not None
    return lapse


class TakeoverTests:
    """Takeover."""

    def test_a_claim_changes_hands_under_a_new_epoch(self, store: Store) -> None:
        """Same jobs, new holder, new lease; the rows carry the new epoch."""
        put_lane(store)
        [job_id] = enqueue(store, job(payload="1"))
        batch = some(claim(store, lease=PAST))
        before = store.now()
        [taken] = store.takeover(9, HOUR, 10)

        assert taken.epoch > batch.epoch
        assert (taken.node, taken.lane, taken.takeovers, taken.groups) == (9, LANE, 1, False)
        assert taken.lease_until >= before + HOUR
        assert ids(taken) == [job_id]
        assert only(taken).epoch == taken.epoch == find(store, job_id).live.epoch

    def test_a_live_lease_is_not_taken(self, store: Store) -> None:
        """Nothing has run out, nothing happens."""
        put_lane(store)
        enqueue(store, job(), job())
        claim(store, limit=1, lease=HOUR)

        assert store.takeover(2, HOUR, 10) == []

    def test_a_claim_may_change_hands_again(self, store: Store) -> None:
        """Each takeover counts, and fences the one before."""
        put_lane(store)
        enqueue(store, job())
        claim(store, lease=PAST)
        [second] = store.takeover(2, PAST, 10)
        [third] = store.takeover(3, HOUR, 10)

        assert (third.takeovers, third.node) == (2, 3)
        assert store.settle(second).applied == frozenset()
        assert len(store.settle(third).applied) == 1

    def test_the_longest_lapsed_go_first(self, store: Store) -> None:
        """Up to the limit, each under an epoch of its own."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(3)))
        for hours in (1, 3, 2):
            claim(store, limit=1, lease=-hours * HOUR)
        first = store.takeover(2, HOUR, 2)

        assert [ids(taken) for taken in first] == [[job_ids[1]], [job_ids[2]]]
        assert len({taken.epoch for taken in first}) == 2
        assert [ids(taken) for taken in store.takeover(2, HOUR, 2)] == [[job_ids[0]]]

    def test_what_was_settled_before_stays_settled(self, store: Store) -> None:
        """The new holder sees what is left and cannot undo the rest."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store, lease=PAST))
        done = by_id(batch, {a: Succeeded()})
        store.settle(batch, done)
        [taken] = store.takeover(2, HOUR, 10)

        assert taken.settled == frozenset(done)
        assert store.settle(taken).refused == frozenset(done)
        assert (state(store, a), state(store, b)) == (JobState.SUCCEEDED, JobState.SUCCEEDED)

    def test_a_group_goes_with_its_claim(self, store: Store) -> None:
        """It stays closed under the new epoch and opens when that is settled."""
        put_lane(store)
        [a, b] = enqueue(store, ordered(), ordered())
        claim_groups(store, lease=PAST)
        [taken] = store.takeover(2, HOUR, 10)
        group = store.group(LANE, GROUP)

        assert taken.groups
        assert group is not None
        assert group.claim == taken.epoch
        assert claim_groups(store) is None

        store.settle(taken)

        assert drain(store) == [b]
        assert state(store, a) is JobState.SUCCEEDED

    def test_a_crashed_node_costs_its_jobs_nothing_but_a_recovery(self, store: Store) -> None:
        """Not sent: pending again, counted as recovered, and told in the timeline."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        claim(store, lease=PAST)
        [taken] = store.takeover(2, HOUR, 10)
        settle(store, taken, Lapsed(started=False))
        row = find(store, job_id).live
        [attempt] = store.timeline(job_id).attempts

        assert (row.state, row.recoveries, row.attempt, row.epoch) == (JobState.PENDING, 1, 0, None)
        assert (attempt.outcome, attempt.epoch) == ("not_started", taken.epoch)


class LapseTests:
    """Lapses of jobs that are out."""

    def test_silent_jobs_are_leased_for_probing(self, store: Store) -> None:
        """Dispatched and running ones, past their deadline, under a new epoch."""
        put_lane(store)
        [a, b, c] = enqueue(store, *(job() for _ in range(3)))
        batch = some(claim(store))
        store.settle(batch, by_id(batch, {a: Dispatched(PAST), b: Running(PAST), c: Dispatched(HOUR)}))
        lapse = _lapse(store)
        arrivals = {find(store, job_id).live.arrival for job_id in (a, b)}

        assert lapse.epoch > batch.epoch
        assert {claimed.job.arrival for claimed in lapse.jobs} == arrivals
        assert {claimed.job.epoch for claimed in lapse.jobs} == {lapse.epoch} == {find(store, a).live.epoch}
        assert (state(store, a), state(store, b)) == (JobState.DISPATCHED, JobState.RUNNING)

    def test_a_lapse_brings_all_a_probe_needs(self, store: Store) -> None:
        """Ids, contexts as last edited, and the names of the lanes."""
        put_lane(store)
        put_lane(store, "other")
        [a] = enqueue(store, job(payload="1", target="http://a"))
        [b] = enqueue(store, ordered(lane="other", payload="2"))
        store.edit(a, payload="3", actor="ops", reason="because")
        settle(store, some(claim(store)), Dispatched(PAST, receipt="m-1"))
        settle(store, some(claim_groups(store, "other")), Running(PAST))
        lapse = _lapse(store)
        found = {c.context.id: (lapse.lanes[c.job.lane], c.context.payload) for c in lapse.jobs if c.context}

        assert found == {a: (LANE, "3"), b: ("other", "2")}
        [row] = [claimed.job for claimed in lapse.jobs if claimed.job.receipt]
        assert (row.receipt, row.current_send) == ("m-1", 1)

    def test_a_lapse_takes_no_more_of_a_lane_than_it_says(self, store: Store) -> None:
        """Those who waited longest; a lane with very many is in nobody's way."""
        put_lane(store, max_recoveries_per_pass=2)
        put_lane(store, "other")
        many = enqueue(store, *(job() for _ in range(5)))
        batch = some(claim(store))
        ages: dict[str, Outcome] = {job_id: Dispatched(PAST * (9 - n)) for n, job_id in enumerate(many)}
        store.settle(batch, by_id(batch, ages))
        [late] = enqueue(store, job("other"))
        settle(store, some(claim(store, "other")), Running(PAST))

        assert _ids(_lapse(store)) == {*many[:2], late}
        assert _ids(_lapse(store)) == {*many[2:4]}
        put_lane(store)
        assert _ids(_lapse(store)) == {many[4]}

    def test_a_lapse_takes_no_more_than_it_is_asked_for(self, store: Store) -> None:
        """Of all lanes together."""
        for name in ("a", "b"):
            put_lane(store, name)
            enqueue(store, *(job(name) for _ in range(3)))
            settle(store, some(claim(store, name)), Dispatched(PAST))
        parts = [len(_lapse(store, limit=4).jobs) for _ in range(2)]

        assert parts == [4, 2]
        assert store.lapse(2, HOUR, 4) is None

    def test_a_takeover_brings_contexts_as_last_edited(self, store: Store) -> None:
        """What the old holder would have sent is what the new one asks about."""
        put_lane(store)
        [a, b] = enqueue(store, job(payload="1"), job(payload="2"))
        store.edit(b, payload="3", target="http://b", actor="ops", reason="because")
        claim(store, lease=PAST)
        [taken] = store.takeover(2, HOUR, 10)
        found = {c.context.id: (c.context.payload, c.context.target) for c in taken.jobs if c.context}

        assert found == {a: ("1", None), b: ("3", "http://b")}
        assert taken.lane == LANE

    def test_nothing_silent_is_no_lapse(self, store: Store) -> None:
        """Claimed jobs are not: they have a lease."""
        put_lane(store)
        enqueue(store, job(), job())
        settle(store, some(claim(store, limit=1)), Dispatched(HOUR))
        claim(store, lease=PAST)

        assert store.lapse(2, HOUR, 10) is None

    def test_a_job_being_probed_is_not_given_out_again(self, store: Store) -> None:
        """Until that lease runs out too; then the first prober is fenced."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(PAST))
        first = _lapse(store, PAST)
        second = _lapse(store, HOUR)
        arrival = find(store, job_id).live.arrival

        assert store.lapse(4, HOUR, 10) is None
        assert store.resolve(first, {arrival: Succeeded()}) == Settled(frozenset(), frozenset({arrival}))
        assert store.resolve(second, {arrival: Succeeded()}).applied == {arrival}

    def test_the_longest_silent_go_first(self, store: Store) -> None:
        """Up to the limit, the rest the next time."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(3)))
        batch = some(claim(store))
        silent: dict[str, Outcome] = {
            job_id: Dispatched(-hours * HOUR) for job_id, hours in zip(job_ids, (1, 3, 2), strict=True)
        }
        store.settle(batch, by_id(batch, silent))
        arrivals = [find(store, job_id).live.arrival for job_id in job_ids]

        assert {claimed.job.arrival for claimed in _lapse(store, limit=2).jobs} == {arrivals[1], arrivals[2]}
        assert {claimed.job.arrival for claimed in _lapse(store, limit=2).jobs} == {arrivals[0]}

    def test_a_report_wins_over_the_probe(self, store: Store) -> None:
        """The executor spoke after all: the probe's finding is refused."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(PAST))
        lapse = _lapse(store)
        arrival = lapse.jobs[0].job.arrival
        assert report(store, job_id, 1, Succeeded()).applied

        assert store.resolve(lapse, {arrival: Lapsed()}).refused == {arrival}
        assert state(store, job_id) is JobState.SUCCEEDED

    def test_an_operator_wins_over_the_probe(self, store: Store) -> None:
        """A job settled by hand is not touched again."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(PAST))
        lapse = _lapse(store)
        operate(store, Verb.SETTLE_DEAD, job_id)

        assert store.resolve(lapse, {lapse.jobs[0].job.arrival: Lapsed()}).applied == frozenset()
        assert state(store, job_id) is JobState.DEAD

    def test_a_probe_that_finds_it_running_restarts_the_timer(self, store: Store) -> None:
        """It is out and watched again."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(PAST))
        lapse = _lapse(store, PAST)
        store.resolve(lapse, {lapse.jobs[0].job.arrival: Running(HOUR)})
        row = find(store, job_id).live

        assert row.state == JobState.RUNNING
        assert row.deadline is not None
        assert row.deadline > store.now()
        assert row.started_at is not None
        assert store.lapse(2, HOUR, 10) is None

    def test_too_many_lapses_end_a_job(self, store: Store) -> None:
        """Over the cap it is dead, with the reason that fits."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Running(PAST))
        lapse = _lapse(store)
        store.resolve(lapse, {lapse.jobs[0].job.arrival: LapsedTooOften(Reason.POISON)})
        found = find(store, job_id)

        assert (found.state, found.live.reason) == (JobState.DEAD, Reason.POISON)
        assert found.live.recoveries == 1

    def test_work_that_must_not_repeat_is_held_in_doubt(self, store: Store) -> None:
        """Held, with its send still open, and its group with it."""
        put_lane(store)
        [job_id, _] = enqueue(store, ordered(), ordered())
        settle(store, some(claim_groups(store)), Dispatched(PAST))
        lapse = _lapse(store)
        store.resolve(lapse, {lapse.jobs[0].job.arrival: Lapsed(hold=True)})
        row = find(store, job_id).live

        assert (row.state, row.reason) == (JobState.HELD, "outcome_unknown")
        assert (row.send, row.open, row.recoveries) == (1, True, 1)
        assert claim_groups(store) is None

    def test_a_probe_settles_jobs_one_by_one(self, store: Store) -> None:
        """Those not named stay out, those unknown are refused, and groups open by their own head."""
        put_lane(store)
        [a, b, a2, _] = enqueue(store, ordered("a"), ordered("b"), ordered("a"), ordered("b"))
        settle(store, some(claim_groups(store)), Dispatched(PAST))
        lapse = _lapse(store)
        arrival = find(store, a).live.arrival
        settled = store.resolve(lapse, {arrival: Succeeded(), arrival + 1_000: Succeeded()})

        assert settled == Settled(frozenset({arrival}), frozenset({arrival + 1_000}))
        assert state(store, b) is JobState.DISPATCHED
        assert drain(store) == [a2]

    def test_a_finding_the_machine_does_not_know_is_refused(self, store: Store) -> None:
        """A dispatched job cannot be returned unsent; its mates are unhurt."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        settle(store, some(claim(store)), Dispatched(PAST))
        lapse = _lapse(store)
        [odd, good] = (find(store, job_id).live.arrival for job_id in (a, b))
        settled = store.resolve(lapse, {odd: Returned("?"), good: Failed("no", HOUR)})

        assert settled == Settled(frozenset({good}), frozenset({odd}))
        assert state(store, a) is JobState.DISPATCHED

    def test_a_cancel_is_honoured_when_a_lapsed_job_would_go_again(self, store: Store) -> None:
        """It was asked for while the job was out."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Dispatched(PAST))
        operate(store, Verb.CANCEL, job_id)
        lapse = _lapse(store)
        store.resolve(lapse, {lapse.jobs[0].job.arrival: Lapsed()})

        assert (state(store, job_id), find(store, job_id).request) == (JobState.CANCELLED, None)
