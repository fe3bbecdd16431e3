"""Who may talk to a node: this machine, under our own names, and no page of somebody else."""

import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from penstock import Client
from penstock.api.access import check_bind, check_hosts
from penstock.errors import InvalidSetting
from penstock.stores.connect import connect
from tests.api.node import Http, served
from tests.client.conftest import put_lane

JOB = {"lane": "orders"}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """Return a node that all tests here share; what they are refused leaves nothing behind."""
    with closing(connect(f"sqlite:///{tmp_path_factory.mktemp('access')}/penstock.db")) as store:
        store.migrate()
        put_lane(store)
        with Client(store) as client, served(client) as local:
            local.node.start()
            yield local


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:7070", "127.0.0.1", "127.0.0.1:1", "127.9.9.9:80", "[::1]", "[::1]:7070"],
)
def test_loopback_names_are_ours(local: Http, host: str) -> None:
    assert local.get("/health/live", headers={"Host": host}).status_code == 200
    assert local.post("/api/jobs", JOB, headers={"Host": host}).status_code == 201


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7070",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "localhost@evil.example",
        "0.0.0.0",  # noqa: S104
        "0.0.0.0:7070",
        "[::]",
        "169.254.169.254",
        "2130706433",
        "",
        ":7070",
        "penstock.example",
        "127.0.0.1:7070@evil.example",
        "127.0.0.1:7070@evil",
        "evil@127.0.0.1",
        "[::1",
        "::1]",
        "[::1]evil",
        "[127.0.0.1]:7070]",
        "localhost:abc",
        "localhost:",
        "localhost:-1",
        "localhost:777777",
        "localhost:70 70",
        "localhost/",
        "localhost\\",
        "localhost, localhost",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/stats", "/api/jobs", "/metrics", "/health/ready", "/nowhere"])
def test_a_name_that_is_not_ours_is_refused(local: Http, host: str, path: str) -> None:
    """DNS rebinding: a page's own name that leads to this machine."""
    answer = local.get(path, headers={"Host": host})

    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:penstock:problem:wrong-host"


def test_two_hosts_are_none(local: Http) -> None:
    parts = urlsplit(local.node.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")

        assert sock.recv(64).split()[1] in (b"400", b"403")


def test_configured_names_are_ours(sqlite_url: str) -> None:
    with Client(sqlite_url) as client, served(client, hosts=["Penstock.Example"]) as local:
        ours = {"Host": "penstock.example"}
        assert local.get("/api/stats", headers=ours).status_code == 200
        page = {"Origin": "https://penstock.example"}
        assert local.post("/api/jobs", JOB, headers=ours | page).status_code == 201
        assert local.post("/api/jobs", JOB, headers=page).status_code == 201  # a proxy that sets the Host
        assert local.get("/api/stats", headers={"Host": "other.example"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "https://127.0.0.1:{port}x"},
        {"Origin": "ftp://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:{port}.evil.example"},
        {"Origin": "http://["},
        {"Origin": "http://[::1]["},
        {"Origin": "http://[evil"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/outcomes", "/api/jobs/x/outcome", "/nowhere"])
def test_a_page_of_somebody_else_changes_nothing(local: Http, path: str, headers: dict[str, str]) -> None:
    port = local.node.url.rpartition(":")[2]
    sent = {name: value.replace("{port}", port) for name, value in headers.items()}
    before = local.get("/api/jobs?limit=1").json()
    answer = local.post(path, JOB, headers=sent)

    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:penstock:problem:wrong-origin"
    assert local.get("/api/jobs?limit=1").json() == before


def test_our_own_page_and_programs_may(local: Http) -> None:
    for headers in (
        {"Origin": local.node.url},
        {"Origin": local.node.url, "Sec-Fetch-Site": "same-origin"},
        {},
    ):
        assert local.post("/api/jobs", JOB, headers=headers).status_code == 201


@pytest.mark.parametrize("path", ["/", "/static/status.js", "/api/stats", "/nowhere", "/health/live"])
def test_every_answer_forbids_foreign_content(local: Http, path: str) -> None:
    headers = local.get(path).headers

    assert "default-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_may_be_bound(host: str) -> None:
    check_bind(host, login=False)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.5", "8.8.8.8", "example.com", "", "127.0.0.1.nip.io"],  # noqa: S104
)
def test_other_addresses_are_refused_with_what_to_do(host: str) -> None:
    with pytest.raises(InvalidSetting, match="anybody there could do anything") as refused:
        check_bind(host, login=False)

    assert "ssh -L" in str(refused.value)
    assert "login = true" in str(refused.value)
    check_bind(host, login=True)


def test_other_names_are_for_nodes_with_a_login() -> None:
    check_hosts(["penstock.example"], login=True)
    check_hosts([], login=False)
    with pytest.raises(InvalidSetting, match="login = true"):
        check_hosts(["penstock.example"], login=False)
