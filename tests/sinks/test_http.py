"""The HTTP sink against a real receiver: what goes over the wire, and what answers mean."""

import asyncio
import base64
import contextlib
import io
import json
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, TryAgain, Unsent
from penstock.errors import InvalidSetting
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.secrets import Secret, Secrets
from penstock.ports.sink import UNKNOWN, Envelope, Options, Probed, Sink, SinkUnavailable, Supplies
from penstock.receiver.server import Receiver, serving
from penstock.sinks.http import open_http
from penstock.testing.receiver import Answer, Received, receiver
from tests.servers import free_port
from tests.sinks.line import Came, line
from tests.sinks.network import answers_lost, cut_meanwhile, cut_off, network, slow_down

NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NOT_NOW = b'{"ack": false, "delaySeconds": 30}'
PAYLOAD = '{ "é": "\\u00e9", "n": 1.10 }'


class Keyring:
    def __init__(self, *secrets: str) -> None:
        now = datetime.now(UTC)
        self.keys = [Secret("webhook", str(n), secret, now) for n, secret in enumerate(secrets)]

    def secrets(self, name: str) -> list[Secret]:
        assert name == "webhook"
        return self.keys

    def add_secret(self, name: str, kid: str, secret: str, *, actor: str) -> None:
        raise NotImplementedError


async def opened(
    executor: ThreadExecutor,
    options: Options | None = None,
    secrets: Secrets | None = None,
    resolver: AbstractResolver | None = None,
) -> Sink:
    supplies = Supplies(
        executor=executor,
        clock=SystemClock(),
        stream=io.StringIO(),
        allow_networks=["127.0.0.0/8"],
        secrets=secrets,
    )
    return await open_http(options or {}, supplies, resolver=resolver)


@pytest.fixture
async def sink(executor: ThreadExecutor) -> AsyncIterator[Sink]:
    sink = await opened(executor)
    yield sink
    await sink.close()


def envelope(received: Received, path: str = "/hook", **said: object) -> Envelope:
    fields: dict[str, object] = {"payload": PAYLOAD, "target": received.url + path, **said}
    return Envelope("01JOB", 2, "orders", 1, **fields)  # type: ignore[arg-type]


async def posted(sink: Sink, message: Envelope) -> Receipt:
    async with asyncio.timeout(60):
        [receipt] = await sink.send([message])
    return receipt


async def test_the_payload_is_posted_as_it_is_with_the_headers_of_the_job(sink: Sink) -> None:
    async with receiver() as received:
        message = envelope(
            received, group="customer ü", sequence=7, tenant="acme", headers='{"X-Trace": "t"}'
        )
        assert await posted(sink, message) == Accepted("200")
        [request] = received.requests

    assert request.body == PAYLOAD.encode()
    assert (request.method, request.path) == ("POST", "/hook")
    assert (request.id, request.send, request.attempt) == ("01JOB", 2, 1)
    assert (request.lane, request.group, request.sequence) == ("orders", "customer ü", 7)
    expected = {
        "content-type": "application/json",
        "x-flowcatalyst-event-id": "01JOB",
        "x-flowcatalyst-event-type": "orders",
        "x-flowcatalyst-dispatch-job-id": "01JOB",
        "x-flowcatalyst-subscription-id": "customer %C3%BC",
        "x-flowcatalyst-client-id": "acme",
        "x-trace": "t",
        "webhook-id": "01JOB",
        "accept-encoding": "identity",
    }
    assert {name: request.headers.get(name) for name in expected} == expected


async def test_the_url_is_called_as_it_is_written(sink: Sink) -> None:
    async with receiver() as received:
        await posted(sink, envelope(received, "/a%2Fb/%7Ec?sig=%2B%3D&x=a+b%20c"))
        await posted(sink, envelope(received, "/ü b?x=ü#fragment"))

    assert [request.path for request in received.requests] == [
        "/a%2Fb/%7Ec?sig=%2B%3D&x=a+b%20c",
        "/%C3%BC%20b?x=%C3%BC",
    ]


async def test_every_live_secret_signs(executor: ThreadExecutor) -> None:
    async with receiver(secrets=[OLD]) as received:
        sink = await opened(executor, secrets=Keyring(NEW, OLD))
        assert await posted(sink, envelope(received)) == Accepted("200")
        await sink.close()
    [request] = received.requests

    assert request.signature == "ok"
    for secret in (NEW, OLD):
        Webhook(secret).verify(request.body, dict(request.headers))


