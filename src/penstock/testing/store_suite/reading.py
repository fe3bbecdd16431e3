"""What people look at: jobs, timelines, groups, counts."""

from penstock.domain.outcomes import (
    Dead,
    Deferred,
    Dispatched,
    Expired,
    Failed,
    Lapsed,
    Returned,
)
from penstock.domain.states import JobState, Reason, Verb
from penstock.ports.store import GroupState, JobQuery, Store, Timeline
from penstock.testing.store_suite.factories import (
    GROUP,
    HOUR,
    LANE,
    ZERO,
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
)

STATES = [state for state in JobState if state is not JobState.WAITING]
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def _group(store: Store, name: str = GROUP) -> GroupState:
    group = store.group(LANE, name)
    assert group is not None
    return group


class ReadingTests:
    """Jobs and timelines."""

    def test_unknown_ids_are_missing(self, store: Store) -> None:
        """The known ones are there, in whatever state."""
        put_lane(store)
        job_ids = {in_state(store, state): state for state in STATES if state is not JobState.PENDING}
        [pending] = enqueue(store, job())
        found = store.find([*job_ids, pending, NOBODY])

        assert {job_id: found[job_id].state for job_id in job_ids} == job_ids
        assert set(found) == {*job_ids, pending}

    def test_only_what_ended_has_an_end(self, store: Store) -> None:
        """Live jobs have no `finished_at`."""
        put_lane(store)
        ended = (JobState.SUCCEEDED, JobState.SKIPPED, JobState.CANCELLED, JobState.EXPIRED, JobState.DEAD)
        for wanted in reversed(STATES):
            job_id = in_state(store, wanted)
            assert (find(store, job_id).finished_at is not None) == (wanted in ended)

    def test_a_claimed_job_shows_how_long_its_lease_lasts(self, store: Store) -> None:
        """Wherever it is looked at, and no longer than it is claimed."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        batch = some(claim(store, lease=HOUR))
        standing = store.standing(job_id)
        [listed] = store.list_jobs(JobQuery()).jobs
        assert standing is not None
        shown = [found.live.deadline for found in (find(store, job_id), listed, standing.job)]

        assert shown == [batch.lease_until] * 3
        store.renew([batch.epoch], 2 * HOUR)
        renewed = find(store, job_id).live.deadline
        assert renewed is not None
        assert renewed > batch.lease_until
        settle(store, batch, Failed("no", ZERO))
        assert find(store, job_id).live.deadline is None

    def test_a_job_waiting_for_another_try_shows_its_last_error(self, store: Store) -> None:
        """The newest of them."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        for error in ("first", "second"):
            settle(store, some(claim(store)), Failed(error, ZERO))

        assert find(store, job_id).error == "second"

    def test_every_try_that_did_not_succeed_is_on_record(self, store: Store) -> None:
        """With its number, its send, who made it and what came next."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        first = some(claim(store, node=5))
        settle(store, first, Failed("no", ZERO))
        settle(store, some(claim(store)), Deferred(ZERO, "busy"))
        settle(store, some(claim(store)), Lapsed())
        settle(store, some(claim(store)), Dead(Reason.EXHAUSTED, "no more"))
        attempts = store.timeline(job_id).attempts

        assert [a.outcome for a in attempts] == ["failed", "deferred", "lapsed", "exhausted"]
        assert [a.send for a in attempts] == [1, 2, 3, 3]
        assert [a.attempt for a in attempts] == [1, 1, 1, 2]
        assert [a.error for a in attempts] == ["no", "busy", None, "no more"]
        assert [a.due_at is None for a in attempts] == [False, False, False, True]
        assert (attempts[0].epoch, attempts[0].node) == (first.epoch, 5)
        assert attempts[0].claimed_at == first.claimed_at
        assert all(a.ended_at <= store.now() for a in attempts)

    def test_a_happy_job_has_an_empty_timeline(self, store: Store) -> None:
        """Its own row tells it all."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        drain(store)

        assert store.timeline(job_id) == Timeline([], [])

    def test_moves_off_the_path_are_on_record(self, store: Store) -> None:
        """Oldest first, with both states and the reason."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        settle(store, some(claim(store)), Returned("no token"))
        operate(store, Verb.HOLD, job_id)
        operate(store, Verb.RELEASE, job_id)
        settle(store, some(claim(store)), Expired())
        audit = store.timeline(job_id).audit

        assert [(a.action, a.before, a.after) for a in audit] == [
            ("return", "claimed", "pending"),
            ("hold", "pending", "held"),
            ("release", "held", "pending"),
            ("expire", "claimed", "expired"),
        ]
        assert [a.reason for a in audit[:2]] == ["no token", "because"]
        assert audit[0].at <= audit[-1].at <= store.now()

    def test_of_being_given_back_again_and_again_the_last_times_are_on_record(self, store: Store) -> None:
        """A job may wait for weeks, and a minute at a time; what else became of it stays, and other jobs."""
        put_lane(store)
        often, once = enqueue(store, job(), job())
        operate(store, Verb.HOLD, often)
        settle(store, some(claim(store)), Returned("no token"))
        operate(store, Verb.HOLD, once)
        operate(store, Verb.RELEASE, often)
        for number in range(8):
            settle(store, some(claim(store)), Returned(f"no token {number}"))
        notes = store.timeline(often).audit

        assert [a.action for a in notes] == ["hold", "release", *["return"] * 5]
        assert [a.reason for a in notes[2:]] == [f"no token {number}" for number in range(3, 8)]
        assert [a.action for a in store.timeline(once).audit] == ["return", "hold"]

    def test_a_timeline_is_about_one_job(self, store: Store) -> None:
        """Nobody else's moves are in it; a job nobody knows has none."""
        put_lane(store)
        [a, b] = enqueue(store, job(), job())
        operate(store, Verb.HOLD, a)

        assert len(store.timeline(a).audit) == 1
        assert store.timeline(b) == store.timeline(NOBODY) == Timeline([], [])


