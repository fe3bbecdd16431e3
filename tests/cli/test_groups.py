"""`penstock groups`, `jobs explain`, `pause-all`: what is stuck, why, and what to do about it."""

import json

import pytest

from penstock.domain.outcomes import Dead
from penstock.domain.states import Reason
from penstock.ports.store import Ask
from penstock.stores.connect import connect
from tests.cli.conftest import Run, RunJson

STORE = "sqlite:///penstock.db"


def enqueue(run: Run, group: str, *more: str) -> str:
    order = ("--group", group, "--mode", "block_on_error")
    return run("enqueue", "hello", "1", *order, *more).stdout.strip()


def bury(error: str = "500 from /hook") -> None:
    """Have the heads of all groups die."""
    store = connect(STORE)
    claim = store.claim_groups(Ask(lane="hello", node=store.register_node("test")))
    assert claim is not None
    store.settle(claim, {each.job.arrival: Dead(Reason.EXHAUSTED, error) for each in claim.jobs})
    store.close()


@pytest.fixture
def stuck(ready: Run) -> tuple[str, str]:
    """Return a dead job and the one that waits for it, of group A-1."""
    dead = enqueue(ready, "A-1")
    bury()
    return dead, enqueue(ready, "A-1")


def test_groups_are_listed_with_what_they_are_doing(
    ready: Run, read: RunJson, stuck: tuple[str, str]
) -> None:
    dead, behind = stuck
    free = enqueue(ready, "B-2", "--at", "+1h")

    found = read("groups", "list")

    assert found["next"] is None
    blocked, waiting = found["groups"]
    assert blocked.pop("since")
    assert blocked == {
        "lane": "hello", "group": "A-1", "state": "blocked", "head": behind, "blocker": dead, "behind": 1,
        "next_at": None, "until": None,
    }  # fmt: skip
    assert (waiting["group"], waiting["state"], waiting["head"]) == ("B-2", "waiting", free)
    lines = [line.split("\t") for line in ready("groups", "list").stdout.splitlines()]
    assert [line[:3] for line in lines] == [["hello", "A-1", "blocked"], ["hello", "B-2", "waiting"]]
    assert lines[0][4:] == ["1", behind, dead, "-"]


def test_blocked_groups_are_listed_alone(ready: Run, read: RunJson, stuck: tuple[str, str]) -> None:
    enqueue(ready, "B-2")

    assert [row["group"] for row in read("groups", "blocked")["groups"]] == ["A-1"]
    assert ready("groups", "blocked").stdout.split()[-1] == stuck[0]
    assert [row["group"] for row in read("groups", "blocked", "--lane", "hello", "--all")["groups"]] == [
        "A-1"
    ]
    assert "did you mean hello?" in ready("groups", "blocked", "--lane", "helo", code=3).stderr


def test_a_list_of_groups_goes_on_where_it_ended(ready: Run, read: RunJson) -> None:
    for n in range(5):
        enqueue(ready, f"g{n}")

    page = read("groups", "list", "--limit", "2")
    rest = read("groups", "list", "--limit", "2", "--after", page["next"])

    assert [row["group"] for row in page["groups"] + rest["groups"]] == ["g0", "g1", "g2", "g3"]
    assert len(read("groups", "list", "--all")["groups"]) == 5
    assert f"add --after {page['next']}" in ready("groups", "list", "--limit", "2").stderr
    assert "no place to go on from" in ready("groups", "list", "--after", "xyz", code=2).stderr


def test_an_empty_list_says_so(ready: Run) -> None:
    assert ready("groups", "list").stderr == "no ordered group has jobs\n"
    assert ready("groups", "blocked").stderr == "no group is blocked\n"


