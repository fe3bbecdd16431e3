"""Claims of jobs that keep no order."""

from datetime import timedelta

from penstock.domain.outcomes import Deferred, Dispatched, Failed, Returned, Succeeded
from penstock.domain.states import Effect, JobState, Verb
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    PAST,
    ZERO,
    by_id,
    claim,
    claim_groups,
    enqueue,
    find,
    ids,
    in_state,
    job,
    operate,
    ordered,
    put_lane,
    report,
    settle,
    some,
    state,
)


class ClaimTests:
    """Claims."""

    def test_a_job_claimed_again_beside_its_mates_is_found(self, store: Store) -> None:
        """The claim it was settled in stays open for a mate; the job is in the claim it is in now."""
        put_lane(store)
        [again, mate] = enqueue(store, job(run_at=store.now() - HOUR), job())
        first = some(claim(store, lease=PAST))
        store.settle(first, by_id(first, {again: Failed("no", ZERO)}))
        second = some(claim(store))
        store.takeover(2, HOUR, 10)

        assert find(store, again).live.epoch == second.epoch
        assert find(store, mate).live.epoch != second.epoch
        assert operate(store, Verb.CANCEL, again).effect is Effect.REQUESTED
        assert report(store, again, 2, Succeeded()).applied
        assert report(store, mate, 1, Succeeded()).applied
        assert store.counts() == {(LANE, JobState.SUCCEEDED): 2}

    def test_nothing_due_is_no_claim(self, store: Store) -> None:
        """An empty lane, a lane of future jobs and a lane nobody knows."""
        put_lane(store)
        enqueue(store, job(run_at=store.now() + HOUR))

        assert claim(store) is None
        assert claim_groups(store) is None
        assert claim(store, "nobody") is None
        assert claim_groups(store, "nobody") is None

    def test_a_claim_says_who_has_what_and_until_when(self, store: Store) -> None:
        """The claim and its rows agree."""
        put_lane(store)
        [job_id] = enqueue(store, job(payload="1"))
        before = store.now()
        batch = some(claim(store, node=7, lease=HOUR))
        [claimed] = batch.jobs

        assert (batch.lane, batch.node, batch.groups, batch.sending) == (LANE, 7, False, False)
        assert (batch.takeovers, batch.settled) == (0, frozenset())
        assert before <= batch.claimed_at <= store.now()
        assert batch.lease_until == batch.claimed_at + HOUR
        assert claimed.context is not None
        assert (claimed.context.id, claimed.context.payload) == (job_id, "1")
        assert claimed.job.state == JobState.CLAIMED
        assert (claimed.job.epoch, claimed.job.node) == (batch.epoch, 7)
        assert claimed.job.claimed_at == batch.claimed_at

    def test_a_claimed_job_is_found_as_its_holder_sees_it(self, store: Store) -> None:
        """A job inside a claim is not out of sight; it also shows how long the lease lasts."""
        put_lane(store)
        [job_id] = enqueue(store, job(tenant="acme", max_attempts=4, start_by=store.now() + HOUR))
        batch = some(claim(store))

        assert find(store, job_id).live == batch.jobs[0].job._replace(deadline=batch.lease_until)

    def test_a_claim_changes_nothing_but_who_holds_the_job(self, store: Store) -> None:
        """Counters, send number and due time are as before."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        before = find(store, job_id).live
        row = some(claim(store)).jobs[0].job

        assert before == row._replace(state=JobState.PENDING, epoch=None, node=None, claimed_at=None)

    def test_epochs_increase(self, store: Store) -> None:
        """Each claim of either kind has a higher number than all before."""
        put_lane(store)
        enqueue(store, job(), job(), job(), ordered("a"), ordered("b"))
        epochs = [some(claim(store, limit=1)).epoch for _ in range(2)]
        epochs += [some(claim_groups(store, limit=1)).epoch for _ in range(2)]
        epochs += [some(claim(store)).epoch]

        assert epochs == sorted(set(epochs))

    def test_the_oldest_go_first(self, store: Store) -> None:
        """By due time, then by arrival; the claim lists them so."""
        put_lane(store)
        now = store.now()
        due = [now - HOUR, now - 3 * HOUR, now - 2 * HOUR, now - 3 * HOUR]
        [a, b, c, d] = enqueue(store, *(job(run_at=at) for at in due))

        assert ids(claim(store, limit=3)) == [b, d, c]
        assert ids(claim(store, limit=3)) == [a]

    def test_the_limit_is_kept(self, store: Store) -> None:
        """Never more than asked for, until there is no more."""
        put_lane(store)
        enqueue(store, *(job() for _ in range(5)))

        assert [len(ids(claim(store, limit=2))) for _ in range(4)] == [2, 2, 1, 0]

    def test_the_future_is_not_claimed_unless_asked(self, store: Store) -> None:
        """`ahead` takes what is due within it, the rest waits."""
        put_lane(store)
        now = store.now()
        [_, soon, later] = enqueue(store, job(), job(run_at=now + HOUR), job(run_at=now + 3 * HOUR))
        claim(store)

        assert claim(store) is None
        assert ids(claim(store, ahead=2 * HOUR)) == [soon]
        assert state(store, later) is JobState.PENDING

    def test_a_job_due_long_ago_still_goes(self, store: Store) -> None:
        """There is no lower bound."""
        put_lane(store)
        [job_id] = enqueue(store, job(run_at=store.now() - timedelta(days=400)))

        assert ids(claim(store)) == [job_id]

    def test_a_claim_stays_in_its_lane(self, store: Store) -> None:
        """Other lanes' jobs are theirs."""
        put_lane(store)
        put_lane(store, "other")
        [mine, theirs] = enqueue(store, job(), job("other"))

        assert ids(claim(store)) == [mine]
        assert ids(claim(store, "other")) == [theirs]

    def test_the_two_kinds_of_claim_do_not_mix(self, store: Store) -> None:
        """`claim` never takes an ordered job, `claim_groups` never an immediate one."""
        put_lane(store)
        [plain, first] = enqueue(store, job(group="g"), ordered("g"))

        assert ids(claim(store)) == [plain]
        assert ids(claim_groups(store)) == [first]

    def test_a_claimed_job_is_not_claimed_again(self, store: Store) -> None:
        """Also not when its lease has run out: that is for `takeover`."""
        put_lane(store)
        enqueue(store, job())
        claim(store, lease=PAST)

        assert claim(store) is None

    def test_only_pending_jobs_are_claimed(self, store: Store) -> None:
        """Held, out and finished ones are left alone."""
        put_lane(store)
        for wanted in JobState:
            if wanted not in (JobState.WAITING, JobState.PENDING):
                in_state(store, wanted)

        assert claim(store, ahead=HOUR) is None

    def test_a_job_that_came_back_is_claimed_again(self, store: Store) -> None:
        """Returned, failed and deferred without delay: due at once, under a new epoch."""
        put_lane(store)
        [a, b, c] = enqueue(store, job(), job(), job())
        first = some(claim(store))
        store.settle(first, by_id(first, {a: Returned("stop"), b: Failed("no", ZERO), c: Deferred(ZERO)}))
        second = some(claim(store))

        assert set(ids(second)) == {a, b, c}
        assert second.epoch > first.epoch

    def test_a_job_in_back_off_is_not_claimed(self, store: Store) -> None:
        """Failed and deferred ones wait as long as they were told."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        store.settle(batch, by_id(batch, {a: Failed("no", HOUR), b: Deferred(HOUR)}))

        assert claim(store) is None
        assert set(ids(claim(store, ahead=2 * HOUR))) == {a, b}

    def test_a_disabled_lane_and_a_passed_start_are_the_engines_business(self, store: Store) -> None:
        """A claim looks at neither."""
        put_lane(store, enabled=False)
        [job_id] = enqueue(store, job(start_by=store.now() + PAST))

        assert ids(claim(store)) == [job_id]

    def test_a_renewed_claim_lives_longer(self, store: Store) -> None:
        """One that lapsed but was taken by nobody is still ours; unknown epochs are not."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store, lease=PAST))

        assert store.renew([batch.epoch, batch.epoch + 1_000], HOUR) == {batch.epoch}
        assert store.takeover(2, HOUR, 10) == []

    def test_a_settled_claim_cannot_be_renewed(self, store: Store) -> None:
        """A claim with nothing left open is gone."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store))
        store.settle(batch)

        assert store.renew([batch.epoch], HOUR) == frozenset()
        assert not store.mark_sending(batch.epoch)

    def test_sending_is_marked_on_a_claim_that_is_ours(self, store: Store) -> None:
        """Recovery sees whether a send may have happened."""
        put_lane(store)
        enqueue(store, job())
        batch = some(claim(store, lease=PAST))

        assert store.mark_sending(batch.epoch)

        [taken] = store.takeover(2, HOUR, 10)

        assert taken.sending
        assert not store.mark_sending(batch.epoch)

    def test_confirm_names_what_operators_asked_for(self, store: Store) -> None:
        """Only for this claim, by arrival; nothing asked is nothing said."""
        put_lane(store)
        [a, b, _, other] = enqueue(store, *(job() for _ in range(4)))
        batch, rest = some(claim(store, limit=3)), some(claim(store))

        assert store.confirm(batch).asked == {}

        operate(store, Verb.CANCEL, a)
        operate(store, Verb.HOLD, b)
        operate(store, Verb.CANCEL, other)
        arrivals = {job_id: find(store, job_id).live.arrival for job_id in (a, b)}

        assert store.confirm(batch).asked == {arrivals[a]: Verb.CANCEL, arrivals[b]: Verb.HOLD}
        assert len(store.confirm(rest).asked) == 1

    def test_confirm_is_silent_about_settled_jobs(self, store: Store) -> None:
        """A request that stays with a dispatched job is not this claim's any more."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        batch = some(claim(store))
        operate(store, Verb.CANCEL, a)
        store.settle(batch, by_id(batch, {a: Dispatched(HOUR)}))

        assert find(store, a).request == Verb.CANCEL
        assert store.confirm(batch).asked == {}
        assert state(store, b) is JobState.CLAIMED

    def test_a_claim_takes_the_same_jobs_a_return_gave_back(self, store: Store) -> None:
        """Nothing is counted and nothing is lost."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        before = find(store, job_id).live
        settle(store, some(claim(store)), Returned("no token"))

        assert find(store, job_id).live == before