async def test_a_signature_of_somebody_else_is_refused_by_the_receiver(executor: ThreadExecutor) -> None:
    async with receiver(secrets=[OLD]) as received:
        sink = await opened(executor, secrets=Keyring(NEW))
        receipt = await posted(sink, envelope(received))
        await sink.close()

    assert receipt == Rejected("HTTP 401: the signature is wrong")
    assert received.requests[0].signature == "no signature matches"


async def test_a_secret_that_is_none_sends_nothing(executor: ThreadExecutor) -> None:
    async with receiver() as received:
        sink = await opened(executor, secrets=Keyring("whsec_!"))
        with pytest.raises(SinkUnavailable, match="cannot be signed"):
            await posted(sink, envelope(received))
        await sink.close()

    assert received.requests == []


@pytest.mark.parametrize(
    ("answer", "receipt"),
    [
        (Answer(status=201), Accepted("201")),
        (Answer(status=204), Accepted("204")),
        (Answer(status=202, body=b'{"id":\n7}' + b"x" * 300), Accepted('202 {"id": 7}' + "x" * 190 + "…")),
        (Answer(body=NOT_NOW), Throttled(timedelta(seconds=30), f"HTTP 200: {NOT_NOW.decode()}")),
        (Answer(status=429, headers={"Retry-After": "7"}), Throttled(timedelta(seconds=7), "HTTP 429")),
        (Answer(status=503, headers={"Retry-After": "7"}), Throttled(timedelta(seconds=7), "HTTP 503")),
        (Answer(status=503), TryAgain("HTTP 503")),
        (Answer(status=408, body=b"slow"), TryAgain("HTTP 408: slow")),
        (Answer(status=500, body=b"a\x1b[2J\r\nb"), TryAgain("HTTP 500: a [2J b")),
        (Answer(status=410, body=b"gone"), Rejected("HTTP 410: gone")),
        (Answer(status=302, headers={"Location": "/elsewhere"}), Rejected("HTTP 302")),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Answer) else "",
)  # fmt: skip
async def test_what_an_answer_means(sink: Sink, answer: Answer, receipt: Receipt) -> None:
    async with receiver(answer=lambda _: answer) as received:
        assert await posted(sink, envelope(received)) == receipt

    assert len(received.requests) == 1, "redirects are not followed"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (None, "there is none"),
        ("", "there is none"),
        ("ftp://127.0.0.1/", "not a web address"),
        ("file:///etc/passwd", "not a web address"),
        ("gopher://127.0.0.1/", "not a web address"),
        ("/hook", "not a web address"),
        ("http://", "not a web address"),
        ("http://user:secret@127.0.0.1/", "holds a user name"),
        ("http://127.0.0.1:99999/", "not a URL"),
        ("http://127.0.0.1:80\\@example.com/", "not a URL"),
        ("http://[::1/", "not a URL"),
        ("http://metadata.google.internal/", "metadata"),
        ("http://METADATA.GOOGLE.INTERNAL./", "metadata"),
        ("http://2130706433/", "not a host"),
        ("http://127.1/", "not a host"),
    ],
)
async def test_a_target_that_is_none_is_rejected(sink: Sink, target: str | None, problem: str) -> None:
    receipt = await posted(sink, Envelope("01JOB", 1, "orders", 1, target=target))

    assert isinstance(receipt, Rejected)
    assert problem in receipt.error
    assert "secret" not in receipt.error


async def test_headers_that_cannot_be_sent_are_rejected(sink: Sink) -> None:
    async with receiver() as received:
        receipt = await posted(sink, envelope(received, headers='{"X-A": "a\\r\\nX-B: b"}'))

    assert receipt == Rejected("headers: X-A holds a line break or another control character: remove it")
    assert received.requests == []


HEADERS = st.dictionaries(
    st.text(st.characters(max_codepoint=0x7F), min_size=1, max_size=8),
    st.text(st.characters(codec="utf-8"), max_size=12),
    max_size=4,
)
GROUPS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=st.lists(st.tuples(HEADERS, GROUPS), min_size=6, max_size=6))
def test_no_header_of_a_job_becomes_a_line_of_its_own(
    executor: ThreadExecutor, jobs: list[tuple[dict[str, str], str]]
) -> None:
    """Seen from a raw socket: as many lines as headers, none of them forged, the body where it belongs."""

    async def case() -> None:
        heads: list[bytes] = []

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            heads.append(await reader.readexactly(len(PAYLOAD.encode())))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        sink = await opened(executor)
        for headers, group in jobs:
            heads.clear()
            message = Envelope("01JOB", 1, "l", 1, PAYLOAD, f"http://127.0.0.1:{port}/", group)
            receipt = await posted(sink, message._replace(headers=json.dumps(headers)))
            if isinstance(receipt, Rejected):
                assert heads == []
            else:
                assert receipt == Accepted("200")
                none_is_forged(heads, headers)
        await sink.close()
        server.close()
        await server.wait_closed()

    asyncio.run(case())