def test_skip_passes_over_the_job_that_blocks(ready: Run, read: RunJson, stuck: tuple[str, str]) -> None:
    dead, _ = stuck

    done = ready("groups", "skip", "hello", "A-1", "--reason", "gone", "--yes")

    assert done.stdout == f"{dead}\tskipped\n"
    assert read("jobs", "show", dead)["state"] == "skipped"
    refused = ready("groups", "skip", "hello", "A-1", "--reason", "gone", "--yes", code=1)
    assert 'group "A-1" is not blocked, it is waiting' in refused.stderr


def test_retry_sends_the_job_that_blocks_again(ready: Run, read: RunJson, stuck: tuple[str, str]) -> None:
    dead, _ = stuck

    [done] = read("groups", "retry", "hello", "A-1", "--reason", "fixed")["results"]

    assert (done["id"], done["state"]) == (dead, "pending")
    assert 'no group "A-2"' in ready("groups", "retry", "hello", "A-2", "--reason", "x", code=3).stderr
    assert "did you mean hello?" in ready("groups", "retry", "helo", "A-1", "--reason", "x", code=3).stderr


def test_nothing_is_done_when_one_group_is_not_blocked(
    ready: Run, read: RunJson, stuck: tuple[str, str]
) -> None:
    dead, _ = stuck
    enqueue(ready, "B-2")

    ready("groups", "skip", "hello", "A-1", "B-2", "--reason", "x", "--yes", code=1)

    assert read("jobs", "show", dead)["state"] == "dead"


def test_explain_names_the_job_in_the_way(ready: Run, read: RunJson, stuck: tuple[str, str]) -> None:
    dead, behind = stuck

    found = read("jobs", "explain", behind)
    died = read("jobs", "show", dead)["finished_at"]

    text = f"waits for job {dead} of group A-1, which is dead (exhausted: 500 from /hook): "
    assert found == {
        "state": "pending",
        "gate": "group",
        "text": f"{text}retry, skip or cancel it",
        "since": died,
        "until": None,
        "by": None,
        "job": dead,
        "eta": None,
    }
    shown = dict(line.split("\t") for line in ready("jobs", "explain", behind).stdout.splitlines())
    assert died.startswith(shown.pop("since").removesuffix("Z"))
    assert shown == {name: value for name, value in found.items() if value is not None and name != "since"}
    assert 'no job "nonsense"' in ready("jobs", "explain", "nonsense", code=3).stderr


def test_a_job_that_nobody_sends_says_what_to_start(ready: Run, read: RunJson) -> None:
    found = read("jobs", "explain", ready("enqueue", "hello", "1").stdout.strip())

    assert found["gate"] == "lane"
    assert found["text"] == 'no running node serves lane "hello": start penstock serve'


def test_everything_is_paused_and_let_go(ready: Run, read: RunJson) -> None:
    job = ready("enqueue", "hello", "1").stdout.strip()

    said = ready("pause-all", "--reason", "upgrade", "--until", "+1h").stderr
    assert said.startswith("all lanes are paused until ")
    found = read("jobs", "explain", job)
    assert found["gate"] == "store"
    assert found["by"].startswith("cli")
    assert found["until"] == found["eta"]

    pause = read("pause-all", "--reason", "longer")["pause"]
    assert (pause["reason"], pause["until"]) == ("longer", None)
    assert ready("resume-all").stderr == "all lanes go on\n"
    assert ready("resume-all").stderr == "the store was not paused\n"
    assert json.loads(ready("resume-all", "--json").stdout) == {"pause": None}
    assert read("jobs", "explain", job)["gate"] == "lane"


def test_a_group_is_paused_and_resumed(ready: Run, read: RunJson) -> None:
    enqueue(ready, "A-1")
    why = ("--reason", "they move", "--until", "+1h")
    assert 'group "A-1" is paused until' in ready("groups", "pause", "hello", "A-1", *why).stderr
    assert read("groups", "list")["groups"][0]["state"] == "paused"
    assert read("groups", "resume", "hello", "A-1")["paused"] is False
    assert read("groups", "list")["groups"][0]["state"] == "waiting"
