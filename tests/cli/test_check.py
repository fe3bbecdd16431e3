"""`penstock check`: what is in force, what is wrong, and the exit code that says so."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import Run


def test_a_store_that_is_ready_is_fine_and_every_value_has_its_source(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "penstock.toml").write_text(
        'log_level = "debug"\n[sinks.q]\nkind = "sqs"\nsecret_key = "x"\naccess_key = "y"\n'
        'region = "eu-central-1"\n'
    )
    monkeypatch.setenv("PENSTOCK_PORT", "8080")

    found = json.loads(ready("check", "--json").stdout)

    values = {value["name"]: (value["value"], value["source"]) for value in found["values"]}
    assert values["store"] == ("sqlite:///penstock.db", "default")
    assert values["log_level"] == ("debug", "penstock.toml:1")
    assert values["port"] == (8080, "PENSTOCK_PORT")
    assert values["sinks.q.secret_key"] == ("***", "penstock.toml:4")
    assert found["ok"] is True
    assert [finding for finding in found["findings"] if finding["level"] != "ok"] == []
    texts = " ".join(finding["text"] for finding in found["findings"])
    assert "journal_mode = wal" in texts
    assert "synchronous = full" in texts
    assert "has the tables of this version" in texts


def test_without_a_store_it_says_how_to_make_one_and_makes_none(run: Run, tmp_path: Path) -> None:
    result = run("check", code=4)

    assert "there is no database penstock.db yet: run penstock migrate" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_old_tables_are_an_error(ready: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as db, db:
        db.execute("DELETE FROM penstock_migrations WHERE number > 1")

    result = ready("check", code=1)

    assert "run penstock migrate" in result.stdout
    assert "1 error, 0 warnings" in result.stderr


def test_every_mistake_of_the_file_is_listed(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('prot = 1\nport = "x"\n[lanes.orders]\nrat = "1/s"\n')

    said = ready("check", code=1).stdout

    assert "error: penstock.toml:1: prot: there is no such key; did you mean port" in said
    assert "error: penstock.toml:2: port: 'x' is not a port" in said


def test_a_port_for_metrics_that_is_the_apis_own_is_an_error(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("port = 7171\nmetrics_port = 7171\n")
    assert "metrics_port: is the port of the API, which has /metrics" in ready("check", code=1).stdout
    (tmp_path / "penstock.toml").write_text("port = 0\nmetrics_port = 0\n")
    ready("check")


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost", "[::1]", "10.1.2.3"])
def test_a_lane_whose_target_no_node_calls_is_a_warning(ready: Run, tmp_path: Path, host: str) -> None:
    ready("lanes", "set", "hello", "sink=http", f"target=http://{host}/hook")
    assert "warning: lanes.hello.target: penstock serve does not call it: " in ready("check").stdout
    allowed = '["127.0.0.0/8", "::1/128", "10.0.0.0/8"]'
    (tmp_path / "penstock.toml").write_text(f"[http]\nallow_networks = {allowed}\n")
    assert "does not call it" not in ready("check").stdout


def test_a_lane_whose_target_has_a_name_is_not_looked_up(ready: Run) -> None:
    ready("lanes", "set", "hello", "sink=http", "target=http://hooks.example.com/hook")
    assert "does not call it" not in ready("check").stdout


def test_lanes_that_differ_or_lead_nowhere_are_warnings(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PROT", "1")
    ready("lanes", "set", "hello", "sink=htpp")
    (tmp_path / "penstock.toml").write_text("[lanes.orders]\n")

    said = ready("check").stdout

    assert "warning: PENSTOCK_PROT: there is no such key; did you mean PENSTOCK_PORT?" in said
    assert 'warning: lanes.hello.sink: no sink "htpp" is known here; did you mean http?' in said
    assert "warning: lanes: the store is not as the file says (orders): see penstock lanes diff" in said
    ready("check", "--strict", code=1)


def test_lanes_of_the_file_are_checked_too(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('[lanes.orders]\npool = "none"\n')

    assert 'error: penstock.toml:2: lanes.orders.pool: unknown pool "none"' in ready("check", code=1).stdout


def test_a_store_without_lanes_is_told_how_to_get_one(run: Run) -> None:
    run("migrate")

    assert "penstock lanes set NAME --create" in run("check").stdout


def test_a_server_that_is_not_there_is_another_exit_code(run: Run) -> None:
    result = run("check", "--store", "postgresql://nobody:secret@127.0.0.1:1/none", "--json", code=4)

    found = json.loads(result.stdout)
    assert next(value for value in found["values"] if value["name"] == "store") == {
        "name": "store",
        "value": "postgresql://nobody:***@127.0.0.1:1/none",
        "source": "--store",
    }
    assert "Connection refused" in found["findings"][-1]["text"]
    assert "secret" not in result.output


def test_postgres_settings_that_lose_jobs_are_named(run: Run, pg18_dsn: str) -> None:
    run("migrate", "--store", pg18_dsn)
    with psycopg.connect(pg18_dsn, autocommit=True) as db:
        name = db.info.dbname
        db.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')

    said = run("check", "--store", pg18_dsn).stdout

    assert "warning: store: synchronous_commit = off: a crash may lose jobs that were accepted" in said
    assert "ok: store: full_page_writes = on" in said


OPTIONS = [
    ("activemq", 'urll = "x"', "did you mean url?"),
    ("console", "colour = 1", 'unknown option "colour"'),
    ("embedded", "colour = 1", 'unknown option "colour"'),
    ("http", 'urll = "http://x"', "did you mean url?"),
    ("kafka", "", 'sinks.s.url: is missing: write url = "127.0.0.1:9092"'),
    ("rabbitmq", 'exchnge = "x"', "did you mean exchange?"),
    ("redis", "maxlenn = 1", "did you mean maxlen?"),
    ("router", "", 'sinks.s.url: is missing: write url = "http://127.0.0.1:7070"'),
    ("sqs", 'regoin = "x"', "did you mean region?"),
]


@pytest.mark.parametrize(("kind", "line", "text"), OPTIONS, ids=[kind for kind, *_ in OPTIONS])
def test_mistakes_in_a_connection_are_errors_of_their_line(
    ready: Run, tmp_path: Path, kind: str, line: str, text: str
) -> None:
    (tmp_path / "penstock.toml").write_text(f'[sinks.s]\nkind = "{kind}"\n{line}\n')

    [error] = [said for said in ready("check", code=1).stdout.splitlines() if said.startswith("error")]

    assert error.startswith(f"error: penstock.toml:{3 if line else 1}: sinks.s.")
    assert text in error


def test_a_lane_whose_sink_lacks_settings_is_told_where_to_write_them(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('[lanes.orders]\nsink = "kafka"\n')

    said = ready("check", code=1).stdout

    assert 'error: lanes.orders.sink: "kafka" cannot be opened: url is missing' in said
    assert 'in a section [sinks.kafka] with kind = "kafka"' in said


def test_the_file_is_checked_though_the_store_is_missing_and_its_mistakes_come_first(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "penstock.toml").write_text(
        '[lanes.orders]\nlease = "1ms"\npool = "of the store"\n'
        '[lanes.web]\nsink = "hooks"\ntarget = "orders"\n[sinks.hooks]\nkind = "http"\n'
    )

    said = run("check", code=1).stdout

    assert "error: store: " in said
    assert "there is no database penstock.db yet" in said
    assert "error: penstock.toml:2: lanes.orders.lease: 1ms is too short: write 1s or more" in said
    (tmp_path / "penstock.toml").write_text('[lanes.orders]\npool = "of the store"\n')
    run("check", code=4)


def test_a_lane_of_a_named_http_connection_needs_a_url_too(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(
        '[lanes.web]\nsink = "hooks"\ntarget = "orders"\n[sinks.hooks]\nkind = "http"\n'
    )

    assert "error: lanes.web.target: 'orders' is no URL to call" in ready("check", code=1).stdout


def test_kinds_and_files_of_connections_are_looked_at(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(
        '[sinks.a]\nkind = "sqss"\n[sinks.b]\nkind = "redis"\npassword_FILE = "/nowhere"\n'
        '[sinks.c]\nkind = "embedded"\n[sinks.d]\nkind = "embedded"\nurl = "sqlite:///q.db"\n'
        '[sinks.e]\nkind = "embedded"\nurl = "postgresql://x"\n'
    )

    said = ready("check", code=1).stdout

    assert 'error: penstock.toml:2: sinks.a.kind: unknown kind "sqss"; did you mean sqs?' in said
    assert "error: penstock.toml:5: sinks.b.password_FILE: /nowhere cannot be read: No such file" in said
    assert "error: penstock.toml:13: sinks.e.url: queues of their own are a SQLite file" in said
    assert said.count("error: ") == 3
    assert not (tmp_path / "q.db").exists()


def test_missing_keys_are_a_warning(ready: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as db, db:
        db.execute("DELETE FROM penstock_secrets")

    assert "warning: keys: there is no key webhook" in ready("check").stdout
    doctor = ready("doctor").stdout
    assert ("there is no key token" in doctor, "run penstock migrate" in doctor) == (True, True)
    ready("migrate")
    assert "keys:" not in ready("check").stdout


def test_the_store_is_the_one_whose_url_a_file_holds(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "penstock.db").rename(tmp_path / "elsewhere.db")
    (tmp_path / "secret").write_text("sqlite:///elsewhere.db\n")
    monkeypatch.setenv("PENSTOCK_STORE_FILE", "secret")

    assert "hello" in ready("lanes", "list").stdout
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:9")
    ready("users", "list")  # works on the database, which is named
    monkeypatch.delenv("PENSTOCK_URL")
    ready("lanes", "list", "--store", "sqlite:///gone.db", code=4)  # the command line wins
    monkeypatch.setenv("PENSTOCK_STORE", "sqlite:///penstock.db")
    both = "Error: PENSTOCK_STORE_FILE: stands beside PENSTOCK_STORE: set one of them\n"
    assert ready("lanes", "list", code=2).stderr == both
    monkeypatch.delenv("PENSTOCK_STORE")
    (tmp_path / "secret").unlink()
    gone = "PENSTOCK_STORE_FILE: secret cannot be read: No such file or directory"
    assert gone in ready("lanes", "list", code=2).stderr
