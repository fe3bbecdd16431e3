"""Dead letters by cause."""

import json
from typing import Any

import pytest

from penstock import Client
from penstock.domain.outcomes import Dead
from penstock.ports.store import Ask
from tests.cli.conftest import Run, RunJson

ERRORS = ["HTTP 503 from http://a/1", "HTTP 503 from http://a/2", "no such order 17", "no such order 18"]
WHY = ("--reason", "fixed")


@pytest.fixture
def buried(ready: Run) -> list[str]:
    """Return the ids of four dead letters with two causes, in the order of ERRORS."""
    with Client("sqlite:///penstock.db") as client:
        ids = []
        for error in ERRORS:
            ids.append(client.enqueue("hello", {"n": len(ids)}).id)
            claim = client.store.claim(Ask(lane="hello", node=1))
            assert claim is not None
            client.store.settle(claim, {claim.jobs[0].job.arrival: Dead("permanent", error)})
        return ids


def causes(read: RunJson) -> dict[str, Any]:
    return {cause["error"]: cause for cause in read("dead", "list")["causes"]}


def test_a_list_has_one_line_per_cause(ready: Run, read: RunJson, buried: list[str]) -> None:
    found = causes(read)

    assert {error: cause["jobs"] for error, cause in found.items()} == {
        "HTTP 503 from <url>": 2,
        "no such order N": 2,
    }
    assert found["no such order N"]["sample"] == buried[3]
    assert found["no such order N"]["lane"] == "hello"
    assert "no such order N" in ready("dead", "list", "--lane", "hello").stdout
    assert ready("dead", "list", "error:503").stdout.count("\n") == 1


def test_a_cause_shows_its_jobs(ready: Run, read: RunJson, buried: list[str]) -> None:
    cause = causes(read)["no such order N"]["fingerprint"]

    assert [job["id"] for job in read("dead", "show", cause)["jobs"]] == [buried[3], buried[2]]
    assert "no such order 17" in ready("dead", "show", cause).stdout
    assert "penstock dead list" in ready("dead", "show", "000000000000", code=3).stderr


def test_a_cause_is_sent_again_and_the_others_stay(ready: Run, read: RunJson, buried: list[str]) -> None:
    cause = causes(read)["no such order N"]["fingerprint"]

    assert read("dead", "retry", cause, *WHY, "--dry-run") == {"jobs": 2, "groups": 0}
    assert "say --yes" in ready("dead", "retry", cause, *WHY, code=2).stderr
    results = read("dead", "retry", cause, *WHY, "--yes")["results"]

    assert [(result["id"], result["state"]) for result in results] == [
        (buried[2], "pending"),
        (buried[3], "pending"),
    ]
    assert list(causes(read)) == ["HTTP 503 from <url>"]
    assert "no dead letter has the cause" in ready("dead", "retry", cause, *WHY, "--yes", code=3).stderr


def test_no_dead_letters_is_no_error(ready: Run) -> None:
    result = ready("dead", "list")

    assert (result.stdout, result.stderr) == ("", "no dead letters\n")
    assert json.loads(ready("dead", "list", "--json").stdout) == {"causes": [], "more": False}
    assert 'unknown lane "helo"; did you mean hello' in ready("dead", "list", "lane:helo").stderr
