"""One verb on all jobs that a filter finds, carried out by a node that leads."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from penstock import Client
from penstock.domain.outcomes import Dead
from penstock.ports.store import Ask
from tests.chaos.processes import PENSTOCK, Process, start
from tests.cli.conftest import Run, RunJson

WHY = ("--reason", "the shop is back")


@pytest.fixture
def dead(ready: Run) -> list[str]:
    """Return the ids of three dead letters, two of which timed out."""
    with Client("sqlite:///penstock.db") as client:
        ids = []
        for error in ("timeout", "timeout", "gone"):
            ids.append(client.enqueue("hello", {"n": len(ids)}).id)
            claim = client.store.claim(Ask(lane="hello", node=1))
            assert claim is not None
            client.store.settle(claim, {claim.jobs[0].job.arrival: Dead("permanent", error)})
        return ids


@pytest.fixture
def node(ready: Run, tmp_path) -> Iterator[Process]:  # noqa: ANN001
    process = start("node", tmp_path, *PENSTOCK, "serve", "--port", "0")
    yield process
    process.kill()


def test_a_dry_run_counts_and_changes_nothing(ready: Run, read: RunJson, dead: list[str]) -> None:
    found = read("replay", "error:timeout", *WHY, "--dry-run")

    assert (found["matched"], found["lanes"], found["states"]) == (2, {"hello": 2}, {"dead": 2})
    assert "2 jobs (2 dead; hello: 2)" in ready("replay", "error:timeout", *WHY, "--dry-run").stdout
    assert len(read("history")["jobs"]) == 3


def test_nobody_is_surprised(ready: Run, dead: list[str]) -> None:
    asked = ready("replay", "error:timeout", *WHY, code=2)

    assert "2 jobs" in asked.stderr
    assert "say --yes" in asked.stderr
    assert "nothing to do" in ready("replay", "error:nothing-like-it", *WHY, "--yes").stderr
    assert "did you mean error" in ready("replay", "eror:timeout", *WHY, "--yes", code=2).stderr


def test_a_replay_is_watched_to_its_end(read: RunJson, dead: list[str], node: Process) -> None:
    ended = read("replay", "error:timeout", *WHY, "--yes")

    assert (ended["state"], ended["matched"], ended["done"]) == ("done", 2, 2)
    with Client("sqlite:///penstock.db") as client:
        assert {client.wait(job_id).state.label for job_id in dead[:2]} == {"succeeded"}
        assert client.get(dead[2]).state.label == "dead"


def test_dead_letters_alone_are_replayed(ready: Run, read: RunJson, dead: list[str]) -> None:
    with Client("sqlite:///penstock.db") as client:
        client.cancel(dead[2], reason="not wanted")  # a replay that names it would send it again

    both = "state:dead,cancelled"
    assert read("replay", both, *WHY, "--dry-run")["matched"] == 3
    found = read("dead", "replay", both, *WHY, "--dry-run")
    assert (found["verb"], found["states"], found["ids"]) == ("retry", {"dead": 2}, [dead[1], dead[0]])
    assert "no state is left" in ready("dead", "replay", "state:cancelled", *WHY, "--yes", code=2).stderr
    assert "say --yes" in ready("dead", "replay", "error:timeout", *WHY, code=2).stderr
    begun = read(
        "dead", "replay", "error:timeout", *WHY, "--yes", "--no-wait", "--rate", "5", "--out-of-order"
    )
    assert (begun["verb"], begun["rate"], begun["force"]) == ("retry", 5, True)


def test_dead_letters_are_discarded_and_nothing_else(read: RunJson, dead: list[str], node: Process) -> None:
    with Client("sqlite:///penstock.db") as client:
        later = client.enqueue("hello", {}, run_at=client.store.now() + timedelta(days=1)).id

        assert read("dead", "discard", "lane:hello", *WHY, "--dry-run")["states"] == {"dead": 3}
        ended = read("dead", "discard", "error:timeout", *WHY, "--yes")

        assert (ended["verb"], ended["state"], ended["done"]) == ("skip", "done", 2)
        states = [client.get(one).state.label for one in (*dead, later)]
        assert states == ["skipped", "skipped", "dead", "pending"]


def test_operations_are_listed_shown_and_stopped(ready: Run, read: RunJson, dead: list[str]) -> None:
    begun = read("bulk", "skip", "state:dead", *WHY, "--yes", "--no-wait", "--rate", "100")
    [listed] = read("operations", "list")["operations"]

    assert (listed["id"], listed["rate"]) == (begun["id"], 100)
    assert "collecting" in ready("operations", "list").stdout
    assert read("operations", "show", begun["id"])["reason"] == "the shop is back"
    assert read("operations", "stop", begun["id"], "--reason", "a mistake")["state"] == "stopped"
    assert "state" in ready("operations", "show", begun["id"]).stdout
    assert "operation" in ready("operations", "show", "01M7FVNKF8SZX9KDE7ZWENQYAQ", code=3).stderr
