"""Who may talk to a node that has no login: programs on this machine, and pages that it served itself.

A web page anywhere can make a browser on this machine send requests to a loopback address: under a name of
its own that it points there (DNS rebinding), or simply across origins. So the Host must be one we go by, and
whatever changes something must not come from a page of somebody else.
"""

import asyncio
import re
from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from litestar import Litestar
from litestar.enums import HttpMethod, ScopeType
from litestar.types import HTTPScope, Message, Receive, Scope, Send

from penstock.api.cutting import cutting
from penstock.api.marks import HEADER, mark
from penstock.api.problems import AGAIN_AFTER_S, MEDIA_TYPE, Problem
from penstock.api.scopes import SAFE
from penstock.errors import InvalidSetting

MAX_HEAD: Final = 16 * 1024
MAX_ADDRESS: Final = 8 * 1024
MAX_BODIES: Final = 256 * 1024 * 1024
_NETLOC: Final = re.compile(
    r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[\w.-]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def check_bind(host: str, *, login: bool) -> None:
    """Raise InvalidSetting unless this address is for this machine only, or whoever comes must log in."""
    if not login and not is_loopback(host):
        raise InvalidSetting(
            "host",
            f"{host!r} can be reached from other machines, and anybody there could do anything: set login ="
            ' true (docs/howto/secure.md), or host = "127.0.0.1" and reach it through an SSH tunnel (ssh -L'
            " 7070:127.0.0.1:7070 HOST)",
        )


def check_hosts(hosts: Collection[str], *, login: bool) -> None:
    """Raise InvalidSetting when a node goes by other names, behind a proxy say, and asks nobody who he is."""
    if hosts and not login:
        raise InvalidSetting(
            "hosts",
            f"under {', '.join(hosts)} others than this machine come in, and anybody could do anything: set"
            " login = true too (docs/howto/secure.md)",
        )


def is_loopback(host: str) -> bool:
    """Say whether a host, written without a port, is this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Say whether a host is an IP address: a page can make a name of its own lead here, but no address."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


class Guarded:
    """An application behind the checks of this module.

    `hosts` are names it also goes by; with `addresses` it goes by any IP address, as a node that others than
    this machine reach, and that asks who they are. `over` cuts the long answers of a node that stops.
    """

    def __init__(
        self,
        app: Litestar,
        *,
        hosts: Collection[str] = (),
        addresses: bool = False,
        over: asyncio.Event | None = None,
    ) -> None:
        self.app, self._addresses, self._over = app, addresses, over or asyncio.Event()
        self._names = frozenset(name.lower() for name in hosts)
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return

        request = mark(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS, (HEADER, request.encode())]
            await send(message)

        problem = _oversized(scope) or _refusal(
            scope["method"], scope["headers"], self._names, addresses=self._addresses
        )
        if problem is not None:
            await _send(problem, request, send_with_headers)
            return
        held = Held(self._bodies)
        receiving = held.receiving(receive)
        if scope["method"] == "HEAD":  # as GET; the server sends no body for a request that began as HEAD
            scope, receiving = {**scope, "method": HttpMethod.GET}, _hanging_up(receiving)
        try:
            await self.app(scope, cutting(scope, receiving, self._over), send_with_headers)
        finally:
            held.done()


class Bodies:
    """How many bytes of bodies are in memory, of all requests together."""

    def __init__(self) -> None:
        self.bytes = 0


class Held:
    """What one request holds of them."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies, self._bytes = bodies, 0

    def receiving(self, receive: Receive) -> Receive:
        """Return `receive`, counted; when all bodies together are too many, it raises the Problem."""

        async def counted() -> Any:  # noqa: ANN401 - ASGI's own
            message = await receive()
            size = len(message.get("body", b"")) if message["type"] == "http.request" else 0
            self._bytes += size
            self._bodies.bytes += size
            if size and self._bodies.bytes > MAX_BODIES:
                raise Problem(
                    503,
                    "too-busy",
                    "very many requests are being read at once",
                    hint="try again in a moment",
                    headers={"Retry-After": AGAIN_AFTER_S},
                )
            return message

        return counted

    def done(self) -> None:
        """Give back what the request held."""
        self._bodies.bytes -= self._bytes


def _hanging_up(receive: Receive) -> Receive:
    """Return `receive` of somebody who goes once he has asked: a stream of events would never end."""
    asked = False

    async def once() -> Any:  # noqa: ANN401 - ASGI's own
        nonlocal asked
        if asked:
            return {"type": "http.disconnect"}
        message = await receive()
        asked = not message.get("more_body", False)
        return message

    return once


def _oversized(scope: HTTPScope) -> Problem | None:
    address = len(scope["raw_path"]) + len(scope["query_string"])
    if address > MAX_ADDRESS:
        hint = "write a shorter filter, or several requests"
        return Problem(414, "too-long", f"the address has {address} bytes, at most {MAX_ADDRESS}", hint=hint)
    head = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if head > MAX_HEAD:
        hint = "send fewer or shorter headers"
        return Problem(431, "too-long", f"the headers have {head} bytes, at most {MAX_HEAD}", hint=hint)
    return None


def _refusal(
    method: str, headers: Iterable[tuple[bytes, bytes]], names: Collection[str], *, addresses: bool
) -> Problem | None:
    given = [(name.lower(), value.decode("latin-1")) for name, value in headers]
    found = dict(given)
    host = ", ".join(value for name, value in given if name == b"host")  # two of them are the name of nobody
    name, _ = _split(host, 0)
    if name not in names and not is_loopback(name) and not (addresses and is_address(name)):
        return Problem(
            403,
            "wrong-host",
            f"this node does not go by the name {host!r}",
            hint="use http://127.0.0.1 or localhost with its port, or add the name to `hosts` of the node's"
            " configuration",
        )
    if method in SAFE:
        return None
    if not _own(found.get(b"origin"), found.get(b"sec-fetch-site"), host=host, names=names):
        return Problem(
            403,
            "wrong-origin",
            "the request comes from a page that this node did not serve",
            hint="send it from a program, which names no Origin, or from the node's own page",
        )
    return None


def _own(origin: str | None, site: str | None, *, host: str, names: Collection[str]) -> bool:
    """Say whether a request comes from no page at all or from a page of ours."""
    if site is not None and site not in {"same-origin", "none"}:
        return False
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _PORTS:
        return False
    default = _PORTS[parts.scheme]
    ours = _split(host, default)
    theirs = _split(parts.netloc, default)
    return theirs == ours or theirs[0] in names


def _split(netloc: str, default: int) -> tuple[str, int]:
    """Return name and port of `localhost:7070` or `[::1]:7070`; whatever is written otherwise has no name."""
    found = _NETLOC.fullmatch(netloc)
    if found is None:
        return "", -1
    name, port = found["six"] or found["name"], found["port"]
    return name.lower(), default if port is None else int(port)


async def _send(problem: Problem, request: str, send: Any) -> None:  # noqa: ANN401 - ASGI's own
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.body(request)})
