"""`penstock dev` as a user starts it."""

import fcntl
import json
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock import Client
from penstock.cli.main import main
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from tests.cli.conftest import Run


def run(*args: str) -> str:
    result = CliRunner().invoke(main, ["dev", "--once", *args])
    assert result.exit_code == 0, result.output
    return result.output


def test_it_makes_the_store_and_a_first_lane(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/p.db"

    assert "created" in run("--store", url)
    again = run("--store", url)

    assert "up to date" in again
    assert "lanes  hello" in again
    assert "none yet" in again


def test_it_leaves_the_lanes_of_others_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    run("--store", url)
    with sqlite3.connect(tmp_path / "p.db") as db:
        db.execute("DELETE FROM penstock_lanes")
        db.execute("INSERT INTO penstock_lanes (name) VALUES ('mine')")
    db.close()

    assert "lanes  mine" in run("--store", url)


def test_it_names_the_next_three_commands_and_they_work(ready: Run) -> None:
    said = ready("dev", "--once").stdout
    commands = [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("  penstock ")]

    assert [command[0] for command in commands] == ["enqueue", "jobs", "top"]
    for command in commands[:2]:
        ready(*command)
    ready("top", "--once")


def test_the_next_commands_name_a_store_that_was_given(ready: Run) -> None:
    said = ready("dev", "--once", "--store", "sqlite:///a b.db").stdout

    assert "penstock jobs list --store 'sqlite:///a b.db'" in said


def test_the_next_commands_go_to_no_place_of_the_environment(
    ready: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PROFILE", "prod")
    monkeypatch.setenv("PENSTOCK_URL", "https://penstock.example")

    def unset(*arguments: str) -> list[str]:
        said = ready("dev", "--once", *arguments).stdout
        return [line.split()[1] for line in said.splitlines() if line.startswith("  unset ")]

    assert unset() == ["PENSTOCK_URL", "PENSTOCK_PROFILE"]
    assert unset("--store", "sqlite:///other.db") == []
    monkeypatch.setenv("PENSTOCK_STORE", "sqlite:///penstock.db")
    assert unset() == ["PENSTOCK_URL"]  # which alone goes before it
    monkeypatch.delenv("PENSTOCK_URL")
    ready("jobs", "list")


def test_it_applies_the_lanes_of_its_file(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('[pools.web]\nrate = "5/s"\n[lanes.orders]\npool = "web"\n')

    said = ready("dev", "--once", "--config", "my.toml").stdout

    assert "lanes  hello, orders" in said
    assert "penstock jobs list --config my.toml" in said
    (tmp_path / "my.toml").write_text("[lanes.orders]\nrat = 1\n")
    assert "my.toml:2: lanes.orders.rat" in ready("dev", "--once", "--config", "my.toml", code=2).stderr


@contextmanager
def running(*args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `penstock dev` until it says where its page is; give the process and the address."""
    command = [sys.executable, "-m", "penstock", "dev", "--port", "0", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = ""
        while "page" not in line:
            line = process.stdout.readline()
            assert line, process.stderr
        assert [process.stdout.readline(), process.stdout.readline()] == [
            "\n",
            "Next, in another terminal:\n",
        ]
        try:
            yield process, line.split()[1]
        finally:
            process.kill()


def test_it_dispatches_and_serves_its_page_until_it_is_told_to_stop(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    with running("--store", url) as (process, address):
        with Client(url) as client:
            job = client.enqueue("hello", {"n": 1})
            assert client.wait(job.id, timedelta(seconds=15)).state is JobState.SUCCEEDED
        with urllib.request.urlopen(f"{address}/api/jobs/{job.id}", timeout=10) as answer:  # noqa: S310
            assert json.load(answer)["state"] == "succeeded"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)

    assert process.returncode == 0
    assert job.id in out  # the console is where the lane `hello` goes
    assert out.strip().endswith("stopped")


def test_who_waited_is_shown_the_page_of_the_node_that_knows_the_job(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    with running("--store", url) as (_, address), running("--store", f"{url}2") as (_, other):
        monkeypatch.setenv("PENSTOCK_STORE", url)
        monkeypatch.setenv("PENSTOCK_PORT", address.rpartition(":")[2])
        ours = run("enqueue", "hello", "--wait", "--timeout", "15s")
        monkeypatch.setenv("PENSTOCK_PORT", other.rpartition(":")[2])
        theirs = run("enqueue", "hello", "--wait", "--timeout", "15s")

    assert f", or {address}/jobs/{ours.stdout.strip()}" in ours.stderr
    assert "penstock jobs timeline" in theirs.stderr
    assert "http://" not in theirs.stderr


def test_the_demonstration_flows_within_seconds(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    with running("--demo", "--store", url) as (process, _), Client(url) as client:
        deadline = time.monotonic() + 20
        done: dict[str, int] = {}
        while not {"orders", "sms"} <= done.keys() and time.monotonic() < deadline:
            done = {lane: n for (lane, state), n in client.counts().items() if state is JobState.SUCCEEDED}
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)

    assert {"orders", "sms"} <= done.keys()
    assert process.returncode == 0


def test_lanes_of_an_earlier_demonstration_are_moved_before_anything_is_sent(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    run("--store", url)
    with Client(url) as client:
        nobody = lane("reports", sink="http", target="http://127.0.0.1:1/reports")
        client.store.put_lane(nobody, actor="an earlier run")
        waiting = client.enqueue("reports", {"hour": "10:00"})
        with running("--demo", "--store", url) as (process, _):
            assert client.wait(waiting.id, timedelta(seconds=30)).state is JobState.SUCCEEDED
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
        assert client.timeline(waiting.id).attempts == []  # those that failed


def test_a_second_one_on_the_same_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "p.db-dev").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = CliRunner().invoke(main, ["dev", "--store", f"sqlite:///{tmp_path}/p.db", "--port", "0"])

    assert refused.exit_code == 1
    assert "another penstock dev works on" in refused.output
    assert not (tmp_path / "p.db").exists()


def test_where_its_port_is_taken_it_names_no_next_commands(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        said = run("dev", "--store", f"sqlite:///{tmp_path}/p.db", "--port", port, code=1).output

    assert f"port {port}" in said
    assert "Next" not in said


def test_the_next_commands_are_called_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/penstock", "dev"])
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "\n  .venv/bin/penstock jobs list" in run("--store", f"sqlite:///{tmp_path}/p.db")


def test_the_lanes_of_the_demonstration_are_named_before_it_makes_them(tmp_path: Path) -> None:
    said = run("--demo", "--store", f"sqlite:///{tmp_path}/p.db")

    assert "orders" in next(line for line in said.splitlines() if line.strip().startswith("lanes"))
