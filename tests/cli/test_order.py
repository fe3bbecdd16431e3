"""Order that was asked for and is not kept: the command line says so, and shows one truth about groups."""

import json

import pytest

from tests.cli.conftest import Run, RunJson


@pytest.mark.parametrize(
    ("options", "field"), [(["--group", "g"], "group"), (["--sequence", "3"], "sequence")], ids=["g", "s"]
)
def test_a_group_or_sequence_on_an_immediate_job_is_noted(ready: Run, options: list[str], field: str) -> None:
    result = ready("enqueue", "hello", "1", *options)

    assert f"--{field} has no effect on a job of mode immediate" in result.stderr
    assert "penstock lanes set hello mode=block_on_error" in result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_nothing_is_noted_when_the_job_or_its_lane_keeps_order(ready: Run) -> None:
    assert ready("enqueue", "hello", "1", "--group", "g", "--mode", "next_on_error").stderr == ""
    ready("lanes", "set", "hello", "mode=block_on_error")
    assert ready("enqueue", "hello", "1", "--group", "g", "--sequence", "3").stderr == ""
    assert ready("enqueue", "hello", "1", "--sequence", "99", "--mode", "immediate").stderr == ""


def test_a_stream_counts_lines_that_lose_their_order(ready: Run) -> None:
    lines = [{"group": "g"}, {"sequence": 1}, {"group": "g", "mode": "next_on_error"}, {}, {"group": ""}]

    result = ready("enqueue", "hello", "-", stdin="\n".join(map(json.dumps, lines)), code=1)

    assert "2 of them have a group or sequence and mode immediate" in result.stderr


def test_check_warns_of_a_lane_whose_jobs_lose_their_order(ready: Run) -> None:
    ready("enqueue", "hello", "1")
    assert "0 warnings" in ready("check").stderr
    ready("enqueue", "hello", "1", "--group", "g")

    said = ready("check").stdout

    assert "warning: lanes.hello.mode: new jobs have a group and mode immediate" in said


def test_lists_show_the_group_that_the_caller_named(ready: Run, read: RunJson) -> None:
    id_ = ready("enqueue", "hello", "1", "--group", "customer-7").stdout.strip()

    assert "customer-7" in ready("jobs", "list").stdout
    assert read("jobs", "show", id_)["group"] == "customer-7"
    assert [job["id"] for job in read("jobs", "list", 'group~"customer-7"')["jobs"]] == [id_]
    assert read("jobs", "list", "group!=customer-7")["jobs"] == []


@pytest.mark.parametrize("line", ["group:customer-7", "group:customer-7,other"])
def test_a_list_by_group_has_ordered_jobs_and_says_so_when_it_is_empty(
    ready: Run, read: RunJson, line: str
) -> None:
    ready("enqueue", "hello", "1", "--group", "customer-7")
    ordered = ready(
        "enqueue", "hello", "1", "--group", "customer-7", "--mode", "block_on_error"
    ).stdout.strip()

    assert [job["id"] for job in read("jobs", "list", line)["jobs"]] == [ordered]
    assert [job["id"] for job in read("jobs", "list", "--group", "customer-7")["jobs"]] == [ordered]
    said = ready("jobs", "list", "--group", "customer-8").stderr
    assert "no ordered job of group customer-8; did you mean customer-7?" in said
    assert 'the filter group~"customer-8" finds those too' in said
