"""What is wrong, and what to do about it."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.outcomes import Dead
from penstock.ports.store import Ask
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_PORT", "1")  # nobody listens there


def findings(run: Run, *options: str, code: int = 0) -> list[dict[str, Any]]:
    return list(json.loads(run("doctor", "--json", *options, code=code).stdout)["findings"])


def said(run: Run, part: str, *options: str, code: int = 0) -> str:
    found = [
        one for one in findings(run, *options, code=code) if one["part"] == part and one["level"] != "ok"
    ]
    return "\n".join(f"{one['text']} → {one['fix']}" for one in found)


def test_a_store_that_is_ready_has_no_errors_and_a_node_is_missed(ready: Run) -> None:
    found = findings(ready)

    assert [one for one in found if one["level"] == "error"] == []
    assert {"environment", "configuration", "store", "migrations", "nodes", "jobs", "node"} <= {
        one["part"] for one in found
    }
    assert "penstock serve" in said(ready, "nodes")
    assert "0 errors" in ready("doctor").stderr


def test_without_a_store_it_says_how_to_make_one(run: Run, tmp_path: Path) -> None:
    assert "run penstock migrate" in said(run, "store", code=4)
    assert list(tmp_path.iterdir()) == []


def test_tables_of_another_version_are_named(ready: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as db, db:
        db.execute("DELETE FROM penstock_migrations WHERE number > 1")

    assert "penstock migrate" in said(ready, "migrations", code=1)


def test_a_wrong_configuration_is_an_error(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("stroe = 1\n")

    assert "did you mean store" in said(ready, "configuration", code=1)


def test_a_sink_that_cannot_be_opened_is_an_error(ready: Run) -> None:
    with Client("sqlite:///penstock.db") as client:
        client.store.put_lane(lane("billing", sink="billing-queue"), actor="test")

    assert 'unknown sink "billing-queue"' in said(ready, "sinks", code=1)
    assert said(ready, "sinks", "--no-sinks") == ""


def test_of_sinks_that_cannot_be_opened_each_is_named_with_what_to_do(ready: Run, tmp_path: Path) -> None:
    """In plain words, and without what drivers say to themselves."""
    wrong = {
        "amq": ("activemq", "stomp://127.0.0.1:1", "nothing answers there: check url"),
        "events": ("kafka", "127.0.0.1:1", "none of the brokers in url answers: check url"),
        "hook": ("http", "127.0.0.1:9000/hook", "is not a web address: write http://host/path"),
        "mq": ("rabbitmq", "amqp://127.0.0.1:1/", "Connection refused: check url"),
        "own": ("embedded", f"sqlite:///{tmp_path}/gone/q.db", "its folder is missing"),
        "stream": ("redis", "redis://127.0.0.1:1/0", "Connection refused: check url"),
        "there": ("router", "http://127.0.0.1:1", "Connection refused: check url"),
    }
    (tmp_path / "penstock.toml").write_text(
        "".join(f'[sinks.{name}]\nkind = "{kind}"\nurl = "{url}"\n' for name, (kind, url, _) in wrong.items())
    )
    with Client("sqlite:///penstock.db") as client:
        for name in wrong:
            client.store.put_lane(lane(name, sink=name, target="http://127.0.0.1/"), actor="test")

    found = said(ready, "sinks", code=1).splitlines()
    assert len(found) == len(wrong)
    for line, (name, (_, _, words)) in zip(found, wrong.items(), strict=True):
        assert line.startswith(f"{name} cannot be opened: ")
        assert words in line
        assert "→ its lanes wait" in line
    assert not (tmp_path / "gone").exists()


def test_what_waits_for_a_person_is_listed_with_the_command_that_helps(ready: Run) -> None:
    with Client("sqlite:///penstock.db", actor="ann") as client:
        store = client.store
        store.put_lane(lane("orders", mode="block_on_error"), actor="test")
        ids = [client.enqueue("orders", {}, group="acme").id for _ in range(2)]
        claim = store.claim_groups(Ask(lane="orders", node=1))
        assert claim is not None
        store.settle(claim, {claim.jobs[0].job.arrival: Dead("permanent", "gone")})
        client.enqueue("hello", {}, run_at=datetime.now(UTC) - timedelta(minutes=5))
        store.pause_lane("hello", paused=True, actor="ann", reason="lunch")
        store.pause_store(paused=True, actor="bob", reason="a release")

    assert "penstock dead list --lane orders" in said(ready, "jobs")
    assert f"is blocked by {ids[0]}, 1 jobs wait → penstock jobs explain {ids[0]}" in said(ready, "groups")
    assert "everything is paused by bob: a release → penstock resume-all" in said(ready, "flow")
    assert "paused by ann: lunch → penstock lanes resume hello" in said(ready, "flow")


def test_a_claim_that_nobody_takes_over_is_an_error(ready: Run) -> None:
    with Client("sqlite:///penstock.db") as client:
        client.enqueue("hello", {})
        assert client.store.claim(Ask(lane="hello", node=1, lease=-timedelta(minutes=5))) is not None

    assert "nobody takes it over" in said(ready, "recovery", code=1)


def test_a_node_that_has_just_stopped_is_not_one_that_does_not_lead(ready: Run) -> None:
    with Client("sqlite:///penstock.db") as client:
        client.store.beat(client.store.register_node("gone"), '{"stops": true}')

    assert said(ready, "nodes").startswith("no node is running")


def test_no_secret_gets_into_a_report(ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STORE", "postgresql://me:hunter2@127.0.0.1:1/db")
    assert "hunter2" not in ready("doctor", code=4).output
    assert "PENSTOCK_STORE" in ready("doctor", code=4).stdout
