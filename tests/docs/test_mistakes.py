"""What somebody new does wrong in the first ten minutes: each message names the fix."""

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock import Client
from penstock.cli.main import main
from penstock.errors import PenstockError

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "penstock.db"
    assert CliRunner().invoke(main, ["dev", "--once", "--store", f"sqlite:///{path}"]).exit_code == 0
    return path


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `run("jobs", "list", code=0)`, in a folder with a store."""
    monkeypatch.chdir(tmp_path)
    for variable in ("PENSTOCK_STORE", "PENSTOCK_CONFIG", "PENSTOCK_PORT"):
        monkeypatch.delenv(variable, raising=False)
    shutil.copy(made, tmp_path / "penstock.db")

    def run(*arguments: str, code: int) -> Result:
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return run


@pytest.mark.parametrize(
    ("mistake", "code", "told"),
    [
        # what is typed
        ("enque hello 1", 2, "Did you mean enqueue?"),
        ("enqueue hello {n:1}", 2, "put it in single quotes"),
        ("enqueue helo 1", 3, 'unknown lane "helo"; did you mean hello'),
        ("enqueue hello 1 --at tomorrow", 2, "write 2026-11-15T10:00:00Z, +5m or 16:30"),
        ("enqueue hello 1 --at 2026-11-15T10:00:00", 2, "has no time zone: end it with Z"),
        ("enqueue hello 1 --timeout 5s", 2, "--timeout goes with --wait"),
        ("jobs show 01M7FVNKF8SZX9KDE7ZWENQYAQ", 3, "no job"),
        ("jobs show everything", 3, "no job"),
        ("jobs list lnae:hello", 2, "there is no 'lnae'; did you mean lane?"),
        ("jobs cancel 01M7FVNKF8SZX9KDE7ZWENQYAQ", 2, "Missing option '--reason'"),
        ("jobs retry 01M7FVNKF8SZX9KDE7ZWENQYAQ --reason x", 3, "no job"),
        ("lanes set hello rte=5/s", 2, "did you mean rate?"),
        ("lanes set hello rate=fast", 2, "write 200/s, 10/m or 5/h"),
        ("lanes set helo rate=5/s", 3, "hello"),
        ("lanes set hello sink=htp", 0, 'no sink "htp" is known here; did you mean http'),
        ("groups skip hello nobody --reason x --yes", 3, "no group"),
        ("dead retry 000000000000 --reason x --yes", 3, "see penstock dead list"),
        # where it looks
        ("jobs list --store penstock.db", 2, "write sqlite:///penstock.db or postgresql://"),
        ("jobs list --store sqlite://penstock.db", 2, "with three slashes"),
        (
            "jobs list --store postgresql://[",
            2,
            "this is no URL: write sqlite:///penstock.db or postgresql://",
        ),
        ("jobs list --store sqlite:///elsewhere.db", 4, "run penstock migrate"),
        ("jobs list --store postgresql://me@127.0.0.1:1/db", 4, "Start the server, or name another store"),
        (
            "serve --store postgresql://me@127.0.0.1:1/db --port 0",
            4,
            "Start the server, or name another store",
        ),
        ("jobs list --store mysql://root@localhost/db", 2, '"mysql:" is no store'),
        ("jobs list --config nowhere.toml", 2, "nowhere.toml"),
        ("serve --store sqlite:///elsewhere.db --port 0", 4, "run penstock migrate"),
        ("serve --host 0.0.0.0 --port 0", 2, "127.0.0.1"),
        ("top --url http://127.0.0.1:1", 4, "start one with penstock serve or penstock dev"),
    ],
)
def test_a_mistake_is_told_with_its_fix(run: Run, mistake: str, code: int, told: str) -> None:
    assert told in run(*mistake.split(" "), code=code).stderr


def test_a_port_that_is_taken(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = run("dev", "--port", port, code=1).stderr

    assert f"port {port} of 127.0.0.1 is taken" in said
    assert "choose another with --port" in said


@pytest.mark.parametrize("command", ["jobs list", "serve --port 0", "enqueue hello 1"])
def test_tables_of_an_older_version(run: Run, command: str) -> None:
    with closing(sqlite3.connect("penstock.db")) as db, db:
        db.execute("DELETE FROM penstock_migrations WHERE number > 2")

    assert "penstock migrate" in run(*command.split(), code=4).stderr


def test_a_file_with_a_typing_error(run: Run) -> None:
    Path("penstock.toml").write_text('stor = "sqlite:///penstock.db"\n[lanes.hello]\nrat = "5/s"\n')
    said = run("dev", "--once", code=2).stderr

    assert "penstock.toml:1: stor: there is no such key; did you mean store" in said
    Path("penstock.toml").write_text('[lanes.hello]\nrat = "5/s"\n')
    assert "penstock.toml:2: lanes.hello.rat: there is no such setting; did you mean rate" in (
        run("dev", "--once", code=2).stderr
    )


def test_a_file_that_is_no_toml(run: Run) -> None:
    Path("penstock.toml").write_text("store: sqlite\n")

    assert "penstock.toml: is not TOML: " in (said := run("dev", "--once", code=2).stderr)
    assert "at line 1" in said


@pytest.fixture
def node(run: Run, tmp_path: Path) -> Iterator[str]:
    """Return the address of a `penstock dev`."""
    command = [sys.executable, "-m", "penstock", "dev", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as dev:
        assert dev.stdout is not None
        line = next(line for line in dev.stdout if "page" in line)
        yield line.split()[1]
        dev.kill()


def test_over_http_a_mistake_has_a_hint(node: str) -> None:
    for body, status, told in (
        ('{"lane": "helo"}', 422, "did you mean hello?"),
        ("{lane: hello}", 400, "JSON"),
        ('{"lane": "hello", "paylod": 1}', 422, "payload"),
    ):
        request = urllib.request.Request(  # noqa: S310 - ours
            f"{node}/api/jobs", data=body.encode(), headers={"Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)  # noqa: S310 - as above
        problem = json.load(refused.value)
        assert refused.value.code == status, problem
        assert told in json.dumps(problem), problem


@pytest.mark.parametrize(
    ("lane", "fields", "told"),
    [
        ("helo", {}, "did you mean hello"),
        ("hello", {"run_at": "tomorrow"}, "run_at"),
        ("hello", {"payload": {1, 2}}, "payload"),
        ("hello", {"prio": 1}, "prio"),
    ],
)
def test_in_python_a_mistake_names_the_field(
    run: Run, lane: str, fields: dict[str, object], told: str
) -> None:
    with Client("sqlite:///penstock.db") as client, pytest.raises(PenstockError) as refused:
        client.enqueue(lane, **fields)  # type: ignore[arg-type]

    assert told in str(refused.value)


def test_in_python_a_store_that_is_not_there(run: Run) -> None:
    with pytest.raises(PenstockError, match="penstock migrate"):
        Client("sqlite:///nothing-there.db")
