"""What each route needs, said where the route is declared and enforced here.

    @get("/api/jobs", opt=needs(Scope.READ, tenants=True))

A route that says nothing cannot be served: `check_routes` refuses it when the application is made. Somebody
who is bound to a tenant reaches only routes that say `tenants=True`, which promise to use `acting(request)`
and thereby show and touch that tenant's jobs alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from penstock.api.problems import Problem
from penstock.domain.access import Scope, Who

KEY: Final = "needs"
STATE: Final = "penstock_who"


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


def who_of(connection: ASGIConnection[Any, Any, Any, Any]) -> Who | None:
    """Return who is asking; None = nobody that is known, and this node wants to know."""
    found = connection.scope.get(STATE)
    return found if isinstance(found, Who) else None


def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Let a request through to a handler, or raise the Problem: 401 unknown, 403 known but not allowed."""
    needed = needs_of(handler)
    if needed is None:  # litestar's own answers to OPTIONS: they tell methods, nothing else
        return
    if needed.scope is None:
        return
    who = who_of(connection)
    if who is None:
        raise unknown_caller()
    if not who.may(needed.scope):
        raise Problem(
            403,
            "missing-scope",
            f"{who.name} may not do this: it needs the scope {needed.scope}",
            hint=f"use a key or a login that has it: penstock access create NAME --scope {needed.scope}",
            scope=str(needed.scope),
        )
    if who.tenant is not None and not needed.tenants:
        raise Problem(
            403,
            "not-for-tenants",
            f"{who.name} is bound to a tenant, and this is about all of them",
            hint="use a key or a login that is bound to none",
        )


def unknown_caller(detail: str = "this node wants to know who is asking") -> Problem:
    """Return the problem of a request that proves nothing."""
    return Problem(
        401,
        "unknown-caller",
        detail,
        hint="send `Authorization: Bearer pk_…` with an API key (penstock access create NAME), or log in",
        headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
    )
