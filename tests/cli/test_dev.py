"""`penstock dev` as a user starts it."""

import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from penstock.cli.main import main
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

    assert [command[0] for command in commands] == ["enqueue", "jobs", "lanes"]
    for command in commands:
        ready(*command)


def test_the_next_commands_name_a_store_that_was_given(ready: Run) -> None:
    said = ready("dev", "--once", "--store", "sqlite:///a b.db").stdout

    assert "penstock jobs list --store 'sqlite:///a b.db'" in said


def test_it_applies_the_lanes_of_its_file(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('[pools.web]\nrate = "5/s"\n[lanes.orders]\npool = "web"\n')

    said = ready("dev", "--once", "--config", "my.toml").stdout

    assert "lanes  hello, orders" in said
    assert "penstock jobs list --config my.toml" in said
    (tmp_path / "my.toml").write_text("[lanes.orders]\nrat = 1\n")
    assert "my.toml:2: lanes.orders.rat" in ready("dev", "--once", "--config", "my.toml", code=2).stderr


def test_it_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "dev", "--store", f"sqlite:///{tmp_path}/p.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        while "none yet" not in (lines[-1] if lines else ""):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        process.send_signal(signal.SIGTERM)

        assert process.communicate(timeout=20)[0].strip() == "stopped"
    assert process.returncode == 0


def test_a_store_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["dev", "--once", "--store", f"sqlite:///{tmp_path}/missing/p.db"])

    assert result.exit_code == 4
    assert "unable to open" in result.output
