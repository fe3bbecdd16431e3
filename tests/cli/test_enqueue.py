"""`penstock enqueue`: one job, or a stream of lines."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.domain.job import Enqueued, NewJob
from penstock.domain.states import Verb
from penstock.domain.ulid import parse
from penstock.errors import PenstockError, StoreUnavailable
from penstock.stores.connect import connect
from penstock.stores.sql.store import SqlStore
from tests.cli.conftest import Run, RunJson

STORE = "sqlite:///penstock.db"


def test_it_prints_the_id_and_nothing_else(ready: Run) -> None:
    result = ready("enqueue", "hello", '{"n": 1.10}')

    assert parse(result.stdout.strip())
    assert result.stderr == ""
    assert '"payload":{"n": 1.10}}' in ready("jobs", "show", result.stdout.strip(), "--json").stdout


def test_every_option_reaches_the_job(ready: Run, read: RunJson) -> None:
    id_ = ready(
        *("enqueue", "hello", "[1]", "--group", "g", "--sequence", "5", "--mode", "block_on_error"),
        *("--at", "2030-01-01T00:00:00Z", "--start-by", "2030-01-02T00:00:00+01:00"),
        *("--key", "k", "--tenant", "t", "--target", "http://x/"),
    ).stdout.strip()

    job = read("jobs", "show", id_)

    said = ("group", "sequence", "mode", "run_at", "start_by", "key", "tenant", "target", "payload", "state")
    assert [job[name] for name in said] == [
        *("g", 5, "block_on_error", "2030-01-01T00:00:00Z", "2030-01-01T23:00:00Z", "k", "t", "http://x/"),
        *([1], "pending"),
    ]


def test_plus_five_minutes_is_counted_by_the_store(ready: Run, read: RunJson) -> None:
    before = datetime.now(UTC)
    job = read("jobs", "show", ready("enqueue", "hello", "--at", "+5m").stdout.strip())

    run_at = datetime.fromisoformat(job["run_at"])
    assert timedelta(minutes=5) <= run_at - before <= timedelta(minutes=6)
    assert job["payload"] is None


def test_the_same_key_again_is_the_same_job(ready: Run, read: RunJson) -> None:
    first = ready("enqueue", "hello", "1", "--key", "k").stdout
    again = ready("enqueue", "hello", "1", "--key", "k")

    assert again.stdout == first
    assert "already made that job" in again.stderr
    assert read("enqueue", "hello", "1", "--key", "k") == {"id": first.strip(), "duplicate": True}
    assert "another payload needs another key" in ready("enqueue", "hello", "2", "--key", "k", code=1).stderr


def test_what_is_refused_says_why_and_what_next(ready: Run) -> None:
    assert 'unknown lane "helo"; did you mean hello?' in ready("enqueue", "helo", "1", code=3).stderr
    assert "put it in single quotes" in ready("enqueue", "hello", "{n: 1}", code=2).stderr
    assert "write 2026-11-15T10:00:00Z" in ready("enqueue", "hello", "1", "--at", "soon", code=2).stderr
    assert "--timeout goes with --wait" in ready("enqueue", "hello", "1", "--timeout", "1s", code=2).stderr
    assert "is not a duration" in ready("enqueue", "hello", "1", "--wait", "--timeout", "1", code=2).stderr
    assert "--wait and --key are for one job" in ready("enqueue", "hello", "-", "--key", "k", code=2).stderr
    assert 'unknown lane "x"' in ready("enqueue", "x", "-", code=3, stdin="{}").stderr


def test_without_a_store_it_says_how_to_make_one(run: Run) -> None:
    missing = run("enqueue", "hello", "1", code=4)

    assert "there is no database penstock.db yet: run penstock migrate" in missing.stderr


def test_a_file_without_the_dash_is_not_read_and_it_says_so(
    ready: Run, read: RunJson, tmp_path: Path
) -> None:
    lines = tmp_path / "jobs.ndjson"
    lines.write_text('{"payload": 1}\n')
    with lines.open("rb") as stdin:
        said = ready("enqueue", "hello", stdin=stdin).stderr
        assert "the job has no payload; to enqueue what stdin holds, a job per line, write -" in said
    assert ready("enqueue", "hello", "null").stderr == ""


def test_waiting_ends_with_the_job(ready: Run, read: RunJson) -> None:
    waited = ready("enqueue", "hello", "1", "--key", "a", "--wait", "--timeout", "1ms", code=1)
    assert "still pending" in waited.stderr
    assert "no node is running that would send it; start one: penstock serve" in waited.stderr

    store = connect(STORE)
    store.operate(Verb.SKIP, [waited.stdout.strip()], actor="me", reason="test")
    store.close()

    ended = ready("enqueue", "hello", "1", "--key", "a", "--wait", code=1).stderr
    assert "skipped" in ended
    assert "no node" not in ended
    assert read("enqueue", "hello", "1", "--key", "a", "--wait", code=1)["state"] == "skipped"


def test_each_line_is_a_job_and_a_bad_one_does_not_stop_the_others(ready: Run, read: RunJson) -> None:
    lines = (
        '{"payload":{"a":1.10},"key":"k1"}\n\nnonsense\n[]\n{"lane":"nowhere"}\n{"grup":"g"}\n{"payload":2}'
    )

    result = ready("enqueue", "hello", "-", "--tenant", "t", "--json", code=1, stdin=lines)

    first, *bad, last = map(json.loads, result.stdout.splitlines())
    assert (first["line"], last["line"]) == (1, 7)
    assert bad == [
        {"line": 3, "error": "object: is not JSON: Expecting value at character 1", "field": "object"},
        {
            "line": 4,
            "error": 'object: is no object: write {"payload": …} and other fields of a job',
            "field": "object",
        },
        {
            "line": 5,
            "error": 'unknown lane "nowhere"; penstock lanes list shows those there are',
            "field": "lane",
        },
        {"line": 6, "error": "grup: there is no such field; did you mean group?", "field": "grup"},
    ]
    assert "2 enqueued, 0 already there, 4 refused" in result.stderr
    assert read("jobs", "show", first["id"])["tenant"] == "t"
    assert '"payload":{"a":1.10}' in ready("jobs", "show", first["id"], "--json").stdout


def test_refused_lines_are_shown_but_not_all_of_them(ready: Run) -> None:
    result = ready("enqueue", "hello", "-", code=1, stdin="x\n" * 30 + '{"payload":1}\n')

    assert result.stdout == ""
    assert "line 1: object: is not JSON" in result.stderr
    assert "line 20: " in result.stderr
    assert "--json lists each" in result.stderr
    assert "line 21: " not in result.stderr
    fits = ready("enqueue", "hello", "-", code=1, stdin="x\n" * 20)
    assert "line 20: " in fits.stderr
    assert "--json lists each" not in fits.stderr
    assert "1 enqueued, 0 already there, 30 refused" in result.stderr


def test_it_can_stop_at_an_error(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.lines.MAX_LINES", 2)
    lines = '{"payload":1}\n' * 3 + "x\n" + '{"payload":1}\n' * 3

    result = ready("enqueue", "hello", "-", "--stop-on-error", code=1, stdin=lines)

    assert "3 enqueued, 0 already there, 1 refused" in result.stderr


def test_a_line_that_is_no_text_is_refused(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.lines.MAX_LINE_BYTES", 1000)

    result = ready("enqueue", "hello", "-", code=1, stdin=b'{"key":"\xff"}\n' + b"x" * 5000 + b"\n{}\n")

    assert "line 1: object: is not UTF-8 text (byte 9)" in result.stderr
    assert "line 2: object: is longer than" in result.stderr
    assert "1 enqueued" in result.stderr


def test_progress_is_drawn_when_asked_for(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.progress.SHOW_EVERY_S", 0.0)

    result = ready("enqueue", "hello", "-", "--progress", code=1, stdin='{"payload":1}\nx\n')

    assert "2 lines" in result.stderr
    assert "1 refused" in result.stderr
    assert result.stderr.index("2 lines") < result.stderr.index("1 enqueued, 0 already there")


@pytest.mark.parametrize(
    ("signals", "rest"), [(1, "none after it"), (2, "of the next batch it is not known")]
)
def test_ctrl_c_says_what_is_known(
    ready: Run, monkeypatch: pytest.MonkeyPatch, signals: int, rest: str
) -> None:
    monkeypatch.setattr("penstock.cli.lines.MAX_LINES", 2)
    real, calls = SqlStore.enqueue, []

    def interrupted(store: SqlStore, jobs: list[NewJob]) -> list[Enqueued | PenstockError]:
        answers = real(store, jobs)
        calls.append(len(jobs))
        for _ in range(signals if len(calls) == 2 else 0):
            os.kill(os.getpid(), signal.SIGINT)
        return answers

    monkeypatch.setattr(SqlStore, "enqueue", interrupted)
    result = ready("enqueue", "hello", "-", code=130, stdin='{"payload":1}\n' * 10)

    known = 4 if signals == 1 else 2
    assert f"stopped after line {known}: every line up to there is dealt with, {rest}" in result.stderr


def test_a_store_that_goes_away_leaves_an_exact_account(ready: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.lines.MAX_LINES", 2)
    real, calls = SqlStore.enqueue, []

    def failing(store: SqlStore, jobs: list[NewJob]) -> list[Enqueued | PenstockError]:
        calls.append(len(jobs))
        if len(calls) > 2:
            raise StoreUnavailable("write (gone)")
        return real(store, jobs)

    monkeypatch.setattr(SqlStore, "enqueue", failing)
    result = ready("enqueue", "hello", "-", code=4, stdin='{"payload":1}\n' * 10)

    assert (
        "stopped after line 4: every line up to there is dealt with, of the next batch it is not known"
        in (result.stderr)
    )
    assert "tail -n +5 FILE" in result.stderr
    assert "4 enqueued" in result.stderr
