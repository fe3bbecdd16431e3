"""Who may talk to a node that has no login: programs on this machine, and pages that it served itself.

A web page anywhere can make a browser on this machine send requests to a loopback address: under a name of
its own that it points there (DNS rebinding), or simply across origins. So the Host must be one we go by, and
whatever changes something must not come from a page of somebody else.
"""

from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from penstock.api.problems import MEDIA_TYPE, Problem
from penstock.api.scopes import STATE
from penstock.domain.access import LOCAL
from penstock.errors import InvalidSetting

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = (
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def check_bind(host: str) -> None:
    """Raise InvalidSetting unless this address can be reached from this machine only."""
    if not is_loopback(host):
        raise InvalidSetting(
            "host",
            f"{host!r} can be reached from other machines, and there is no login yet: set host ="
            ' "127.0.0.1", and reach it through an SSH tunnel (ssh -L 7070:127.0.0.1:7070 HOST) or a reverse'
            " proxy that checks who is asking",
        )


def is_loopback(host: str) -> bool:
    """Say whether a host, written without a port, is this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def guarded(app: ASGIApp, *, hosts: Collection[str] = ()) -> ASGIApp:
    """Return the application behind the checks of this module; `hosts` are names it also goes by."""
    names = frozenset(name.lower() for name in hosts)

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        problem = _refusal(scope["method"], scope["headers"], names)
        if problem is None:
            scope[STATE] = LOCAL  # type: ignore[typeddict-unknown-key]
            await app(scope, receive, send_with_headers)
        else:
            await _send(problem, send_with_headers)

    return guard


def _refusal(method: str, headers: Iterable[tuple[bytes, bytes]], names: Collection[str]) -> Problem | None:
    found = {name.lower(): value.decode("latin-1") for name, value in headers}
    host = found.get(b"host", "")
    name, _ = _split(host, 0)
    if name not in names and not is_loopback(name):
        return Problem(
            403,
            "wrong-host",
            f"this node does not go by the name {host!r}",
            hint="use http://127.0.0.1 or localhost with its port, or add the name to the node's hosts",
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
    """Return name and port of `localhost:7070` or `[::1]:7070`; a port that is none counts as -1."""
    name, colon, port = netloc.rpartition(":")
    if not colon or "]" in port:
        return netloc.strip("[]").lower(), default
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    return name.strip("[]").lower(), number


async def _send(problem: Problem, send: Any) -> None:  # noqa: ANN401 - ASGI's own
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.body()})
