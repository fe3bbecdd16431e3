"""`penstock jobs`: looking at jobs and acting on them."""

import json

import pytest

from penstock.domain.job import Claim
from penstock.domain.outcomes import Dead
from penstock.domain.states import Reason
from penstock.ports.store import Ask
from penstock.stores.connect import connect
from tests.cli.conftest import Run, RunJson

STORE = "sqlite:///penstock.db"


def enqueue(run: Run, *arguments: str) -> str:
    return run("enqueue", "hello", *arguments).stdout.strip()


def claim() -> Claim:
    store = connect(STORE)
    claim = store.claim(Ask(lane="hello", node=store.register_node("test")))
    store.close()
    assert claim is not None
    return claim


def kill(error: str = "boom") -> None:
    store = connect(STORE)
    claim = store.claim(Ask(lane="hello", node=store.register_node("test")))
    assert claim is not None
    store.settle(claim, {each.job.arrival: Dead(Reason.PERMANENT, error) for each in claim.jobs})
    store.close()


def test_the_list_is_newest_first_and_can_be_filtered(ready: Run, read: RunJson) -> None:
    first = enqueue(ready, "1", "--tenant", "a")
    second = enqueue(ready, "2", "--group", "g", "--mode", "block_on_error", "--key", "k")
    third = enqueue(ready, "3", "--at", "+1h")

    def ids(*arguments: str) -> list[str]:
        return [job["id"] for job in read("jobs", "list", *arguments)["jobs"]]

    assert ids() == [third, second, first]
    assert ids("--lane", "hello", "--state", "pending", "--state", "dead") == [third, second, first]
    assert ids("--tenant", "a") == [first]
    assert ids("--group", "g") == [second]
    assert ids("--key", "k") == [second]
    assert ids("--due") == [first, second, third]
    assert ids("--state", "dead") == []
    assert "did you mean hello?" in ready("jobs", "list", "--lane", "helo", code=3).stderr


@pytest.mark.parametrize("options", ["list --json", "export --format csv"])
def test_of_a_list_that_is_refused_nothing_is_printed(ready: Run, options: str) -> None:
    assert ready("jobs", *options.split(), "lnae:x", code=2).stdout == ""


def test_a_list_goes_on_where_it_ended(ready: Run, read: RunJson) -> None:
    made = [enqueue(ready, str(n)) for n in range(5)][::-1]

    page = read("jobs", "list", "--limit", "2")
    rest = read("jobs", "list", "--limit", "2", "--after", page["next"])

    assert [job["id"] for job in page["jobs"] + rest["jobs"]] == made[:4]
    assert "payload" not in page["jobs"][0]
    assert read("jobs", "list", "--limit", "1", "--payloads")["jobs"][0]["payload"] == 4
    whole = read("jobs", "list", "--all")
    assert ([job["id"] for job in whole["jobs"]], whole["next"]) == (made, None)
    assert f"add --after {page['next']}" in ready("jobs", "list", "--limit", "2").stderr
    assert "no place to go on from" in ready("jobs", "list", "--after", "xyz", code=2).stderr


def test_a_list_is_read_page_by_page(ready: Run, read: RunJson, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.pages.MAX_PAGE", 2)
    made = [enqueue(ready, str(n)) for n in range(5)][::-1]

    assert [job["id"] for job in read("jobs", "list", "--all")["jobs"]] == made
    assert [job["id"] for job in read("jobs", "list", "--limit", "3")["jobs"]] == made[:3]
    lines = ready("jobs", "list", "--all").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == made


def test_in_a_pipe_a_job_is_one_line_of_cells(ready: Run, read: RunJson) -> None:
    id_ = enqueue(ready, "1")
    kill("line\nbreak")

    [line] = ready("jobs", "list").stdout.splitlines()

    cells = line.split("\t")
    assert [cells[0], cells[1], cells[2], cells[5]] == [id_, "dead", "hello", "1"]
    assert cells[6] == r"permanent: line\nbreak"
    assert ready("jobs", "list", "--state", "held").stderr.startswith("no job")
    assert ready("jobs", "list", "lane:helo").stderr.startswith('unknown lane "helo"; did you mean hello?')
    assert read("jobs", "list", "lane:helo")["hint"].startswith('unknown lane "helo"')


def test_show_prints_what_is_known_or_says_there_is_no_such_job(ready: Run) -> None:
    id_ = enqueue(ready, '{"a": [1, 2]}', "--key", "k")

    shown = dict(line.split("\t") for line in ready("jobs", "show", id_).stdout.splitlines())

    assert (shown["id"], shown["state"], shown["payload"]) == (id_, "pending", '{"a": [1, 2]}')
    assert "tenant" not in shown
    for unknown in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "nonsense"):
        assert f'no job "{unknown}"' in ready("jobs", "show", unknown, code=3).stderr


