"""Settling a claim: what takes effect, and what is refused because it is no longer ours."""

from penstock.domain.outcomes import (
    Dead,
    Deferred,
    Dispatched,
    Expired,
    Failed,
    Held,
    Outcome,
    Returned,
    Running,
    Succeeded,
)
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import Settled, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    PAST,
    ZERO,
    by_id,
    claim,
    claim_groups,
    enqueue,
    find,
    ids,
    job,
    operate,
    ordered,
    put_lane,
    settle,
    some,
    state,
)


class SettlingTests:
    """Settling."""

    def test_no_outcomes_mean_that_all_succeeded(self, store: Store) -> None:
        """The usual case has the shortest form."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(3)))
        batch = some(claim(store))
        arrivals = frozenset(claimed.job.arrival for claimed in batch.jobs)

        assert store.settle(batch) == Settled(arrivals, frozenset())
        assert {state(store, job_id) for job_id in job_ids} == {JobState.SUCCEEDED}

    def test_a_succeeded_job_shows_its_life(self, store: Store) -> None:
        """Times, node, epoch, result and receipt stay with it."""
        put_lane(store)
        [job_id] = enqueue(store, job(payload="1"))
        batch = some(claim(store, node=4))
        settle(store, batch, Succeeded(result='{"ok":true}', receipt="202"))
        found = find(store, job_id)

        assert found.finished_at is not None
        assert batch.claimed_at <= found.finished_at <= store.now()
        assert (found.result, found.error, found.live.receipt) == ('{"ok":true}', None, "202")
        assert (found.live.attempt, found.live.send, found.live.open) == (1, 1, False)
        assert (found.live.node, found.live.epoch) == (4, batch.epoch)
        assert found.live.claimed_at == batch.claimed_at
        assert found.context is not None
        assert found.context.payload == "1"

    def test_every_job_of_a_claim_may_end_differently(self, store: Store) -> None:
        """One settle writes all of them."""
        put_lane(store)
        outcomes: list[tuple[Outcome, JobState]] = [
            (Succeeded(), JobState.SUCCEEDED),
            (Dispatched(HOUR, receipt="m-1"), JobState.DISPATCHED),
            (Running(HOUR), JobState.RUNNING),
            (Failed("no", HOUR), JobState.PENDING),
            (Dead(Reason.TOO_LARGE, "4 MiB"), JobState.DEAD),
            (Deferred(HOUR), JobState.PENDING),
            (Returned("no token"), JobState.PENDING),
            (Expired(), JobState.EXPIRED),
            (Held("context_missing"), JobState.HELD),
        ]
        job_ids = enqueue(store, *(job() for _ in outcomes))
        batch = some(claim(store))
        given = {job_id: outcome for job_id, (outcome, _) in zip(job_ids, outcomes, strict=True)}
        settled = store.settle(batch, by_id(batch, given))

        assert len(settled.applied) == len(outcomes)
        assert [state(store, job_id) for job_id in job_ids] == [expected for _, expected in outcomes]
        assert find(store, job_ids[1]).live.receipt == "m-1"
        assert find(store, job_ids[4]).live.reason == Reason.TOO_LARGE
        assert find(store, job_ids[4]).error == "4 MiB"
        assert find(store, job_ids[8]).live.reason == "context_missing"
        assert not store.mark_sending(batch.epoch)

    def test_a_job_returned_for_a_while_is_not_claimed_before(self, store: Store) -> None:
        """It costs no attempt and no send; one that is due even later keeps its time."""
        put_lane(store)
        [job_id, head] = enqueue(store, job(), ordered())
        [ahead] = enqueue(store, job(run_at=store.now() + 2 * HOUR))
        for batch in (some(claim(store, ahead=3 * HOUR)), some(claim_groups(store))):
            settle(store, batch, Returned("no token", after=HOUR))
        now = store.now()

        assert (claim(store), claim_groups(store)) == (None, None)
        waits = [find(store, one).live for one in (job_id, head, ahead)]
        assert now < waits[0].due_at <= now + HOUR
        assert now < waits[1].due_at <= now + HOUR
        assert waits[2].due_at > now + HOUR
        assert {(row.attempt, row.deferrals, row.send, row.open) for row in waits} == {(0, 0, 0, False)}
        assert ids(claim(store, ahead=HOUR)) == [job_id]
        assert ids(claim_groups(store, ahead=HOUR)) == [head]

    def test_groups_of_one_claim_may_end_differently(self, store: Store) -> None:
        """Each group opens, waits or is blocked by its own head."""
        put_lane(store)
        names = ["done", "dead", "retry", "later", "out"]
        heads = enqueue(store, *(ordered(name) for name in names))
        tails = enqueue(store, *(ordered(name) for name in names))
        batch = some(claim_groups(store))
        outcomes: list[Outcome] = [
            Succeeded(),
            Dead(Reason.PERMANENT),
            Failed("no", ZERO),
            Failed("no", HOUR),
            Dispatched(HOUR),
        ]
        store.settle(batch, by_id(batch, dict(zip(heads, outcomes, strict=True))))

        assert set(ids(claim_groups(store))) == {tails[0], heads[2]}

    def test_jobs_not_named_stay_claimed(self, store: Store) -> None:
        """A claim may be settled piece by piece; with the last piece it is gone."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        store.settle(batch, by_id(batch, {a: Succeeded()}))

        assert (state(store, a), state(store, b)) == (JobState.SUCCEEDED, JobState.CLAIMED)
        assert store.renew([batch.epoch], HOUR) == {batch.epoch}

        store.settle(batch, by_id(batch, {b: Succeeded()}))

        assert store.renew([batch.epoch], HOUR) == frozenset()

    def test_settling_twice_is_refused_the_second_time(self, store: Store) -> None:
        """A repeated write changes nothing, whatever it says."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        outcomes = by_id(batch, {a: Succeeded()})
        store.settle(batch, outcomes)
        again = store.settle(batch, by_id(batch, {a: Dead(Reason.PERMANENT), b: Succeeded()}))

        assert again.refused == frozenset(outcomes)
        assert len(again.applied) == 1
        assert state(store, a) is JobState.SUCCEEDED
        assert store.settle(batch) == Settled(frozenset(), frozenset(c.job.arrival for c in batch.jobs))

    def test_a_fenced_holder_changes_nothing(self, store: Store) -> None:
        """After a takeover all of the old holder's writes are refused."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store, lease=PAST))
        [taken] = store.takeover(2, HOUR, 10)
        arrivals = frozenset(claimed.job.arrival for claimed in batch.jobs)

        assert store.settle(batch) == Settled(frozenset(), arrivals)
        assert store.renew([batch.epoch], HOUR) == frozenset()
        assert state(store, job_id) is JobState.CLAIMED
        assert store.settle(taken).applied == arrivals

    def test_a_lease_that_ran_out_is_still_settled(self, store: Store) -> None:
        """Late is not lost while nobody else has taken over."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        store.settle(some(claim(store, lease=PAST)))

        assert state(store, job_id) is JobState.SUCCEEDED

    def test_arrivals_of_others_are_refused(self, store: Store) -> None:
        """A claim's outcomes are about its own jobs only."""
        put_lane(store)
        [mine, theirs] = enqueue(store, job(), job())
        batch, other = some(claim(store, limit=1)), some(claim(store))
        foreign = other.jobs[0].job.arrival
        outcomes: dict[int, Outcome] = {foreign: Succeeded(), foreign + 1_000: Succeeded()}

        assert store.settle(batch, outcomes) == Settled(frozenset(), frozenset(outcomes))
        assert (state(store, mine), state(store, theirs)) == (JobState.CLAIMED, JobState.CLAIMED)

    def test_no_outcomes_at_all_change_nothing(self, store: Store) -> None:
        """An empty settle is not the same as none."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store))

        assert store.settle(batch, {}) == Settled(frozenset(), frozenset())
        assert state(store, job_id) is JobState.CLAIMED

    def test_a_large_claim_settles_in_one_go(self, store: Store) -> None:
        """A thousand jobs, half of them failing."""
        put_lane(store)
        job_ids = enqueue(store, *(job() for _ in range(1_000)))
        batch = some(claim(store, limit=1_000))
        outcomes: dict[str, Outcome] = {
            job_id: Succeeded() if i % 2 else Failed("no", HOUR) for i, job_id in enumerate(job_ids)
        }

        assert len(store.settle(batch, by_id(batch, outcomes)).applied) == 1_000
        assert store.counts() == {
            (batch.lane, JobState.SUCCEEDED): 500,
            (batch.lane, JobState.PENDING): 500,
        }


class RequestTests:
    """Requests that operators left with a job's holder."""

    def test_a_cancel_is_honoured_when_the_job_comes_back_unsent(self, store: Store) -> None:
        """Claimed, asked for, returned: cancelled, and the request is gone."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store))
        operate(store, Verb.CANCEL, job_id)
        assert find(store, job_id).request == Verb.CANCEL
        settle(store, batch, Returned("cancel was asked for"))
        found = find(store, job_id)

        assert (found.state, found.request) == (JobState.CANCELLED, None)
        assert found.live.send == 0
        assert [audit.action for audit in store.timeline(job_id).audit] == [Verb.CANCEL, "cancel"]
        assert store.timeline(job_id).audit[-1].before == "claimed"

    def test_a_hold_is_honoured_when_the_job_comes_back(self, store: Store) -> None:
        """Returned or failed, it is held instead of pending; the attempt counts."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        operate(store, Verb.HOLD, a)
        operate(store, Verb.HOLD, b)
        store.settle(batch, by_id(batch, {a: Returned("hold"), b: Failed("no", ZERO)}))

        for job_id, attempts in ((a, 0), (b, 1)):
            found = find(store, job_id)
            assert (found.state, found.live.reason) == (JobState.HELD, "operator")
            assert (found.request, found.live.attempt) == (None, attempts)

    def test_success_wins_over_a_cancel(self, store: Store) -> None:
        """What was done was done."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store))
        operate(store, Verb.CANCEL, job_id)
        store.settle(batch)

        assert (state(store, job_id), find(store, job_id).request) == (JobState.SUCCEEDED, None)

    def test_a_cancelled_head_lets_its_group_go(self, store: Store) -> None:
        """A request that is honoured opens the group as any other end does."""
        put_lane(store)
        [a, b] = enqueue(store, ordered(), ordered())
        batch = some(claim_groups(store))
        operate(store, Verb.CANCEL, a)
        settle(store, batch, Returned("cancel was asked for"))

        assert ids(claim_groups(store)) == [b]

    def test_a_request_outlives_a_takeover(self, store: Store) -> None:
        """The new holder is asked the same."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        claim(store, lease=PAST)
        operate(store, Verb.CANCEL, job_id)
        [taken] = store.takeover(2, HOUR, 10)

        assert store.confirm(taken).asked == {taken.jobs[0].job.arrival: Verb.CANCEL}

    def test_the_last_request_counts(self, store: Store) -> None:
        """An operator may think again."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store))
        operate(store, Verb.HOLD, job_id)
        operate(store, Verb.CANCEL, job_id)

        assert store.confirm(batch).asked == {batch.jobs[0].job.arrival: Verb.CANCEL}
