"""`penstock serve` goes by its configuration: every key has its effect on the process it configures."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from redis import Redis as RedisClient

from penstock import Client
from penstock.api.server import PortTaken, listen
from penstock.app import App, run
from penstock.config.keys import KEYS, LIVE_KEYS
from penstock.config.settings import load
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.granting import grant_key
from tests.brokers import Redis
from tests.servers import free_port

WAIT_S = 30
# Where each key is shown to have its effect.
SHOWN = {
    "store": "test_it_serves_where_and_what_it_is_told",
    "host": "test_it_serves_where_and_what_it_is_told",
    "port": "test_it_serves_where_and_what_it_is_told",
    "login": "test_with_a_login_it_asks_who_it_is",
    "hosts": "test_with_a_login_it_asks_who_it_is",
    "metrics_port": "test_metrics_may_have_a_port_of_their_own",
    "log_level": "test_what_is_logged_changes_without_a_restart",
    "log_format": "test_what_is_logged_changes_without_a_restart",
    "lanes_served": "test_it_dispatches_only_the_lanes_it_serves",
    "http.allow_networks": "test_it_calls_only_networks_that_are_allowed",
    "standby.enabled": "test_on_standby_it_dispatches_with_a_lease_in_redis",
    "standby.redis_url": "test_on_standby_it_dispatches_with_a_lease_in_redis",
    "standby.lock_key": "test_on_standby_it_dispatches_with_a_lease_in_redis",
    "standby.ttl": "test_on_standby_it_dispatches_with_a_lease_in_redis",
    "standby.refresh": "test_on_standby_it_dispatches_with_a_lease_in_redis",
    "router.processing_endpoint": "test_pointers_lead_where_it_is_told",
    "router.default_pool": "test_pointers_lead_where_it_is_told",
}


def test_every_key_is_shown_to_have_its_effect() -> None:
    assert SHOWN.keys() == KEYS.keys()
    assert set(SHOWN.values()) <= globals().keys()


@dataclass
class Served:
    """A running process; `said` is what it logged so far."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    address: str

    @property
    def said(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.02)

    def get(self, path: str, address: str = "") -> str:
        with urllib.request.urlopen(f"{address or self.address}{path}", timeout=10) as answer:  # noqa: S310
            return str(answer.read().decode())


