"""Every route says what it needs, and is held to it."""

import pytest
from litestar import get

from penstock.api.scopes import OPEN, UndeclaredRoute, check_routes, needs, needs_of
from penstock.domain.access import Scope


def test_a_route_that_says_nothing_cannot_be_served() -> None:
    @get("/api/forgotten")
    async def forgotten() -> None: ...

    with pytest.raises(UndeclaredRoute, match="/api/forgotten: give the handler opt=needs"):
        check_routes([forgotten])


def test_a_route_says_its_scope_or_that_it_is_open() -> None:
    @get("/api/things", opt=needs(Scope.READ, tenants=True))
    async def things() -> None: ...

    @get("/open", opt=OPEN)
    async def everybody() -> None: ...

    check_routes([things, everybody])
    needed = needs_of(things)
    assert needed is not None
    assert (needed.scope, needed.tenants) == (Scope.READ, True)
