"""uvicorn inside the loop of the node: no signal handlers, no logging, no processes of its own."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import uvicorn
from litestar.types import ASGIApp

from penstock.api.access import MAX_HEAD, check_bind, is_loopback
from penstock.api.patience import Patience, patient
from penstock.config.keys import SAME_PORT
from penstock.errors import InvalidSetting, PenstockError

GRACE_S: Final = 5
CONNECTIONS: Final = 500
BACKLOG: Final = 512
PORT: Final = "--port or PENSTOCK_PORT"
METRICS_PORT: Final = "metrics_port or PENSTOCK_METRICS_PORT"


class PortTaken(PenstockError):
    """Somebody else listens on this address."""

    def __init__(self, host: str, port: int, choose: str) -> None:
        super().__init__(
            f"port {port} of {host} is taken: stop what listens there, or choose another with {choose}"
            " (0 picks a free one)"
        )
        self.port = port


class HttpStopped(PenstockError):
    """The HTTP server ended although nobody asked it to."""

    def __init__(self) -> None:
        super().__init__("the HTTP server ended by itself; its log says why")


class Sockets(NamedTuple):
    """Where a node listens: for its API and pages, and for /metrics if that has a port of its own."""

    api: socket.socket
    metrics: socket.socket | None

    def close(self) -> None:
        """Listen no more."""
        for sock in filter(None, self):
            sock.close()


def open_sockets(host: str, port: int, metrics_port: int | None, *, login: bool) -> Sockets:
    """Return all sockets of a node, before it begins anything; raise PortTaken or InvalidSetting."""
    if metrics_port and metrics_port == port:
        raise InvalidSetting("metrics_port", SAME_PORT)
    api = listen(host, port, login=login)
    if metrics_port is None:
        return Sockets(api, None)
    try:
        return Sockets(api, listen(host, metrics_port, login=login, choose=METRICS_PORT))
    except BaseException:
        api.close()
        raise


def listen(host: str, port: int, *, login: bool = False, choose: str = PORT) -> socket.socket:
    """Return a socket that listens; port 0 picks a free one. Raise PortTaken or InvalidSetting.

    Without `login` it is for this machine only; `choose` is where its port is said.
    """
    check_bind(host, login=login)
    try:
        [(family, kind, proto, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidSetting("host", f"{host!r} is no address of this machine: {error}") from error
    if not is_loopback(str(address[0])):  # a name may lead anywhere
        check_bind(str(address[0]), login=login)
    sock = socket.socket(family, kind, proto)
    try:
        # A server that was just stopped leaves its port in TIME_WAIT: that does not count as taken.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(host, port, choose) from error
        raise InvalidSetting(
            "host", f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}"
        ) from error
    return sock


def url_of(sock: socket.socket) -> str:
    """Return the address to open in a browser."""
    host, port, *_ = sock.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve_http(
    app: ASGIApp, host: str, port: int, stop: asyncio.Event, *, listening: Callable[[str], Any] = str
) -> None:
    """Listen and serve until `stop`; `listening` is told the address, with the port that was picked."""
    sock = listen(host, port)
    listening(url_of(sock))
    await serve_on(app, sock, stop)


async def serve_on(
    app: ASGIApp, sock: socket.socket, stop: asyncio.Event, *, patience: Patience | None = None
) -> None:
    """Serve on a listening socket until `stop`, then finish what was begun, for at most five seconds."""
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server = _Server(
        uvicorn.Config(
            app,
            http=patient(patience or Patience()),
            h11_max_incomplete_event_size=MAX_HEAD,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        )
    )
    try:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[sock]))
            asked = group.create_task(stop.wait())
            await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            asked.cancel()
    finally:
        sock.close()
    if not stop.is_set():
        raise HttpStopped


class _Server(uvicorn.Server):
    """Leaves signals to the node."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