@contextmanager
def serving(folder: Path, toml: str = "", *args: str, **environment: str) -> Iterator[Served]:
    """Run `penstock serve` in a folder with this configuration until it says where it listens."""
    (folder / "penstock.toml").write_text(f'port = 0\nstore = "sqlite:///{folder}/p.db"\n{toml}')
    command = [sys.executable, "-m", "penstock", "serve", *args]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | environment, stdout=subprocess.PIPE, stderr=log
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            assert line.startswith("Penstock serves"), (folder / "log").read_text()
            yield Served(process, folder, line.split()[-1])
        finally:
            process.kill()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A store with lanes `orders` and `more`, to the console."""
    from penstock.stores.connect import connect  # noqa: PLC0415

    store = connect(f"sqlite:///{tmp_path}/p.db")
    store.migrate()
    for name in ("orders", "more"):
        store.put_lane(lane(name, poll_interval="50ms", retry=["0s"]), actor="test")
    with Client(store) as client:
        yield client


def ended(client: Client, id_: str) -> JobState:
    return client.wait(id_, timedelta(seconds=WAIT_S)).state


def test_it_serves_where_and_what_it_is_told(client: Client, tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, 'host = "127.0.0.1"', PENSTOCK_PORT=str(port)) as served:
        assert served.address == f"http://127.0.0.1:{port}"
        job = client.enqueue("orders", 1)
        assert ended(client, job.id) is JobState.SUCCEEDED
        assert json.loads(served.get(f"/api/jobs/{job.id}"))["state"] == "succeeded"


def test_keys_that_are_missing_are_told_at_the_start(client: Client, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "p.db")) as db, db:
        db.execute("DELETE FROM penstock_secrets")
    with serving(tmp_path) as served:
        assert "keys: there is no key webhook, so what is sent over HTTP is not signed" in served.said
        assert "keys: there is no key token" in served.said
        assert "run penstock migrate" in served.said
    client.store.migrate()
    with serving(tmp_path) as served:
        assert "keys:" not in served.said


def test_metrics_may_have_a_port_of_their_own(client: Client, tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, f"metrics_port = {port}") as served:
        served.until(lambda: _listens(port))
        assert "penstock_" in served.get("/metrics", f"http://127.0.0.1:{port}")
        with pytest.raises(urllib.error.HTTPError):
            served.get("/api/jobs", f"http://127.0.0.1:{port}")


def test_a_port_for_metrics_that_is_taken_ends_it_before_it_serves(client: Client, tmp_path: Path) -> None:
    del client
    with closing(listen("127.0.0.1", 0)) as taken:
        (tmp_path / "penstock.toml").write_text(f"metrics_port = {taken.getsockname()[1]}")
        served: list[str] = []
        app = App(
            load(tmp_path / "penstock.toml", {}),
            f"sqlite:///{tmp_path}/p.db",
            "127.0.0.1",
            0,
            started=served.append,
        )
        with pytest.raises(PortTaken, match="metrics_port or PENSTOCK_METRICS_PORT"):
            run(app)
    assert served == []


def test_with_a_login_it_asks_who_it_is(client: Client, tmp_path: Path) -> None:
    """On any address, under the names it goes by, without TLS only with a warning."""
    made, key = grant_key(
        client.store, "ci", ["read"], tenant=None, lasts=None, actor="test", entropy=os.urandom
    )
    settings = 'host = "0.0.0.0"\nlogin = true\nhosts = ["penstock.example"]'
    with serving(tmp_path, settings) as served:
        port = served.address.rpartition(":")[2]

        def status(host: str, key: str = "") -> int:
            headers = {"Host": host} | ({"Authorization": f"Bearer {key}"} if key else {})
            request = urllib.request.Request(f"http://127.0.0.1:{port}/api/jobs", headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                error.close()
                return error.code

        assert [status(host, key) for host in ("penstock.example", "10.1.2.3:80", "localhost")] == [200] * 3
        assert status("penstock.example") == 401
        assert status("evil.example", key) == 403
        assert "without TLS" in served.said
        assert key not in served.said
    assert made.name == "ci"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('host = "0.0.0.0"', "set login = true"),
        ('host = "::"', "set login = true"),
        ('host = "0.0.0.0"\nlogin = true', "penstock users add NAME --role admin"),
        ('hosts = ["penstock.example"]', "set login = true too"),
        ('hosts = ["https://penstock.example"]', "is no name of a host"),
        ('login = "yes"', "write true or false"),
    ],
)
def test_it_refuses_to_serve_others_whom_it_does_not_ask(
    client: Client, tmp_path: Path, settings: str, said: str
) -> None:
    assert client.store.users() == []
    with pytest.raises(AssertionError, match=said), serving(tmp_path, settings):
        pass


def test_an_address_that_others_reach_is_a_mistake_of_usage(client: Client, tmp_path: Path) -> None:
    del client
    args = ("--host", "0.0.0.0", "--port", "0", "--store", f"sqlite:///{tmp_path}/p.db")  # noqa: S104 - refused
    ended = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", *args], capture_output=True, check=False
    )

    assert (ended.returncode, b"can be reached from other machines" in ended.stderr) == (2, True)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_what_is_logged_changes_without_a_restart(client: Client, tmp_path: Path) -> None:
    with serving(tmp_path, 'log_level = "error"\nlanes_served = ["*"]') as served:
        assert ended(client, client.enqueue("orders", 1).id) is JobState.SUCCEEDED
        quiet = served.said
        text = (tmp_path / "penstock.toml").read_text()
        text = text.replace('log_level = "error"', 'log_level = "debug"\nlog_format = "json"')
        (tmp_path / "penstock.toml").write_text(text.replace('["*"]', '["orders"]'))
        served.process.send_signal(signal.SIGHUP)
        served.until(lambda: "read the configuration again" in served.said)
        (tmp_path / "penstock.toml").write_text("log_level = loud")
        served.process.send_signal(signal.SIGHUP)
        served.until(lambda: "the configuration is not used" in served.said)
        assert ended(client, client.enqueue("more", 1).id) is JobState.SUCCEEDED

    assert "read the configuration" not in quiet
    lines = [json.loads(line) for line in served.said.removeprefix(quiet).splitlines()]
    [told] = [line["message"] for line in lines if "again" in line["message"]]
    assert told.endswith("needs a restart: lanes_served")
    assert LIVE_KEYS == ("log_level", "log_format")


@pytest.mark.parametrize("how", ["file", "variable", "option"])
def test_it_dispatches_only_the_lanes_it_serves(client: Client, tmp_path: Path, how: str) -> None:
    toml = 'lanes_served = ["orders"]' if how == "file" else ""
    args = ["--lanes", "orders"] if how == "option" else []
    environment = {"PENSTOCK_LANES_SERVED": "orders"} if how == "variable" else {}
    theirs = client.enqueue("more", 1)
    with serving(tmp_path, toml, *args, **environment):
        assert ended(client, client.enqueue("orders", 1).id) is JobState.SUCCEEDED
        assert client.get(theirs.id).state is JobState.PENDING


@pytest.mark.parametrize("allowed", [False, True])
def test_it_calls_only_networks_that_are_allowed(client: Client, tmp_path: Path, *, allowed: bool) -> None:
    target = f"http://127.0.0.1:{free_port()}/hook"  # nobody is there
    settings = {"poll_interval": "50ms", "retry": ["0s"], "target": target}
    client.store.put_lane(lane("orders", sink="http", **settings), actor="test")
    with serving(tmp_path, '[http]\nallow_networks = ["127.0.0.0/8"]' if allowed else ""):
        job = client.enqueue("orders", 1)
        assert ended(client, job.id) is JobState.DEAD

    error = str(client.get(job.id).error)
    assert ("no connection" in error) if allowed else ("refused address" in error)


def test_on_standby_it_dispatches_with_a_lease_in_redis(
    client: Client, tmp_path: Path, redis_server: Redis
) -> None:
    key = f"test:{tmp_path.name}"
    toml = f"""
