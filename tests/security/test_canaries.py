"""Secrets that were told to Penstock come out nowhere: not in logs, audit, metrics, API, pages, `check`."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock import Client
from penstock.cli.main import main
from penstock.domain.lanes import lane
from penstock.granting import grant_key, grant_login
from penstock.stores.connect import connect
from penstock.ui.site import NAV
from tests.security.routes import NO_SUCH

CANARIES = {
    "password of a user": "canary-user-password",
    "password of a sink": "canary-sink-password",
    "password in a URL": "canary-url-password",
    "secret key of a sink": "canary-secret-key",
    "header of a job": "canary-header-token",
    "cookie of a job": "canary-cookie",
}
COMMANDS = (
    "check", "doctor", "audit", "keys list", "access list", "users list", "lanes show queued", "lanes list",
    "jobs list", "jobs export", "dead list", "groups list", "history", "targets list", "pools list",
)  # fmt: skip
SETTINGS = """
store = "sqlite:///penstock.db"
port = 0
login = true
log_level = "debug"
log_format = "json"
[standby]
redis_url = "redis://user:canary-url-password@127.0.0.1:1/0"
[sinks.queue]
kind = "sqs"
url = "http://key:canary-url-password@127.0.0.1:1"
secret_key = "canary-secret-key"
[sinks.broker]
kind = "rabbitmq"
url = "amqp://guest:canary-url-password@127.0.0.1:1/"
password = "canary-sink-password"
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return everything that a node says, by where it says it, and the keys that it was shown."""
    folder = tmp_path_factory.mktemp("canaries")
    (folder / "penstock.toml").write_text(SETTINGS)
    with closing(connect(f"sqlite:///{folder}/penstock.db")) as store:
        store.migrate()
        for name, sink in (("queued", "queue"), ("brokered", "broker"), ("http", "http")):
            store.put_lane(lane(name, sink=sink, retry=["0s"]), actor="test")
        _, key = grant_key(
            store, "ci", [], roles=["admin"], tenant=None, lasts=None, actor="t", entropy=os.urandom
        )
        password = CANARIES["password of a user"]
        grant_login(
            store, "ada", password=password, roles=["admin"], tenant=None, actor="t", entropy=os.urandom
        )
        headers = {
            "Authorization": f"Bearer {CANARIES['header of a job']}",
            "Cookie": CANARIES["cookie of a job"],
        }
        client = Client(store)
        jobs = [
            client.enqueue(name, {"n": 1}, headers=headers, target="http://127.0.0.1:1/x").id
            for name in ("queued", "brokered", "http")
        ]
        keys = {kind: secret.secret for kind in ("webhook", "token") for secret in store.secrets(kind)}
        said = run(folder, key, jobs)
    return said | {f"key {kind}": text for kind, text in {"api": key, **keys}.items()}


def run(folder: Path, key: str, jobs: list[str]) -> dict[str, str]:
    """Run a node, ask it everything, log in wrongly, and stop it."""
    said: dict[str, str] = {}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "penstock", "serve"], cwd=folder, stdout=subprocess.PIPE, stderr=log
        ) as node,
    ):
        try:
            assert node.stdout is not None
            address = node.stdout.readline().decode().split()[-1]
            paths = json.loads(ask(address, "/api/openapi.json", key))["paths"]
            pages = [*(path for _, path, *_ in NAV), "/lanes/queued", "/nowhere", "/jobs/new", "/new-lane"]
            for path in [*paths, *pages, *(f"/jobs/{job}" for job in jobs)]:
                for value in jobs if "job_id" in path else ["queued"]:
                    url = "/".join(value if part.startswith("{") else part for part in path.split("/"))
                    if url != "/api/events":
                        said[url] = ask(address, url, key)
                        said[f"{url} as a page"] = ask(address, url, key, accept="text/html")
            for proof in (key[:-1] + "x", CANARIES["password of a user"]):
                said[f"with {proof[:5]}"] = ask(address, f"/api/jobs/{NO_SUCH}", proof)
            said["login"] = ask(address, "/login", "", f"name=ada2&password={CANARIES['password of a user']}")
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait(30)
    said["log"] = (folder / "log").read_text()
    for command in (*COMMANDS, *(f"jobs {verb} {jobs[0]}" for verb in ("show", "timeline", "explain"))):
        where = ["--config", str(folder / "penstock.toml"), "--store", f"sqlite:///{folder}/penstock.db"]
        for form in ([], ["--json"]):
            result = CliRunner().invoke(main, [*command.split(), *where, *form])
            said[f"penstock {command} {form}"] = result.output
    return said


def ask(address: str, path: str, key: str, form: str | None = None, *, accept: str = "*/*") -> str:
    headers = {"Accept": accept, **({"Authorization": f"Bearer {key}"} if key else {"Origin": address})}
    data = None if form is None else form.encode()
    request = urllib.request.Request(address + path, data=data, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return str(error.read().decode())


@pytest.mark.parametrize("what", CANARIES)
def test_what_was_told_comes_out_nowhere(told: dict[str, str], what: str) -> None:
    found = {where: _around(text, CANARIES[what]) for where, text in told.items() if CANARIES[what] in text}

    assert found == {}


@pytest.mark.parametrize("what", ["key api", "key webhook", "key token"])
def test_keys_come_out_nowhere(told: dict[str, str], what: str) -> None:
    key = told[what]
    found = {where: _around(text, key) for where, text in told.items() if key in text and where != what}

    assert found == {}


def test_much_was_looked_at(told: dict[str, str]) -> None:
    assert len(told) > 100
    assert "penstock_" in told["/metrics"]
    assert re.search(r'"message"', told["log"])
    assert "***" in told["penstock check []"]
    assert "environment" in told["penstock doctor []"]
    unknown = {where: text for where, text in told.items() if "No such command" in text}
    assert unknown == {}


def _around(text: str, word: str) -> str:
    at = text.find(word)
    return text[max(0, at - 80) : at + 20]