def test_the_timeline_tells_what_happened(ready: Run, read: RunJson) -> None:
    id_ = enqueue(ready, "1")
    ready("jobs", "hold", id_, "--reason", "look first")
    ready("jobs", "release", id_, "--reason", "fine")
    kill()

    events = read("jobs", "timeline", id_)["events"]
    assert events[0]["event"] == "enqueued"
    assert [event["reason"] for event in events if event["event"] in {"hold", "release"}] == [
        "look first",
        "fine",
    ]
    assert events[-1]["event"] == "dead"
    rows = [line.split("\t") for line in ready("jobs", "timeline", id_).stdout.splitlines()]
    assert [row[1] for row in rows] == [event["event"] for event in events]
    assert "reason=look first" in ready("jobs", "timeline", id_).stdout


@pytest.mark.parametrize(
    ("verb", "options", "state"),
    [
        ("cancel", ["--yes"], "cancelled"),
        ("skip", ["--yes"], "skipped"),
        ("hold", [], "held"),
        ("retry", [], "pending"),
    ],
)
def test_a_verb_says_what_became_of_the_job(ready: Run, verb: str, options: list[str], state: str) -> None:
    id_ = enqueue(ready, "1", "--at", "+1h")

    result = ready("jobs", verb, id_, "--reason", "because", *options)

    assert result.stdout == f"{id_}\t{state}\n"
    assert "reason" in ready("jobs", verb, id_, *options, code=2).stderr


def test_what_cannot_be_done_is_refused_with_the_state(ready: Run, read: RunJson) -> None:
    waiting, held = enqueue(ready, "1"), enqueue(ready, "2")
    ready("jobs", "hold", held, "--reason", "x")

    result = read("jobs", "release", waiting, held, "--reason", "x", code=1)

    assert [(done["effect"], done["state"]) for done in result["results"]] == [
        ("refused", "pending"),
        ("now", "pending"),
    ]
    assert "refused: " in ready("jobs", "release", waiting, "--reason", "x", code=1).stdout
    unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert f'no job "{unknown}"' in ready("jobs", "hold", unknown, "--reason", "x", code=3).stderr
    assert (
        ready("jobs", "hold", unknown, waiting, "--reason", "x", code=3)
        .stdout.splitlines()[1]
        .endswith("held")
    )


def test_a_job_that_is_being_sent_is_asked_for(ready: Run) -> None:
    id_ = enqueue(ready, "1")
    claim()

    assert "requested: it is claimed" in ready("jobs", "cancel", id_, "--reason", "x", "--yes").stdout
    assert json.loads(ready("jobs", "show", id_, "--json").stdout)["cancel_requested"] is True


def test_what_cannot_be_undone_asks_first(ready: Run) -> None:
    id_ = enqueue(ready, "1")

    for verb in (["cancel"], ["skip"], ["settle", "--as", "dead"]):
        assert "say --yes" in ready("jobs", *verb, id_, "--reason", "x", code=2).stderr


def test_a_dead_job_is_settled_or_sent_again(ready: Run) -> None:
    first, second = enqueue(ready, "1"), enqueue(ready, "2")
    kill()

    settled = ready("jobs", "settle", first, "--as", "succeeded", "--reason", "done by hand", "--yes")
    assert settled.stdout == f"{first}\tsucceeded\n"
    assert ready("jobs", "retry", second, "--reason", "fixed").stdout == f"{second}\tpending\n"


def test_a_job_is_edited_and_its_old_payload_is_kept(ready: Run, read: RunJson) -> None:
    id_ = enqueue(ready, "1", "--target", "http://old/")

    ready("jobs", "edit", id_, "--payload", '{"n": 2}', "--at", "2030-01-01T00:00:00Z", "--reason", "typo")
    job = read("jobs", "show", id_)
    assert (job["payload"], job["run_at"], job["target"]) == ({"n": 2}, "2030-01-01T00:00:00Z", "http://old/")

    ready("jobs", "edit", id_, "--payload", "-", "--target", "", "--reason", "again", stdin="[3]")
    assert (read("jobs", "show", id_)["payload"], read("jobs", "show", id_)["target"]) == ([3], None)
    assert "say what to change" in ready("jobs", "edit", id_, "--reason", "x", code=2).stderr
    assert "payload: " in ready("jobs", "edit", id_, "--payload", "{x", "--reason", "x", code=2).stderr


def test_an_ended_job_is_edited_together_with_its_replay(ready: Run) -> None:
    id_ = enqueue(ready, "1")
    kill()

    refused = ready("jobs", "edit", id_, "--payload", "2", "--reason", "x", code=1)
    assert "ask for a replay" in refused.stdout
    assert (
        ready("jobs", "edit", id_, "--payload", "2", "--replay", "--reason", "x").stdout
        == f"{id_}\tpending\n"
    )


def test_states_may_be_written_with_commas_as_the_api_takes_them(ready: Run) -> None:
    pending = json.loads(ready("enqueue", "hello", "{}", "--json").stdout)["id"]
    ready("jobs", "hold", json.loads(ready("enqueue", "hello", "{}", "--json").stdout)["id"], "--reason", "x")

    both = json.loads(ready("jobs", "list", "--state", "pending,held", "--json").stdout)["jobs"]
    assert {job["state"] for job in both} == {"pending", "held"}
    one = json.loads(ready("jobs", "list", "--state", "pending", "--state", "dead", "--json").stdout)["jobs"]
    assert [job["id"] for job in one] == [pending]
    assert "did you mean held" in ready("jobs", "list", "--state", "helt", code=2).stderr