class GroupStateTests:
    """Groups as the next claim would see them."""

    def test_a_group_without_jobs_is_nothing(self, store: Store) -> None:
        """Before its first job and after its last."""
        put_lane(store)
        assert store.group(LANE, GROUP) is None
        assert store.group("nobody", GROUP) is None
        enqueue(store, ordered())
        drain(store)

        assert store.group(LANE, GROUP) is None

    def test_a_group_opens_when_its_head_is_due(self, store: Store) -> None:
        """The head's time, not the earliest one's."""
        put_lane(store)
        at = store.now() + HOUR
        [head, _] = enqueue(store, ordered(sequence=1, run_at=at), ordered(sequence=2))

        assert _group(store) == (LANE, GROUP, find(store, head).live.due_at, None, False, False, None)

    def test_a_claimed_group_names_its_claim(self, store: Store) -> None:
        """Until that is settled."""
        put_lane(store)
        enqueue(store, ordered(), ordered())
        batch = some(claim_groups(store))
        assert _group(store).claim == batch.epoch
        store.settle(batch)

        assert _group(store).claim is None
        assert _group(store).next_at is not None

    def test_a_group_whose_head_is_out_or_held_has_no_time(self, store: Store) -> None:
        """Only something that happens to the head opens it."""
        put_lane(store)
        enqueue(store, ordered("out"), ordered("out"))
        settle(store, some(claim_groups(store)), Dispatched(HOUR))
        [head, _] = enqueue(store, ordered("held"), ordered("held"))
        operate(store, Verb.HOLD, head)

        for name in ("out", "held"):
            group = _group(store, name)
            assert (group.next_at, group.claim, group.blocked) == (None, None, False)

    def test_a_blocked_group_names_the_dead_job(self, store: Store) -> None:
        """The earliest unresolved one."""
        put_lane(store)
        [first, second, _] = enqueue(store, ordered(sequence=1), ordered(sequence=2), ordered(sequence=3))
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        dead = find(store, first).live.arrival

        assert (_group(store).blocked, _group(store).dead_arrival) == (True, dead)

        operate(store, Verb.SKIP, first)

        assert (_group(store).blocked, _group(store).dead_arrival) == (False, None)
        assert _group(store).next_at == find(store, second).live.due_at

    def test_a_dead_job_alone_blocks_nobody(self, store: Store) -> None:
        """But the group knows of it."""
        put_lane(store)
        [job_id] = enqueue(store, ordered())
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))

        assert _group(store).dead_arrival == find(store, job_id).live.arrival
        assert not _group(store).blocked

        operate(store, Verb.CANCEL, job_id)

        assert store.group(LANE, GROUP) is None

    def test_a_paused_group_is_known_without_jobs(self, store: Store) -> None:
        """Somebody said something about it."""
        put_lane(store)
        store.pause_group(LANE, GROUP, paused=True, actor="ops", reason="because")
        assert _group(store).paused
        store.pause_group(LANE, GROUP, paused=False, actor="ops", reason="because")

        assert store.group(LANE, GROUP) is None


class CountTests:
    """Counts per lane and state."""

    def test_an_empty_store_counts_nothing(self, store: Store) -> None:
        """Noughts are left out."""
        put_lane(store)

        assert store.counts() == {}

    def test_every_state_is_counted(self, store: Store) -> None:
        """Live, dead and finished, per lane, before and after the counters are folded."""
        for index, wanted in enumerate(STATES):
            lane = f"lane-{wanted.label}"
            put_lane(store, lane)
            for _ in range(index + 1):
                in_state(store, wanted, lane=lane)
        expected = {(f"lane-{s.label}", s): index + 1 for index, s in enumerate(STATES)}

        assert store.counts() == expected
        store.fold_counts()
        assert store.counts() == expected
        assert store.fold_counts() == 0
        assert store.counts() == expected

    def test_counts_follow_a_job_through_its_life(self, store: Store) -> None:
        """After each move there is one job in one state."""
        put_lane(store)
        [job_id] = enqueue(store, ordered())

        def check(expected: JobState) -> None:
            assert (find(store, job_id).state, store.counts()) == (expected, {(LANE, expected): 1})

        check(JobState.PENDING)
        settle(store, some(claim_groups(store)), Failed("no", ZERO))
        check(JobState.PENDING)
        claim_groups(store, lease=-HOUR)
        check(JobState.CLAIMED)
        settle(store, store.takeover(2, HOUR, 1)[0], Dispatched(-HOUR))
        check(JobState.DISPATCHED)
        lapse = store.lapse(2, HOUR, 10)
        assert lapse is not None
        store.resolve(lapse, {lapse.jobs[0].job.arrival: Lapsed(hold=True)})
        check(JobState.HELD)
        operate(store, Verb.RETRY, job_id)
        check(JobState.PENDING)
        operate(store, Verb.CANCEL, job_id)
        check(JobState.CANCELLED)
        operate(store, Verb.RETRY, job_id)
        check(JobState.PENDING)
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT))
        check(JobState.DEAD)
        operate(store, Verb.RETRY, job_id)
        drain(store)
        check(JobState.SUCCEEDED)
