"""Mistakes that people make: one exit code for each kind, and a sentence that helps."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from penstock.domain.ulid import parse
from tests.cli.conftest import Run, RunJson

# what was typed wrong, what is said; all of it is wrong whatever the store holds
WRONG = [
    (["enqueue", "hello", "{'a': 1}"], "put it in single quotes"),
    (["enqueue", "hello", "1", "--sequence", "-1"], "sequence: write a whole number from 0"),
    (["enqueue", "hello", "1", "--sequence", "abc"], "'abc' is not a valid integer"),
    (["enqueue", "hello", "1", "--group", "o\udcff"], "group"),
    (["enqueue", "no lane", "1"], "lane: 'no lane' is not a lane"),
    (["jobs", "list", "--group", "o\udcff"], "group: holds a lone surrogate"),
    (["jobs", "list", "lnae:hello"], "did you mean lane?"),
    (["jobs", "list", "--after", "x"], "no place to go on from"),
    (["lanes", "set", "hello", "rat=5/s"], "did you mean rate"),
    (["lanes", "set", "hello", "rate=5"], "rate: "),
    (["lanes", "set", "hello", "rate=5/s", "rate=6/s"], "rate is set twice"),
    (["lanes", "set", "hello", "max_payload=99GiB"], "write at most 1GiB"),
    (["lanes", "set", "hello", 'retry={"frist":"1s"}'], "a curve has no frist"),
    (
        ["lanes", "set", "hello", "pool=nope"],
        'unknown pool "nope"; penstock pools list shows those there are; to make it: penstock pools set nope',
    ),
    (["lanes", "set", "hello", "sink=http", "target=ftp://example.com/x"], "is no URL to call"),
    (["lanes", "pause", "hello", "--reason", "r", "--until", "2020-01-01T00:00:00Z"], "is past already"),
    (["pause-all", "--reason", "r", "--until", "2020-01-01T00:00:00Z"], "is past already"),
    (["migrate", "--print", "--json"], "leave out --json"),
    (
        ["lanes", "pause", "hello", "--reason", "o\udcff"],
        "Invalid value for '--reason': holds a lone surrogate",
    ),
    (["lanes", "set", "hello", "target=http://o\udcff"], "target: holds a lone surrogate"),
    (["resume-all", "--reason", " "], "say why"),
    (["groups", "pause", "hello", "o\udcff", "--reason", "r"], "group: holds a lone surrogate"),
    (["groups", "resume", "hello", "o\udcff"], "group: holds a lone surrogate"),
    (["targets", "pause", "http://o\udcff", "--reason", "r"], "say scheme and host"),
    (
        ["nodes", "drain", "abc", "--reason", "r"],
        "'abc' is no node: write the number that `penstock nodes list`",
    ),
    (["nodes", "drain", "9" * 20, "--reason", "r"], "is no node: write the number"),
    (["nodes", "resume", "0"], "'0' is no node: write the number that `penstock nodes list` shows"),
    (["users", "set", "o\udcff", "--role", "viewer"], "letters, digits and"),
    (["users", "password", "o\udcff", "--password-stdin"], "letters, digits and"),
    (["users", "remove", "o\udcff", "--reason", "r", "--yes"], "letters, digits and"),
    (["access", "revoke", "o\udcff", "--reason", "r", "--yes"], "letters, digits and"),
]


@pytest.mark.parametrize(
    ("command", "words"), WRONG, ids=[" ".join(c).encode("ascii", "replace").decode() for c, _ in WRONG]
)
def test_what_is_wrong_in_any_case_ends_with_2(ready: Run, command: list[str], words: str) -> None:
    assert words in ready(*command, code=2).stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (f"retry={'[' * 3_000}", "retry: not a retry schedule: it is nested too deeply"),
        (f"mode={{{'.'.join('a' * 3_000)} = 1}}", "mode: is nested too deeply"),
    ],
    ids=["retry", "mode"],
)
def test_a_setting_that_is_nested_too_deeply_ends_with_2(ready: Run, setting: str, words: str) -> None:
    assert words in ready("lanes", "set", "hello", setting, code=2).stderr


def test_a_file_that_is_nested_too_deeply_ends_with_2(ready: Run, tmp_path: Path) -> None:
    deep = "[" * 3_000
    for value, words in ((f"'{deep}'", "lanes.hello.retry: not a retry schedule"), (deep, "is nested too")):
        (tmp_path / "penstock.toml").write_text(f"[lanes.hello]\nretry = {value}\n")
        for line in ("lanes diff", "lanes apply", "dev --once"):
            assert words in ready(*line.split(), code=2).stderr, line
        assert words in ready("check", code=1).stdout


def test_a_target_whose_port_cannot_be_is_refused_before_there_is_a_job(ready: Run) -> None:
    ready("lanes", "set", "hello", "sink=http", "target=https://shop.example/")
    line, words = (
        '{"target": "http://127.0.0.1:99999/"}\n',
        "target: 'http://127.0.0.1:99999/' has a port that",
    )

    assert words in ready("enqueue", "hello", "1", "--target", "http://127.0.0.1:99999/", code=2).stderr
    assert words in ready("enqueue", "hello", "-", stdin=line, code=1).stderr
    assert words in ready("lanes", "set", "hello", "target=http://127.0.0.1:99999/", code=2).stderr
    assert "no job" in ready("jobs", "list").stderr


def test_advice_fits_the_mistake(ready: Run) -> None:
    said = ready("enqueue", "hello", '{"a":1,"a":2}', code=2).stderr

    assert "name each key once" in said
    assert "single quotes" not in said


@pytest.mark.parametrize("command", [["enqueue", "helo", "1"], ["jobs", "list", "--lane", "helo"]])
def test_a_lane_that_is_not_there_ends_with_3_and_says_where_to_look(ready: Run, command: list[str]) -> None:
    said = ready(*command, code=3).stderr

    assert "did you mean hello?" in said
    assert "penstock lanes list" in said


def test_lines_that_are_no_objects_are_told_so(ready: Run) -> None:
    said = ready("enqueue", "hello", "-", stdin='5\n{"a": "\x01"}\n', code=1).stderr

    assert "line 1: object: is no object" in said
    assert "Invalid control character at character" in said


def test_a_file_that_is_no_database_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.db").write_text("once upon a time " * 100)

    said = run("jobs", "list", code=4).stderr
    assert "penstock.db: file is not a database: it is no SQLite file; name another store (--store," in said
    assert "or move this file away" in said


def test_a_section_is_written_as_it_is_shown(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("lanes = 1\n")

    assert "write [lanes.NAME]" in ready("check", code=1).stdout


def test_help_has_a_short_name(run: Run) -> None:
    assert run("jobs", "list", "-h").stdout == run("jobs", "list", "--help").stdout


class TestWithoutAReader:
    def closed(self, *command: str) -> subprocess.CompletedProcess[str]:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            return subprocess.run(
                [sys.executable, "-m", "penstock", *command],
                stdout=writer,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        finally:
            os.close(writer)

    def test_the_job_is_in_and_its_id_is_told(self, read: RunJson) -> None:
        done = self.closed("enqueue", "hello", "1")

        [job] = read("jobs", "list")["jobs"]
        assert done.returncode == 5
        assert f"the job is in: {parse(job['id'])}, but stdout does not take the answer" in done.stderr

    @pytest.mark.parametrize(
        "command", [["lanes", "list"], ["lanes", "set", "hello", "weight=2", "--json"], ["version"]]
    )
    def test_nothing_is_said_where_somebody_has_seen_enough(self, ready: Run, command: list[str]) -> None:
        ready("lanes", "list")
        done = self.closed(*command)

        assert (done.returncode, done.stderr) == (5, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
class TestWithoutRoomForTheAnswer:
    def full(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        with Path("/dev/full").open("w") as full:
            return subprocess.run(
                [sys.executable, "-m", "penstock", *command],
                input=stdin,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )

    def test_the_job_is_in_and_its_id_is_told(self, read: RunJson) -> None:
        done = self.full("enqueue", "hello", "1")

        [job] = read("jobs", "list")["jobs"]
        assert done.returncode == 5
        [line] = done.stderr.splitlines()
        assert f"the job is in: {parse(job['id'])}, but stdout does not take the answer" in line

    def test_a_stream_says_how_far_it_came(self, read: RunJson) -> None:
        done = self.full("enqueue", "hello", "-", "--json", stdin="{}\n{}\n")

        assert len(read("jobs", "list")["jobs"]) == 2
        assert done.returncode == 5
        assert "stopped after line 2" in done.stderr
        assert "lines up to 2 are dealt with, but stdout does not take the answer" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_list_is_no_traceback(self, ready: Run) -> None:
        ready("enqueue", "hello", "1")
        done = self.full("jobs", "list")

        assert done.returncode == 5
        assert "No space left on device" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_tables_that_have_a_migration_already_are_told_by_name(ready: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as db, db:
        db.execute("DELETE FROM penstock_migrations WHERE number >= 9")

    said = ready("migrate", code=4).stderr

    assert "migration 0009_operations does not fit the tables" in said
    assert "penstock migrate --print --after 8" in said


def test_a_lane_that_was_disabled_stays_so_unless_the_file_says_otherwise(
    ready: Run, read: RunJson, tmp_path: Path
) -> None:
    (tmp_path / "lanes.toml").write_text("[lanes.hello]\nbatch_size = 7\n")
    ready("lanes", "set", "hello", "enabled=false")

    ready("lanes", "apply", "lanes.toml")
    assert read("lanes", "show", "hello")["settings"]["enabled"] is False
    assert json.loads(ready("lanes", "diff", "lanes.toml", "--json").stdout)["changes"][0]["action"] == "none"

    (tmp_path / "lanes.toml").write_text("[lanes.hello]\nbatch_size = 7\nenabled = true\n")
    ready("lanes", "diff", "lanes.toml", code=1)
    ready("lanes", "apply", "lanes.toml")
    assert read("lanes", "show", "hello")["settings"]["enabled"] is True


def test_diff_keeps_1_for_a_difference(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lanes.toml").write_text("[lanes.hello]\n")

    run("lanes", "diff", "lanes.toml", code=4)
    (tmp_path / "penstock.db").touch()
    run("lanes", "diff", "lanes.toml", code=4)
    run("dev", "--once")
    run("lanes", "diff", "lanes.toml", code=0)
    (tmp_path / "lanes.toml").write_text("[pools.web]\nrat = 1\n")
    run("lanes", "diff", "lanes.toml", code=2)
    (tmp_path / "lanes.toml").write_text("port = 7071\n")
    run("lanes", "diff", "lanes.toml", code=2)
