import json
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.edits import Edit, edited, facts, refusal, version
from penstock.domain.job import Context, Live
from penstock.domain.states import JobState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
S = JobState
SAID = Context(
    id="01", message_group=None, sequence=99, run_at=NOW, created_at=NOW, payload="old", headers=None,
    target="http://a/", pool=None, key=None, finish_by=None, entity=None, version=None, event=None,
    correlation=None,
)  # fmt: skip


def row(state: JobState, **fields: object) -> Live:
    job = Live(arrival=1, lane=1, keep=7, mode=0, state=state, ord=99, grp=None, tenant=None, due_at=NOW)
    return job._replace(**fields)


def test_unset_fields_are_no_change() -> None:
    assert Edit().content == {}
    assert Edit(payload=None, target="x").content == {"payload": None, "target": "x"}


@pytest.mark.parametrize("state", [S.CLAIMED, S.DISPATCHED, S.RUNNING, S.SUCCEEDED, S.SKIPPED])
def test_what_is_in_flight_or_done_is_refused(state: JobState) -> None:
    assert f"a job that is {state.label}" in str(refusal(state, Edit(payload="x"), SAID, replay=True))


@pytest.mark.parametrize("state", [S.DEAD, S.EXPIRED, S.CANCELLED])
def test_what_ended_is_edited_only_to_go_again(state: JobState) -> None:
    assert "ask for a replay" in str(refusal(state, Edit(payload="x"), SAID, replay=False))
    assert refusal(state, Edit(payload="x"), SAID, replay=True) is None
    after = edited(row(state, attempt=3, send=3, revision=1), Edit(payload="x"), now=NOW)
    assert (after.state, after.attempt, after.send, after.revision) == (S.PENDING, 0, 3, 2)


@pytest.mark.parametrize("state", [S.WAITING, S.PENDING, S.HELD])
def test_what_waits_stays_where_it_is(state: JobState) -> None:
    assert refusal(state, Edit(payload="x"), SAID, replay=False) is None
    before = row(state, attempt=2, send=2, open=True, reason="operator")
    assert edited(before, Edit(payload="x"), now=NOW) == before._replace(revision=1, open=False)
    later = NOW + timedelta(hours=1)
    reason = None if state is S.PENDING else "operator"  # what had put it back counts no longer
    assert edited(before, Edit(run_at=later), now=NOW) == before._replace(due_at=later, reason=reason)


def test_without_what_the_caller_said_only_the_time_can_change() -> None:
    assert "missing" in str(refusal(S.HELD, Edit(payload="x"), None, replay=False))
    assert refusal(S.HELD, Edit(run_at=NOW), None, replay=False) is None
    assert json.loads(facts(row(S.HELD), None, Edit(run_at=NOW)))["run_at"] == NOW.isoformat()


def test_a_version_is_whole() -> None:
    made = version(row(S.PENDING, revision=4), SAID, Edit(headers="{}"), at=NOW, actor="ann")

    assert made == (5, NOW, "ann", "old", "{}", "http://a/")


def test_an_edit_of_nothing_is_refused() -> None:
    assert refusal(S.PENDING, Edit(), SAID, replay=False) == "there is nothing to change"


def test_a_message_that_is_missing_cannot_be_edited_but_its_time_can() -> None:
    assert "missing" in str(refusal(S.HELD, Edit(payload="x"), None, replay=False))
    assert refusal(S.HELD, Edit(run_at=NOW), None, replay=False) is None


def test_facts_hold_hashes_and_no_payload() -> None:
    edit = Edit(payload="new", headers=None, target="http://b/", run_at=NOW + timedelta(hours=1))
    said = json.loads(facts(row(S.PENDING), SAID, edit))

    assert said["payload"].startswith("sha256:")
    assert (said["headers"], said["target"], said["run_at"]) == (None, "http://a/", NOW.isoformat())
    assert json.loads(facts(row(S.PENDING), None, Edit(payload="new")))["payload"] is None


def test_a_version_keeps_what_the_edit_leaves() -> None:
    made = version(row(S.PENDING, revision=2), SAID, Edit(payload="new"), at=NOW, actor="me")

    assert (made.revision, made.actor, made.payload, made.target) == (3, "me", "new", "http://a/")
