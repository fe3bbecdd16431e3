"""What each route needs, said where the route is declared and enforced here.

    @get("/api/jobs", opt=needs(Scope.READ, tenants=True))

A route that says nothing cannot be served: `check_routes` refuses it when the application is made. Somebody
who is bound to a tenant reaches only routes that say `tenants=True`, which promise to use `acting(request)`
and thereby show and touch that tenant's jobs alone. Lanes and pools are nobody's own, and shown to all.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import quote

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from penstock.api.callers import Caller, Callers
from penstock.api.problems import Problem, unknown_caller
from penstock.domain.access import Scope, Who
from penstock.errors import StoreError

KEY: Final = "needs"
STATE: Final = "penstock_caller"
STILL: Final = "penstock_still"
CSRF_HEADER: Final = "x-csrf-token"
CSRF_FIELD: Final = "csrf"
FORM: Final = "application/x-www-form-urlencoded"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Needs:
    """What a route needs; no scope = it is open to all, or has a proof of its own (a message's token)."""

    scope: Scope | None
    tenants: bool = False


class UndeclaredRoute(Exception):
    """A route does not say what it needs."""

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__(f"{', '.join(paths)}: give the handler opt=needs(Scope.…) or opt=OPEN")


def needs(scope: Scope, *, tenants: bool = False) -> dict[str, Any]:
    """Return the `opt` of a route that needs this scope; `tenants` when it is for tenants' own keys too."""
    return {KEY: Needs(scope, tenants)}


OPEN: Final[dict[str, Any]] = {KEY: Needs(None, tenants=True)}


def needs_of(handler: BaseRouteHandler) -> Needs | None:
    """Return what a handler declared; None = nothing."""
    found = handler.opt.get(KEY)
    return found if isinstance(found, Needs) else None


def check_routes(handlers: Iterable[BaseRouteHandler]) -> None:
    """Raise UndeclaredRoute unless every handler says what it needs."""
    undeclared = [path for handler in handlers if needs_of(handler) is None for path in sorted(handler.paths)]
    if undeclared:
        raise UndeclaredRoute(undeclared)


def caller_of(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller:
    """Return who is asking, as the guard found out; before it did, nobody."""
    found = connection.scope.get(STATE)
    return found if isinstance(found, Caller) else Caller(None)


def who_of(connection: ASGIConnection[Any, Any, Any, Any]) -> Who | None:
    """Return who is asking; None = nobody that is known, and this node wants to know."""
    return caller_of(connection).who


def csrf_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return what a page must send back with whatever changes something: field `csrf`, or X-CSRF-Token."""
    return caller_of(connection).csrf


def still_may(connection: ASGIConnection[Any, Any, Any, Any]) -> Callable[[], Awaitable[bool]]:
    """Return what tells, while a long answer goes on, whether whoever asked for it may still see it."""
    found: Callable[[], Awaitable[bool]] = connection.scope[STILL]  # type: ignore[typeddict-item]
    return found


def guard_of(callers: Callers) -> Guard:
    """Return what stands before every handler: 401 unknown, 403 known but not allowed."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        needed = needs_of(handler)
        if needed is None:  # litestar's own answers to OPTIONS: they tell methods, nothing else
            return
        caller = await _found(callers, connection, needed)
        connection.scope[STATE] = caller  # type: ignore[typeddict-unknown-key]
        if needed.scope is not None:
            try:
                _check(needed, needed.scope, caller.who, connection)
                await _check_csrf(connection, caller)
            except Problem as problem:
                problem.written = await _written(connection)
                raise
            still = partial(_still, callers, connection, needed, needed.scope)
            connection.scope[STILL] = still  # type: ignore[typeddict-unknown-key]

    return guard


def recall(callers: Callers, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Note who was last seen with what a request shows: where there is no handler, nothing asks who it is."""
    found = callers.recalled(dict(connection.scope["headers"]))
    if found is not None:
        connection.scope.setdefault(STATE, found)  # type: ignore[typeddict-item]


async def _still(
    callers: Callers, connection: ASGIConnection[Any, Any, Any, Any], needed: Needs, scope: Scope
) -> bool:
    try:
        _check(needed, scope, (await _found(callers, connection, needed)).who, connection)
    except Problem:
        return False
    except StoreError:  # a store that is away takes nobody's rights
        return True
    return True


async def _found(callers: Callers, connection: ASGIConnection[Any, Any, Any, Any], needed: Needs) -> Caller:
    headers = dict(connection.scope["headers"])
    client = connection.scope.get("client")
    try:
        return await callers.identify(headers, address=client[0] if client else "")
    except (Problem, StoreError):
        if needed.scope is None:  # what is open to all is open to those with a wrong key, too
            return Caller(None)
        raise


def _check(
    needed: Needs, scope: Scope, who: Who | None, connection: ASGIConnection[Any, Any, Any, Any]
) -> None:
    if who is None:
        raise _unknown(connection)
    if not who.may(scope):
        raise Problem(
            403,
            "missing-scope",
            f"{who.name} may not do this: it needs the scope {scope}",
            hint=f"use a key or a login that has it: penstock access create NAME --scope {scope}",
            scope=str(scope),
        )
    if who.tenant is not None and not needed.tenants:
        raise Problem(
            403,
            "not-for-tenants",
            f"{who.name} is bound to a tenant, and this is about all of them",
            hint="use a key or a login that is bound to none",
        )


def _unknown(connection: ASGIConnection[Any, Any, Any, Any]) -> Problem:
    """Return what is said to nobody that is known: people are led to the login."""
    if _browses(connection) and _method(connection) == "GET":
        return to_log_in(_asked(connection))
    return logged_out() if _sends_form(connection) else unknown_caller()


async def _written(connection: ASGIConnection[Any, Any, Any, Any]) -> dict[str, str]:
    """Return what somebody wrote into a form: it is refused, and the page that he wrote it on is gone."""
    if not isinstance(connection, Request) or not _sends_form(connection):
        return {}
    return {name: str(value) for name, value in (await connection.form()).multi_items()}


async def _check_csrf(connection: ASGIConnection[Any, Any, Any, Any], caller: Caller) -> None:
    """A browser sends the cookie by itself, whoever made it ask: our own pages know the token too."""
    if caller.session is None or _method(connection) in SAFE:
        return
    given = connection.headers.get(CSRF_HEADER, "")
    if not given and isinstance(connection, Request) and _is_form(connection):
        given = str((await connection.form()).get(CSRF_FIELD, ""))
    if not compare_digest(given.encode(), caller.csrf.encode()):
        raise Problem(
            403,
            "wrong-csrf-token",
            "the request does not carry the token of this session",
            hint="reload the page and try again; programs use an API key instead of a cookie",
        )


def _method(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    return str(connection.scope.get("method", ""))


def _browses(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Say whether this is somebody who opens a page, and not a script or a program."""
    accepts = connection.headers.get("accept", "")
    mode = connection.headers.get("sec-fetch-mode", "navigate")
    is_page = not connection.scope["path"].startswith(("/api/", "/metrics"))
    return is_page and "text/html" in accepts and mode == "navigate"


def _sends_form(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Say whether this is somebody who filled in a form of a page."""
    return _browses(connection) and _method(connection) == "POST" and _is_form(connection)


def _is_form(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    return connection.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM


def _asked(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the address that was asked for: a filter is part of it."""
    path, query = connection.scope["path"], connection.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def to_log_in(path: str) -> Problem:
    """Return where somebody is sent who must log in first."""
    where = {"Location": f"/login?next={quote(path, safe='')}"}
    return Problem(303, "log-in", "log in first", hint="open /login in a browser", headers=where)


def logged_out() -> Problem:
    """Return what somebody is told whose session ended while he filled in a form."""
    return Problem(
        401,
        "unknown-caller",
        "Nothing was changed: this node wants to know who is asking.",
        hint="Log in, and send it again.",
        headers=unknown_caller().headers,
    )