def none_is_forged(heads: list[bytes], headers: Mapping[str, str]) -> None:
    """Hold one request, its head and its body, against the headers of its job."""
    lines = heads[0].removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert b"\n" not in b"".join(lines)
    names = [line.partition(b":")[0].lower() for line in lines[1:]]
    allowed = {name.lower().encode() for name in headers}
    known = {b"host", b"content-type", b"content-length", b"accept", b"accept-encoding", b"user-agent"}
    assert not [
        name
        for name in names
        if name not in known | allowed
        and not name.startswith((b"x-penstock-", b"x-flowcatalyst-", b"webhook-"))
    ]
    assert names.count(b"content-length") == names.count(b"host") == 1
    assert heads[1] == PAYLOAD.encode()


async def test_a_connection_is_kept_and_cookies_are_not(sink: Sink) -> None:
    ports: list[object] = []
    cookies: list[Mapping[str, str]] = []

    async def take(request: web.BaseRequest) -> web.Response:
        await request.read()
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername"))
        cookies.append(dict(request.cookies))
        return web.Response(headers={"Set-Cookie": "a=b"}, body=b"x" * 60_000)

    runner = web.ServerRunner(web.Server(take))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    target = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    for _ in range(20):  # more in all than any one answer may be
        assert isinstance(await posted(sink, Envelope("01JOB", 1, "l", 1, PAYLOAD, target)), Accepted)
    await runner.cleanup()

    assert len(set(ports)) == 1
    assert cookies == [{}] * 20


async def test_one_host_has_so_many_calls_at_a_time_and_others_do_not_wait_for_it(
    executor: ThreadExecutor,
) -> None:
    """What finds no place is sent nowhere and told to come again; one that is freed is used."""
    gate = asyncio.Event()
    sink = await opened(executor, {"max_per_host": 2})
    async with receiver(answer=lambda _: Answer(gate=gate)) as hangs, receiver() as quick:
        async with asyncio.TaskGroup() as tasks:
            held = [tasks.create_task(posted(sink, envelope(hangs))) for _ in range(2)]
            await hangs.received(2)
            assert await posted(sink, envelope(quick)) == Accepted("200")
            refused = await posted(sink, envelope(hangs))
            gate.set()
        assert await posted(sink, envelope(hangs)) == Accepted("200")
        await sink.close()

    place = hangs.url.removeprefix("http://")
    busy = f"{place} has 2 calls to answer already (max_per_host)"
    assert refused == Unsent(busy, timedelta(seconds=2))
    assert [task.result() for task in held] == [Accepted("200")] * 2
    assert len(hangs.requests) == 3


