"""OPTIONS: which methods an address has. Litestar's own answer names those of its first handler only."""

from collections.abc import Iterable

from litestar import Response, route
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import OPEN


def method_routes(handlers: Iterable[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """Return the answers to OPTIONS, one for every address that these handlers have."""
    found: dict[str, set[str]] = {}
    for handler in handlers:
        for path in handler.paths:
            found.setdefault(path, set()).update(handler.http_methods)
    return [_telling(path, _allow(methods)) for path, methods in found.items()]


def _allow(methods: Iterable[str]) -> str:
    """Return the header Allow: HEAD is answered wherever GET is, OPTIONS everywhere."""
    known = {*methods, HttpMethod.OPTIONS.value}
    return ", ".join(sorted(known | {"HEAD"} if "GET" in known else known))


def _telling(path: str, allow: str) -> HTTPRouteHandler:
    async def tell_methods() -> Response[None]:
        return Response(None, status_code=204, headers={"Allow": allow})

    return route(path, http_method=[HttpMethod.OPTIONS], opt=OPEN, status_code=204)(tell_methods)
