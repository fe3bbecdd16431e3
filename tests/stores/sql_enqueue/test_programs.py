"""Jobs from programs that know nothing of Penstock: psql and the sqlite3 shell."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.sql_enqueue.door import Door

PAYLOAD = '{"text": "its a \\"ü\\" 🚰\\n",  "n": 1.0}'
SCRIPT = """
BEGIN;
INSERT INTO {view} (lane, payload, key, message_group, mode, run_at)
VALUES ('{lane}', '{payload}', 'k', 'g', 'block_on_error', '2026-11-15T10:00:00+02:00');
INSERT INTO {view} (lane, payload, key) VALUES ('{lane}', '{payload}', 'k');
INSERT INTO {view} (lane, payload, message_group, mode) VALUES ('{lane}', '2', 'g', 'block_on_error');
COMMIT;
"""


def run(door: Door, script: str) -> str:
    """Have the database's own shell run the script; return what it complains about."""
    if door.place.server is not None:
        command = [psql(door.place.server.bin_dir), "-q", "-v", "ON_ERROR_STOP=1", door.place.url]
    elif (shell := shutil.which("sqlite3")) is not None:
        command = [shell, "-bail", door.place.url]
    else:
        return run_by_driver(door, script)
    done = subprocess.run(
        command, input=script, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


def psql(bin_dir: Path) -> str:
    return shutil.which("psql") or str(bin_dir / "psql")


def run_by_driver(door: Door, script: str) -> str:
    with closing(sqlite3.connect(door.place.url)) as connection:
        try:
            connection.executescript(script)
        except sqlite3.Error as error:
            return str(error)
    return ""


def test_a_shell_enqueues_and_the_bytes_arrive(door: Door) -> None:
    lane = door.lane()
    script = SCRIPT.format(view=f"{door.place.prefix}enqueue", lane=lane, payload=PAYLOAD.replace("'", "''"))

    assert run(door, script) == ""
    assert door.deliver(lane) == [PAYLOAD, "2"]


def test_a_shell_is_told_what_is_wrong(door: Door) -> None:
    lane = door.lane()

    said = run(door, f"INSERT INTO {door.place.prefix}enqueue (lane, sequence) VALUES ('{lane}', -1);")

    assert "penstock: sequence: write a whole number from 0 to 2147483647" in said
    assert door.ids(lane) == []


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_job_and_the_callers_own_row_go_together(door: Door, how: str) -> None:
    lane = door.lane()
    door.sql("CREATE TABLE IF NOT EXISTS orders (lane text)")

    run(
        door,
        f"BEGIN; INSERT INTO orders VALUES ('{lane}');"
        f" INSERT INTO {door.place.prefix}enqueue (lane, payload) VALUES ('{lane}', '1'); {how};",
    )

    orders = door.sql(f"SELECT count(*) FROM orders WHERE lane = '{lane}'")
    assert [(len(door.ids(lane)),)] == orders == [(1 if how == "COMMIT" else 0,)]