async def test_a_node_loses_nothing_through_cuts_a_restart_and_throttling(
    executor: ThreadExecutor, tmp_path: Path
) -> None:
    """A target cannot tell duplicates by itself: those that come are explained, and in their place."""
    received, port = Received(), free_port()
    target = Receiver(clock=SystemClock(), tell=received.take)

    @asynccontextmanager
    async def restart() -> AsyncIterator[None]:
        """Stop the target during this call, and have it back before the next."""
        await up.aclose()
        try:
            yield
        finally:
            await up.enter_async_context(serving(target, port=port))

    async with AsyncExitStack() as up, network(port) as net:
        await up.enter_async_context(serving(target, port=port))
        sink = await opened(executor, {"url": f"http://127.0.0.1:{net.port}/hook"})
        throttled = slow_down(net, b"HTTP/1.1 429 Slow Down\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
        troubles = [answers_lost(net), cut_off(net), throttled, cut_meanwhile(net), restart()]
        async with line(tmp_path, sink, dict(zip((9, 25, 41, 57, 73), troubles, strict=True))) as ours:
            await ours.carry(groups=8, per_group=12)
            came = [Came(str(one.id), one.send or 0, one.body) for one in received.requests]
            ours.judge(came, dedups=False)

            assert ours.tried["unanswered"]
            assert ours.tried["deferred"]
            assert ours.tried["failed"]
        await sink.close()


async def test_a_proxy_of_the_environment_is_not_used(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with receiver() as received:
        assert await posted(sink, envelope(received)) == Accepted("200")


async def test_what_went_wrong_on_the_way_is_said_plainly(sink: Sink) -> None:
    receipt = await posted(sink, Envelope("01JOB", 1, "l", 1, PAYLOAD, "http://127.0.0.1:1/"))

    assert receipt == TryAgain("no connection to 127.0.0.1:1: Connection refused")
    assert await sink.probe([Envelope("01JOB", 1, "l", 1)]) == [Probed(UNKNOWN)]


async def test_connecting_has_a_limit_of_its_own(executor: ThreadExecutor) -> None:
    """A listener whose queue is full lets others wait: the kernel drops what it cannot keep."""
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        sink = await opened(executor, {"connect_timeout": "100ms"})
        port = full.getsockname()[1]
        receipt = await posted(sink, Envelope("01JOB", 1, "l", 1, "{}", f"http://127.0.0.1:{port}/"))
        await sink.close()

    assert receipt == TryAgain(f"no connection to 127.0.0.1:{port} in time")


async def test_a_host_that_is_not_found_within_the_time_of_the_call_was_sent_nothing(
    executor: ThreadExecutor,
) -> None:
    """Who cancels the call cannot tell; in a lane whose work must not repeat the job would be held."""

    class Silent(AbstractResolver):
        async def resolve(self, *_: object) -> list[ResolveResult]:
            return await asyncio.get_running_loop().create_future()

        async def close(self) -> None:
            """There is nothing to give up."""

    sink = await opened(executor, {}, resolver=Silent())
    message = Envelope("01JOB", 1, "l", 1, "{}", "http://shop.test/", timeout=timedelta(milliseconds=50))
    async with asyncio.timeout(60):
        receipt = await posted(sink, message)
    await sink.close()

    assert receipt == TryAgain("no connection to shop.test in time")


async def test_a_connection_of_a_name_has_settings(executor: ThreadExecutor) -> None:
    async with receiver() as received:
        options = {
            "url": f"{received.url}/default",
            "authorization": "Bearer t",
            "header_prefix": "X-Acme-",
            "connect_timeout": "2s",
        }
        sink = await opened(executor, options)
        await posted(sink, Envelope("01JOB", 1, "l", 1, headers='{"authorization": "Bearer forged"}'))
        await sink.close()
    [request] = received.requests

    assert request.path == "/default"
    assert request.headers["authorization"] == "Bearer t"
    assert request.headers["x-acme-event-id"] == "01JOB"
    assert "x-flowcatalyst-event-id" not in request.headers


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"header_prefix": "X Acme"}, "no prefix"),
        ({"authorization": "a\r\nb"}, "control character"),
        ({"connect_timeout": "soon"}, "not a duration"),
        ({"max_per_host": 0}, "not a number from 1 on"),
        ({"ca_file": "nowhere.pem"}, "cannot be read"),
        ({"url": 7}, "write a text"),
        ({"url": "127.0.0.1:9000/hook"}, "not a web address"),
        ({"url": "http://user:secret@host/"}, "holds a user name"),
        ({"autorization": "x"}, "did you mean authorization"),
        ({"colour": "x"}, "it has url"),
    ],
)
async def test_wrong_settings_are_refused(executor: ThreadExecutor, options: Options, problem: str) -> None:
    with pytest.raises(InvalidSetting, match=problem):
        await opened(executor, options)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Return a certificate for 127.0.0.1 that nobody vouches for, and its key."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


async def test_https_is_verified(executor: ThreadExecutor, certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    async def take(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(body=b"x" * 60_000)

    runner = web.ServerRunner(web.Server(take))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    message = Envelope("01JOB", 1, "l", 1, PAYLOAD, f"https://127.0.0.1:{runner.addresses[0][1]}/")
    trusting = await opened(executor, {"ca_file": str(certificate[0])})
    strict = await opened(executor)

    for _ in range(20):  # over one connection, more in all than any one answer may be
        assert isinstance(await posted(trusting, message), Accepted)
    refused = await posted(strict, message)
    await trusting.close()
    await strict.close()
    await runner.cleanup()

    assert isinstance(refused, TryAgain)
    assert "certificate" in refused.error
