"""uvicorn inside somebody else's loop."""

import asyncio
import signal
import socket
from contextlib import closing

import pytest

from penstock.api.server import HttpStopped, PortTaken, listen, open_sockets, serve_http, serve_on, url_of
from penstock.errors import InvalidSetting
from tests.servers import free_port

OK = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}


async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    await send(OK)
    await send({"type": "http.response.body", "body": b"ok"})


async def fetched(url: str) -> bytes:
    host, port = url.removeprefix("http://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_it_serves_until_it_is_asked_to_stop_and_leaves_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve_http(app, "127.0.0.1", 0, stop, listening=address.set_result))
        url = await address
        answer = await fetched(url)
        during = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        stop.set()
        await serving

    assert answer.endswith(b"ok")
    assert during == before
    with pytest.raises(ConnectionError):
        await fetched(url)


async def test_an_idle_connection_does_not_hold_up_the_end() -> None:
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group, asyncio.timeout(5):
        group.create_task(serve_http(app, "127.0.0.1", 0, stop, listening=address.set_result))
        host, port = (await address).removeprefix("http://").rsplit(":", 1)
        _, writer = await asyncio.open_connection(host, int(port))
        stop.set()
    writer.close()


async def test_it_can_be_cancelled() -> None:
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_http(app, "127.0.0.1", 0, asyncio.Event(), listening=address.set_result)
    )
    await fetched(await address)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving

    with closing(listen("127.0.0.1", int(address.result().rsplit(":", 1)[1]))):
        pass


def test_a_port_that_is_taken_is_named() -> None:
    with closing(listen("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} of 127.0.0.1 is taken: .* --port"):
            listen("127.0.0.1", port)


def test_a_port_for_metrics_that_is_taken_is_named_by_its_setting() -> None:
    """And the other one is free again."""
    with closing(listen("127.0.0.1", 0)) as first:
        taken, port = first.getsockname()[1], free_port()
        with pytest.raises(PortTaken, match=f"port {taken} .* metrics_port or PENSTOCK_METRICS_PORT"):
            open_sockets("127.0.0.1", port, taken, login=False)
        with closing(open_sockets("127.0.0.1", port, 0, login=False)) as both:
            assert both.metrics is not None
            assert both.api.getsockname() != both.metrics.getsockname()
    with closing(open_sockets("127.0.0.1", 0, None, login=False)) as one:
        assert one.metrics is None
    with pytest.raises(InvalidSetting, match="metrics_port: is the port of the API"):
        open_sockets("127.0.0.1", port, port, login=False)


def test_a_picked_port_is_told() -> None:
    with closing(listen("127.0.0.1", 0)) as sock:
        assert url_of(sock) == f"http://127.0.0.1:{sock.getsockname()[1]}"
        assert sock.getsockname()[1] > 0


def test_ipv6_loopback_has_brackets() -> None:
    try:
        sock = listen("::1", 0)
    except InvalidSetting:
        pytest.skip("this machine has no IPv6")
    with closing(sock):
        assert url_of(sock) == f"http://[::1]:{sock.getsockname()[1]}"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104
def test_it_does_not_listen_for_other_machines(host: str) -> None:
    with pytest.raises(InvalidSetting, match="set login = true"):
        listen(host, 0)


def test_a_name_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: elsewhere)

    with pytest.raises(InvalidSetting, match="set login = true"):
        listen("localhost", 0)


async def test_a_server_that_ends_by_itself_is_an_error() -> None:
    sock = listen("127.0.0.1", 0)
    sock.close()

    with pytest.raises((HttpStopped, ExceptionGroup)):
        await serve_on(app, sock, asyncio.Event())
