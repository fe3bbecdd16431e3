"""`penstock dev` as a user starts it."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from penstock.cli.main import main


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
