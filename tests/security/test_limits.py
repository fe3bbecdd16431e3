"""Sizes and times: what is too long, too large or too slow."""

import asyncio
import gzip
import resource
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from penstock.api import access
from penstock.api.access import MAX_ADDRESS, MAX_HEAD
from penstock.api.bodies import MAX_BATCH, MAX_BODY
from penstock.api.events import MOST_LISTENERS
from penstock.api.patience import Patience
from penstock.api.server import listen, serve_on
from tests.api.node import Http
from tests.security.conftest import Bearer

HOST = b"Host: localhost\r\n"


@pytest.fixture
def admin(key: object) -> Bearer:
    return key("admin", "read", "enqueue")  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 414)])
def test_an_address_is_only_so_long(locked: Http, admin: Bearer, over: int, status: int) -> None:
    room = MAX_ADDRESS + over - len("/api/jobs") - len("group=")
    answer = locked.get("/api/jobs?group=" + "g" * room, headers=admin)

    assert answer.status_code == (status if status == 414 else 422)  # no group is that long


@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 431)])
def test_headers_are_only_so_large(locked: Http, over: int, status: int) -> None:
    fixed = [("Host", "localhost"), ("Connection", "close")]
    size = sum(len(name) + len(value) + 4 for name, value in fixed) + len("X-A") + 4
    head = "".join(
        f"{name}: {value}\r\n" for name, value in [*fixed, ("X-A", "a" * (MAX_HEAD + over - size))]
    )
    answer = raw(locked, f"GET /health/live HTTP/1.1\r\n{head}\r\n".encode())

    # What does not come in one piece is refused as it comes.
    assert answer.startswith((f"HTTP/1.1 {status}".encode(), b"HTTP/1.1 400"))


@pytest.mark.parametrize(("over", "status"), [(-1, 400), (0, 400), (1, 413)])
def test_a_body_is_only_so_large(locked: Http, admin: Bearer, over: int, status: int) -> None:
    body = b" " * (MAX_BODY + over)

    assert locked.post("/api/jobs", body, headers=admin).status_code == status


@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 413)])
def test_a_batch_holds_only_so_many(locked: Http, admin: Bearer, over: int, status: int) -> None:
    body = {"jobs": [{"lane": "nowhere"}] * (MAX_BATCH + over)}

    assert locked.post("/api/jobs", body, headers=admin).status_code == status


@pytest.mark.parametrize(("limit", "status"), [(499, 200), (500, 200), (501, 422), (0, 422), (-1, 422)])
def test_a_page_holds_only_so_many(locked: Http, admin: Bearer, limit: int, status: int) -> None:
    assert locked.get(f"/api/jobs?limit={limit}", headers=admin).status_code == status


