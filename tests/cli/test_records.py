"""What ended, and who did what."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock import Client
from penstock.domain.outcomes import Returned
from penstock.ports.store import Ask
from tests.cli.conftest import Run, RunJson

LONG_AGO, SOON = "2020-01-01T00:00:00Z", "+1d"


@pytest.fixture
def ended(ready: Run) -> list[str]:
    """Return the ids of two jobs that ended: one cancelled, one skipped."""
    ids = [ready("enqueue", "hello", f'{{"n": {n}}}', "--at", "+1h").stdout.strip() for n in (1, 2)]
    ready("jobs", "cancel", ids[0], "--reason", "a mistake", "--yes")
    ready("jobs", "skip", ids[1], "--reason", "not needed", "--yes")
    return ids


def test_history_lists_what_ended_the_last_one_first(ready: Run, read: RunJson, ended: list[str]) -> None:
    assert [job["id"] for job in read("history")["jobs"]] == [ended[1], ended[0]]
    assert [job["id"] for job in read("history", "--state", "cancelled")["jobs"]] == [ended[0]]
    assert [job["id"] for job in read("history", "payload.n>1")["jobs"]] == [ended[1]]
    assert ready("history", "--lane", "hello").stdout.count("\n") == 2


def test_history_of_a_stretch_of_time(read: RunJson, ended: list[str]) -> None:
    assert len(read("history", "--from", LONG_AGO, "--to", SOON)["jobs"]) == 2
    assert read("history", "--to", LONG_AGO)["jobs"] == []
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert read("history", "--from", tomorrow)["jobs"] == []


def test_history_goes_page_by_page(ready: Run, read: RunJson, ended: list[str]) -> None:
    page = read("history", "--limit", "1")
    rest = read("history", "--limit", "1", "--after", page["next"])

    assert [job["id"] for job in (*page["jobs"], *rest["jobs"])] == [ended[1], ended[0]]
    assert "add --after" in ready("history", "--limit", "1").stderr


def test_history_refuses_what_it_does_not_know(ready: Run) -> None:
    assert "unknown lane" in ready("history", "--lane", "nowhere", code=3).stderr
    assert "is not a time" in ready("history", "--from", "yesterday", code=2).stderr
    assert "nothing has ended yet" in ready("history").stderr


def test_audit_says_who_did_what_and_why(ready: Run, read: RunJson, ended: list[str]) -> None:
    ready("lanes", "set", "hello", "batch_size=7")
    entries = read("audit")["entries"]

    by_action = {entry["action"]: entry for entry in entries}
    assert entries[0]["action"] == "lane.update"
    assert by_action["cancel"]["job"] == ended[0]
    assert by_action["cancel"]["reason"] == "a mistake"
    assert by_action["cancel"]["actor"].startswith("cli")
    assert "batch_size: 500 → 7" in ready("audit").stdout


def test_audit_names_the_pool(ready: Run) -> None:
    ready("pools", "set", "web", "rate=5/s", "--create")
    ready("pools", "pause", "web", "--reason", "full")
    paused, made = ready("audit", "--action", "pool").stdout.splitlines()

    assert "\tweb: paused: false → true" in paused
    assert "\tweb\t" in made


def test_audit_of_somebody_or_something(ready: Run, read: RunJson, ended: list[str]) -> None:
    assert {entry["actor"] for entry in read("audit", "--actor", "penstock dev")["entries"]} == {
        "penstock dev"
    }
    assert [entry["action"] for entry in read("audit", "--action", "can")["entries"]] == ["cancel"]
    assert all(entry["lane"] == "hello" for entry in read("audit", "--lane", "hello")["entries"])
    assert "unknown lane" in ready("audit", "--lane", "nowhere", code=3).stderr


def test_audit_of_people_alone(read: RunJson, tmp_path: Path) -> None:
    with Client(f"sqlite:///{tmp_path}/penstock.db") as client:
        client.enqueue("hello", {"n": 1})
        claim = client.store.claim(Ask(lane="hello", node=1))
        assert claim is not None
        client.store.settle(claim, {claim.jobs[0].job.arrival: Returned("no token")})

    assert "return" in {entry["action"] for entry in read("audit")["entries"]}
    assert "return" not in {entry["action"] for entry in read("audit", "--people")["entries"]}


def test_audit_goes_page_by_page(read: RunJson, ended: list[str]) -> None:
    everything = [entry["number"] for entry in read("audit")["entries"]]
    page = read("audit", "--limit", "1")
    rest = read("audit", "--after", page["next"])

    assert [entry["number"] for entry in (*page["entries"], *rest["entries"])] == everything
