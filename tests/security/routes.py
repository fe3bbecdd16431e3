"""Every route that a node serves: those of its document, and those of its pages."""

from typing import NamedTuple

from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import Needs, needs_of
from tests.api.node import Node

NO_SUCH = "01K00000000000000000000000"


class Route(NamedTuple):
    """A method and an address, and what they need."""

    method: str
    path: str
    needs: Needs

    @property
    def is_api(self) -> bool:
        """Whether programs use it: those routes are in the document."""
        return self.path.startswith(("/api/", "/metrics", "/health/"))

    def url(self, value: str = NO_SUCH) -> str:
        """Return an address with this value in the place of every parameter."""
        parts = [value if part.startswith("{") else part for part in self.path.split("/")]
        return "/".join(parts)


def routes_of(node: Node) -> list[Route]:
    """Return all routes of a node, litestar's own answers to OPTIONS left out."""
    found = set()
    for route in node.app.app.routes:
        for handler in getattr(route, "route_handlers", ()):
            needed = needs_of(handler)
            if isinstance(handler, HTTPRouteHandler) and needed is not None:
                path = "/".join(_plain(part) for part in route.path_format.split("/"))
                found |= {
                    Route(method, path, needed) for method in handler.http_methods if method != "OPTIONS"
                }
    return sorted(found, key=lambda route: (route.path, route.method))


def _plain(part: str) -> str:
    return part.partition(":")[0] + "}" if part.startswith("{") and ":" in part else part
