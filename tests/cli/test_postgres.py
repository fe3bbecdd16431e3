"""The same commands on PostgreSQL."""

import json

import pytest

from tests.cli.conftest import Run


def test_a_walk_through_the_commands(run: Run, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STORE", postgres_url)
    run("migrate")
    run("pools", "set", "web", "rate=200/s", "--create")
    run("lanes", "set", "orders", "pool=web", "mode=block_on_error", "--create")

    lines = "".join(f'{{"payload": {n}, "key": "k{n}", "group": "g{n % 3}"}}\n' for n in range(30))
    assert "30 enqueued, 0 already there" in run("enqueue", "orders", "-", stdin=lines).stderr
    assert "0 enqueued, 30 already there" in run("enqueue", "orders", "-", stdin=lines).stderr

    listed = json.loads(run("jobs", "list", "--group", "g1", "--all", "--json").stdout)["jobs"]
    id_ = listed[0]["id"]
    assert len(listed) == 10
    assert run("jobs", "hold", id_, "--reason", "look").stdout == f"{id_}\theld\n"
    assert run("jobs", "edit", id_, "--payload", '{"n": 1.10}', "--reason", "typo").stdout == f"{id_}\theld\n"
    assert '"payload":{"n": 1.10}' in run("jobs", "show", id_, "--json").stdout
    assert "reason=look" in run("jobs", "timeline", id_).stdout

    run("lanes", "pause", "orders", "--reason", "rest", "--until", "+1h")
    shown = json.loads(run("lanes", "show", "orders", "--json").stdout)
    assert shown["paused"] is True
    assert shown["changed"]["pool"]["actor"].startswith("cli:")
    assert "live or dead jobs" in run("lanes", "delete", "orders", "--reason", "x", "--yes", code=1).stderr
    assert run("check").exit_code == 0
