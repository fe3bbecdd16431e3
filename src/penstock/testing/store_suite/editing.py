"""Edits: what is sent changes, what was said is kept."""

import json
from typing import Any

import pytest

from penstock.domain.job import Context
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Dead, Failed, Succeeded
from penstock.domain.states import Effect, JobState, Reason, Verb
from penstock.errors import KeyConflict
from penstock.ports.store import Done, Store
from penstock.testing.store_suite.factories import (
    HOUR,
    PAST,
    claim,
    claim_groups,
    drain,
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
    with_open_send,
)

S = JobState
SAID = {"payload": '{"n": 1}', "headers": '{"a": "b"}', "target": "http://127.0.0.1/old"}


def edit(store: Store, job_id: str, **changes: Any) -> Done:  # noqa: ANN401
    """Edit one job."""
    return store.edit(job_id, **{"actor": "ops", "reason": "typo", **changes})


def sent(store: Store) -> Context:
    """Claim the only job there is and return what it sends."""
    [claimed] = some(claim(store) or claim_groups(store)).jobs
    assert claimed.context is not None
    return claimed.context


class EditTests:
    """Edits."""

    @pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.label)
    def test_a_claim_delivers_what_was_edited(self, store: Store, mode: Mode) -> None:
        """And all else as the caller said it."""
        put_lane(store)
        [job_id] = enqueue(store, job(mode=mode, group="g", key="k", entity="order/1", **SAID))
        before = find(store, job_id).context
        done = edit(store, job_id, payload='{"n": 2}', headers=None, target="http://127.0.0.1/new")

        assert done == Done(Effect.NOW, S.PENDING)
        assert before is not None
        assert sent(store) == before._replace(payload='{"n": 2}', headers=None, target="http://127.0.0.1/new")

    def test_only_edited_jobs_of_a_claim_are_changed(self, store: Store) -> None:
        """Its batch mates are sent as they were."""
        put_lane(store)
        [a, b, c] = enqueue(store, *(job(payload=text) for text in "abc"))
        edit(store, b, payload="B")
        batch = some(claim(store))

        assert ids(batch) == [a, b, c]
        assert [claimed.context and claimed.context.payload for claimed in batch.jobs] == ["a", "B", "c"]

    @pytest.mark.parametrize("field", list(SAID))
    def test_what_is_not_named_stays(self, store: Store, field: str) -> None:
        """One field at a time, one edit upon the other."""
        put_lane(store)
        [job_id] = enqueue(store, job(**SAID))
        edit(store, job_id, **{field: "new"})
        other = next(name for name in SAID if name != field)
        edit(store, job_id, **{other: None})
        context = find(store, job_id).context
        assert context is not None

        assert {name: getattr(context, name) for name in SAID} == {**SAID, field: "new", other: None}
        assert sent(store) == context

    def test_every_version_is_kept_with_its_time_and_actor(self, store: Store) -> None:
        """What the caller said is the first; nobody edited that."""
        put_lane(store)
        [job_id] = enqueue(store, job(**SAID))
        edit(store, job_id, payload="2", actor="ann")
        edit(store, job_id, payload="3", target=None, actor="bob")
        versions = store.payload_versions(job_id)

        assert [(v.revision, v.actor, v.payload) for v in versions] == [
            (0, None, SAID["payload"]),
            (1, "ann", "2"),
            (2, "bob", "3"),
        ]
        assert [v.target for v in versions] == [SAID["target"], SAID["target"], None]
        assert [v.at for v in versions] == sorted(v.at for v in versions)
        assert versions[-1].at <= store.now()

    def test_a_job_that_was_never_edited_has_one_version(self, store: Store) -> None:
        """And one that nobody knows has none."""
        put_lane(store)
        [job_id] = enqueue(store, job(**SAID))

        [version] = store.payload_versions(job_id)
        assert (version.payload, version.headers, version.target) == tuple(SAID.values())
        assert store.payload_versions("nobody") == []

    def test_a_job_put_off_is_not_due(self, store: Store) -> None:
        """Its time is all that changes: no version is made."""
        put_lane(store)
        [job_id] = enqueue(store, job(**SAID))
        later = store.now() + HOUR
        edit(store, job_id, run_at=later)

        assert find(store, job_id).live.due_at == later
        assert claim(store) is None
        assert len(store.payload_versions(job_id)) == 1
        edit(store, job_id, run_at=store.now() + PAST)
        assert drain(store) == [job_id]

    def test_a_head_put_off_holds_its_group_and_one_brought_forward_lets_it_go(self, store: Store) -> None:
        """A future-dated head holds its group, however it came by its date."""
        put_lane(store)
        job_ids = enqueue(store, ordered(), ordered())
        edit(store, job_ids[0], run_at=store.now() + HOUR)
        assert claim_groups(store) is None
        edit(store, job_ids[0], run_at=store.now() + PAST)

        assert drain(store) == job_ids

    def test_a_held_job_stays_held(self, store: Store) -> None:
        """It is sent as edited once it is released."""
        put_lane(store)
        job_id = in_state(store, S.HELD, **SAID)

        assert edit(store, job_id, payload="new") == Done(Effect.NOW, S.HELD)
        assert claim(store) is None
        assert find(store, job_id).live.reason == "operator"
        operate(store, Verb.RELEASE, job_id)
        assert sent(store).payload == "new"

    @pytest.mark.parametrize(
        "start", [S.CLAIMED, S.DISPATCHED, S.RUNNING, S.SUCCEEDED, S.SKIPPED], ids=lambda state: state.label
    )
    def test_a_job_in_flight_or_done_is_not_edited(self, store: Store, start: JobState) -> None:
        """Not even with a replay."""
        put_lane(store)
        job_id = in_state(store, start, **SAID)
        before, timeline = find(store, job_id), store.timeline(job_id)
        done = edit(store, job_id, payload="new", run_at=store.now(), replay=True, force=True)

        assert (done.effect, done.state) == (Effect.REFUSED, start)
        assert start.label in done.text
        assert (find(store, job_id), store.timeline(job_id)) == (before, timeline)
        assert len(store.payload_versions(job_id)) == 1

    @pytest.mark.parametrize("start", [S.DEAD, S.EXPIRED, S.CANCELLED], ids=lambda state: state.label)
    @pytest.mark.parametrize("mode", [Mode.IMMEDIATE, Mode.BLOCK_ON_ERROR], ids=lambda mode: mode.label)
    def test_an_ended_job_is_edited_and_goes_again(self, store: Store, start: JobState, mode: Mode) -> None:
        """Same id and place, attempts from nought; not without being asked for."""
        put_lane(store)
        job_id = in_state(store, start, mode=mode, group="g", sequence=5, **SAID)
        before = find(store, job_id)
        refused = edit(store, job_id, payload="new")
        assert (refused.effect, refused.state) == (Effect.REFUSED, start)
        assert "replay" in refused.text
        assert find(store, job_id) == before

        assert edit(store, job_id, payload="new", replay=True) == Done(Effect.NOW, S.PENDING)
        row = find(store, job_id).live
        assert (row.arrival, row.ord, row.attempt, row.revision) == (before.live.arrival, 5, 0, 1)
        assert sent(store).payload == "new"

    def test_an_ended_job_can_go_again_at_another_time(self, store: Store) -> None:
        """The time that was asked for, not now."""
        put_lane(store)
        job_id = in_state(store, S.DEAD, **SAID)
        later = store.now() + HOUR
        edit(store, job_id, run_at=later, replay=True)

        assert (state(store, job_id), find(store, job_id).live.due_at) == (S.PENDING, later)
        assert claim(store) is None

    def test_an_edit_that_would_break_order_is_refused_unless_forced(self, store: Store) -> None:
        """As a replay is."""
        put_lane(store, mode="next_on_error")
        [dead, _] = enqueue(store, job(group="g"), job(group="g"))
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT, "boom"))
        drain(store)
        refused = edit(store, dead, payload="new", replay=True)

        assert (refused.effect, refused.state) == (Effect.REFUSED, S.DEAD)
        assert "1 job" in refused.text
        assert len(store.payload_versions(dead)) == 1
        assert edit(store, dead, payload="new", replay=True, force=True).effect is Effect.NOW
        assert drain(store) == [dead]

    def test_an_edited_dead_head_unblocks_its_group(self, store: Store) -> None:
        """It goes first, then what it held up."""
        put_lane(store)
        job_ids = enqueue(store, ordered(payload="bad"), ordered())
        settle(store, some(claim_groups(store)), Dead(Reason.PERMANENT, "boom"))
        assert claim_groups(store) is None
        edit(store, job_ids[0], payload="good", replay=True)

        assert drain(store) == job_ids

    def test_an_edit_is_audited_without_the_payload(self, store: Store) -> None:
        """Who, why, and what of: hashes tell versions apart and give nothing away."""
        put_lane(store)
        [job_id] = enqueue(store, job(payload="top secret", headers='{"token": "abc"}', target="http://a/"))
        edit(store, job_id, payload="new secret", headers=None, target="http://b/", run_at=store.now() + HOUR)
        [note] = store.timeline(job_id).audit
        before, after = json.loads(note.before or ""), json.loads(note.after or "")

        assert (note.actor, note.action, note.reason) == ("ops", "edit", "typo")
        assert (before["state"], after["state"]) == ("pending", "pending")
        assert (before["target"], after["target"]) == ("http://a/", "http://b/")
        assert before["payload"].startswith("sha256:")
        assert before["payload"] != after["payload"]
        assert (before["headers"][:7], after["headers"]) == ("sha256:", None)
        assert before["run_at"] < after["run_at"]
        assert "secret" not in f"{note}"
        assert "abc" not in f"{note}"

    def test_an_edit_of_nothing_is_refused(self, store: Store) -> None:
        """So is one of a job that nobody knows."""
        put_lane(store)
        [job_id] = enqueue(store, job())

        assert edit(store, job_id).effect is Effect.REFUSED
        assert edit(store, "nobody", payload="x") == Done(Effect.REFUSED, None, "no such job")
        assert store.timeline(job_id).audit == []

    def test_an_edited_message_is_a_new_send(self, store: Store) -> None:
        """Its number repeated, a broker could take it for the old message; what comes of that one is late."""
        put_lane(store)
        job_id = with_open_send(store, S.PENDING, payload="old")
        edit(store, job_id, payload="new")

        assert report(store, job_id, 1, Succeeded()).late
        assert some(claim(store)).jobs[0].job.current_send == 2

    def test_another_time_is_no_new_send(self, store: Store) -> None:
        """The message is the same: a report on the one that is out still counts."""
        put_lane(store)
        job_id = with_open_send(store, S.PENDING, payload="same")
        edit(store, job_id, run_at=store.now() + HOUR)

        assert report(store, job_id, 1, Succeeded()).applied

    def test_an_edit_lives_through_retries_takeovers_and_the_end(self, store: Store) -> None:
        """It is the job's from now on."""
        put_lane(store)
        [job_id] = enqueue(store, job(payload="old"))
        edit(store, job_id, payload="new")
        settle(store, some(claim(store)), Failed("no", PAST))
        some(claim(store, lease=PAST))
        [taken] = store.takeover(2, HOUR, 10)
        context = taken.jobs[0].context

        assert context is not None
        assert context.payload == "new"
        store.settle(taken)
        done = find(store, job_id)
        assert (done.state, done.live.revision) == (S.SUCCEEDED, 1)
        assert done.context == context

    def test_a_key_is_compared_with_what_the_caller_said(self, store: Store) -> None:
        """Whoever repeats his enqueue does not know of the edit."""
        put_lane(store)
        [job_id] = enqueue(store, job(payload="old", key="k"))
        edit(store, job_id, payload="new")
        [same, other] = store.enqueue([job(payload="old", key="k"), job(payload="new", key="k")])

        assert same == (job_id, True)
        assert isinstance(other, KeyConflict)

    def test_an_edit_counts_nothing(self, store: Store) -> None:
        """The job is in one state as before; a replay moves it."""
        put_lane(store)
        [job_id] = enqueue(store, job())
        dead = in_state(store, S.DEAD, lane=put_lane(store, "other").name)
        edit(store, job_id, payload="new")
        edit(store, dead, payload="new", replay=True)
        store.fold_counts()

        assert store.counts() == {("orders", S.PENDING): 1, ("other", S.PENDING): 1}