def test_all_bodies_together_take_only_so_much_memory(
    locked: Http, admin: Bearer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MAX_BODIES", 100_000)
    refused = locked.post("/api/jobs", b" " * 200_000, headers=admin)
    after = locked.post("/api/jobs", b" " * 50_000, headers=admin)

    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    assert after.status_code == 400  # what the other held was given back


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip"])
def test_a_bomb_is_not_unpacked(locked: Http, admin: Bearer, coding: str) -> None:
    """A hundred megabytes in a hundred kilobytes: they are read as the bytes they are, and are no JSON."""
    bomb = gzip.compress(b" " * 100_000_000, compresslevel=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = locked.post("/api/jobs", bomb, headers={**admin, "Content-Encoding": coding})

    assert answer.status_code in {400, 415}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80_000  # kilobytes


@pytest.mark.parametrize(
    "bomb", ["[" * 1_000_000, '{"a":' * 200_000, '{"lane":"orders","payload":' + "[" * 65]
)
def test_a_nest_of_brackets_is_refused(locked: Http, admin: Bearer, bomb: str) -> None:
    assert locked.post("/api/jobs", bomb, headers=admin).status_code in {400, 422}


def raw(http: Http, request: bytes) -> bytes:
    parts = urlsplit(http.node.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as sock:
        sock.sendall(request)
        return sock.recv(1000)


@contextmanager
def impatient(patience: Patience, *, answer: bytes = b"ok") -> Iterator[tuple[str, int]]:
    """Serve a small application that reads bodies and answers, to slow clients."""
    listening, ends = threading.Event(), []

    async def app(scope: object, receive: object, send: object) -> None:
        while (await receive()).get("more_body"):  # type: ignore[operator]
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        for _ in range(1000 if len(answer) > 1000 else 1):
            await send({"type": "http.response.body", "body": answer, "more_body": True})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    async def serve() -> None:
        stop, sock = asyncio.Event(), listen("127.0.0.1", 0)
        ends.extend([asyncio.get_running_loop(), stop, sock.getsockname()[:2]])
        listening.set()
        await serve_on(app, sock, stop, patience=patience)  # type: ignore[arg-type]

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert listening.wait(20)
    loop, stop, address = ends
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


def hung_up(address: tuple[str, int], request: bytes, *, drip: bytes = b"") -> bool:
    """Say whether the server hangs up on a request that is never finished, however it trickles."""
    with socket.create_connection(address, timeout=0.05) as sock:
        sock.sendall(request)
        for _ in range(400):
            try:
                if drip:
                    sock.sendall(drip)
                if sock.recv(100) == b"":
                    return True
            except TimeoutError:
                continue
            except ConnectionError:
                return True
    return False


@pytest.mark.parametrize(
    ("request_", "drip"),
    [
        (b"", b""),
        (b"GET / HTT", b""),
        (b"GET / HTTP/1.1\r\n" + HOST, b"X-A: b\r\n"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 100000\r\n\r\n", b"a"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    ],
    ids=["silent", "head", "slowloris", "body", "chunks"],
)
def test_whoever_takes_too_long_is_hung_up_on(request_: bytes, drip: bytes) -> None:
    with impatient(Patience(head=0.3, body=0.3)) as address:
        assert hung_up(address, request_, drip=drip)


def test_whoever_does_not_read_is_hung_up_on() -> None:
    with impatient(Patience(answer=0.3), answer=b"x" * 100_000) as address:
        with socket.create_connection(address, timeout=20) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
            read, ended = 0, threading.Event()
            ended.wait(2)  # the client's own laziness, which is what is tested
            with pytest.raises(ConnectionError):  # noqa: PT012
                while chunk := sock.recv(1 << 20):
                    read += len(chunk)
                raise ConnectionResetError
        assert read < 100_000_000


def test_no_more_listen_than_may_however_many_come_at_once(locked: Http, admin: Bearer) -> None:
    parts = urlsplit(locked.node.url)
    head = "".join(f"{name}: {value}\r\n" for name, value in admin.items())
    ask = f"GET /api/events?topics=jobs HTTP/1.1\r\n{head}".encode() + HOST + b"\r\n"
    with ExitStack() as open_:
        socks = [
            open_.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=60))
            for _ in range(MOST_LISTENERS + 10)
        ]
        for sock in socks:
            sock.sendall(ask)
        answers = Counter(sock.recv(12)[9:] for sock in socks)

    assert answers == {b"200": MOST_LISTENERS, b"429": 10}
    for _ in range(6000):  # their places are free again once the node has seen that they went
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
            sock.sendall(ask)
            if sock.recv(12)[9:] == b"200":
                return
    pytest.fail("nobody is let in any more")


def test_a_request_in_time_is_answered() -> None:
    with (
        impatient(Patience(head=20, body=20)) as address,
        socket.create_connection(address, timeout=20) as sock,
    ):
        for _ in range(2):  # the connection is used again
            sock.sendall(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\na")
            sock.sendall(b"bc")
            answer = b""
            while not answer.endswith(b"0\r\n\r\n"):
                answer += sock.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200")
