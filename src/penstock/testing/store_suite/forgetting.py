"""Lanes that do not keep payloads: what a job said is gone once it succeeded, and only then."""

import pytest

from penstock.domain.job import Context, Enqueued
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Dispatched, Failed, Lapsed, Succeeded
from penstock.domain.states import JobState, Reason, Verb
from penstock.errors import KeyConflict
from penstock.ports.store import Store
from penstock.testing.store_suite.factories import (
    HOUR,
    LANE,
    NODE,
    PAST,
    ZERO,
    by_id,
    claim,
    claim_groups,
    enqueue,
    find,
    in_state,
    job,
    operate,
    put_lane,
    report,
    settle,
    some,
    state,
)

SAID = {"payload": '{"card": 4111}', "headers": '{"X-Secret": "s"}', "target": "http://127.0.0.1/pay"}


def said(store: Store, job_id: str) -> tuple[str | None, str | None]:
    """Return payload and headers of a job whose target is still known."""
    context = find(store, job_id).context
    assert isinstance(context, Context)
    assert context.target is not None
    return context.payload, context.headers


KEPT = (SAID["payload"], SAID["headers"])
GONE = (None, None)


class ForgettingTests:
    """`keep_payload`."""

    @pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.label)
    def test_a_whole_claim_that_succeeded_is_forgotten(self, store: Store, mode: Mode) -> None:
        """The commonest way a job ends."""
        put_lane(store, keep_payload=False)
        job_ids = enqueue(store, *(job(mode=mode, group=str(n), entity="order/1", **SAID) for n in range(3)))
        store.settle(some(claim(store) or claim_groups(store)))

        for job_id in job_ids:
            context = find(store, job_id).context
            assert state(store, job_id) is JobState.SUCCEEDED
            assert said(store, job_id) == GONE
            assert context is not None
            assert context.entity == "order/1"

    def test_only_what_succeeded_is_forgotten(self, store: Store) -> None:
        """Whoever goes again, is out or is dead still has something to say."""
        put_lane(store, keep_payload=False)
        job_ids = enqueue(store, *(job(**SAID) for _ in range(4)))
        outcomes = (Succeeded("7"), Failed("no", HOUR), Dispatched(HOUR), Dead(Reason.PERMANENT, "no"))
        batch = some(claim(store))
        store.settle(batch, by_id(batch, dict(zip(job_ids, outcomes, strict=True))))

        assert [said(store, job_id) for job_id in job_ids] == [GONE, KEPT, KEPT, KEPT]
        assert find(store, job_ids[0]).result == "7"

    @pytest.mark.parametrize(
        "ended", [JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED, JobState.SKIPPED], ids=str
    )
    def test_what_ended_otherwise_is_kept(self, store: Store, ended: JobState) -> None:
        """It may be sent again, or looked into."""
        put_lane(store, keep_payload=False)

        assert said(store, in_state(store, ended, **SAID)) == KEPT

    @pytest.mark.parametrize("before", [JobState.DISPATCHED, JobState.RUNNING, JobState.CLAIMED], ids=str)
    def test_an_executors_word_ends_it_too(self, store: Store, before: JobState) -> None:
        """Also when it comes before the sender's own settle."""
        put_lane(store, keep_payload=False)
        job_id = in_state(store, before, **SAID)

        assert said(store, job_id) == KEPT
        assert report(store, job_id, 1, Succeeded('"done"')).applied
        assert said(store, job_id) == GONE

    def test_a_late_word_forgets_nothing(self, store: Store) -> None:
        """The job goes again."""
        put_lane(store, keep_payload=False)
        job_id = in_state(store, JobState.DISPATCHED, **SAID)
        report(store, job_id, 1, Failed("no", ZERO))
        report(store, job_id, 1, Succeeded())

        assert said(store, job_id) == KEPT

    def test_what_recovery_finds_done_is_forgotten(self, store: Store) -> None:
        """In a claim that was taken over, and among those whose executor fell silent."""
        put_lane(store, keep_payload=False)
        [left] = enqueue(store, job(**SAID))
        claim(store, lease=PAST)
        [taken] = store.takeover(NODE, HOUR, 10)
        settle(store, taken, Succeeded())
        [silent, unknown] = enqueue(store, job(**SAID), job(**SAID))
        settle(store, some(claim(store)), Dispatched(PAST))
        lapse = store.lapse(NODE, HOUR, 10)
        assert lapse is not None
        arrivals = {c.context.id: c.job.arrival for c in lapse.jobs if c.context is not None}
        store.resolve(lapse, {arrivals[silent]: Succeeded(), arrivals[unknown]: Lapsed()})

        assert [said(store, job_id) for job_id in (left, silent, unknown)] == [GONE, GONE, KEPT]

    def test_an_operator_who_settles_a_job_ends_it_too(self, store: Store) -> None:
        """`settle dead` does not."""
        put_lane(store, keep_payload=False)
        [good, bad] = [in_state(store, JobState.DISPATCHED, **SAID) for _ in range(2)]
        operate(store, Verb.SETTLE_SUCCEEDED, good)
        operate(store, Verb.SETTLE_DEAD, bad)

        assert [said(store, job_id) for job_id in (good, bad)] == [GONE, KEPT]

    def test_what_it_was_edited_to_goes_too(self, store: Store) -> None:
        """Who edited it and where it went stays."""
        put_lane(store, keep_payload=False)
        [job_id] = enqueue(store, job(**SAID))
        store.edit(job_id, actor="ann", reason="typo", payload='{"card": 4242}', target="http://127.0.0.1/b")
        store.settle(some(claim(store)))

        versions = store.payload_versions(job_id)
        assert [(v.actor, v.payload, v.headers) for v in versions] == [(None, *GONE), ("ann", *GONE)]
        context = find(store, job_id).context
        assert context is not None
        assert (context.payload, context.target) == (None, "http://127.0.0.1/b")

    def test_its_key_still_answers(self, store: Store) -> None:
        """By what the payload was, though nobody knows it any more."""
        put_lane(store, keep_payload=False)
        job_id = in_state(store, JobState.SUCCEEDED, key="k", **SAID)

        [same, other] = store.enqueue([job(key="k", **SAID), job(key="k", payload="2")])

        assert same == Enqueued(job_id, duplicate=True)
        assert isinstance(other, KeyConflict)

    def test_other_lanes_keep_what_was_said(self, store: Store) -> None:
        """In one batch of reports, too."""
        put_lane(store, keep_payload=False)
        put_lane(store, "kept")
        [gone, kept] = [in_state(store, JobState.DISPATCHED, lane=lane, **SAID) for lane in (LANE, "kept")]
        for job_id in (gone, kept):
            report(store, job_id, 1, Succeeded())

        assert [said(store, gone), said(store, kept)] == [GONE, KEPT]

    def test_the_setting_counts_when_the_job_ends(self, store: Store) -> None:
        """Not when it came."""
        put_lane(store)
        first, second = enqueue(store, job(**SAID), job(**SAID))
        store.settle(some(claim(store, limit=1)))
        put_lane(store, keep_payload=False)
        store.settle(some(claim(store)))

        operate(store, Verb.CANCEL, first)  # refused: it changes nothing

        assert [said(store, first), said(store, second)] == [KEPT, GONE]