[standby]
enabled = true
redis_url = "{redis_server.url}"
lock_key = "{key}"
ttl = "6s"
refresh = "200ms"
"""
    with closing(RedisClient.from_url(redis_server.url)) as redis:
        redis.set(key, "somebody else", px=60_000)
        job = client.enqueue("orders", 1)
        with serving(tmp_path, toml) as served:
            served.until(lambda: client.store.leader() is not None)  # it keeps house, it does not dispatch
            assert client.get(job.id).state is JobState.PENDING
            redis.delete(key)
            assert ended(client, job.id) is JobState.SUCCEEDED
            assert b":" in (redis.get(key) or b"")
            served.until(lambda: 5_000 < redis.pttl(key) <= 6_000)  # renewed
            served.process.send_signal(signal.SIGTERM)
            served.process.wait(timeout=WAIT_S)
        assert redis.get(key) is None


def test_pointers_lead_where_it_is_told(client: Client, tmp_path: Path) -> None:
    client.store.put_lane(lane("orders", sink="embedded", queue="q", poll_interval="50ms"), actor="test")
    endpoint = "http://router.example/process"
    toml = f'[router]\nprocessing_endpoint = "{endpoint}"\ndefault_pool = "MINE"'
    with serving(tmp_path, toml) as served:
        job = client.enqueue("orders", 1)
        served.until(lambda: client.get(job.id).state is JobState.DISPATCHED)
    [message] = client.store.receive("q", 1, visibility=timedelta(seconds=1))

    body = json.loads(message.body)
    assert (body["mediationTarget"], body["poolCode"]) == (endpoint, "MINE")
