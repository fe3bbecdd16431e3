"""`/nodes`: who is alive, who leads, what keeps whom from sending."""

from datetime import timedelta
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.notes import read
from penstock.ui.site import AnyRequest, Site

ALIVE: Final = timedelta(seconds=30)
MOST: Final = 100


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/nodes", opt=needs(Scope.READ))
    async def nodes(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "nodes.html", lambda: _view(site))

    return [nodes]


def _view(site: Site) -> dict[str, Any]:
    figures = site.figures.now()
    now = figures["at"] or site.store.now()
    nodes = [
        {"node": node, "said": read(node.note), "alive": now - node.seen_at < ALIVE}
        for node in site.look.nodes()[:MOST]
    ]
    return {
        "screen": "nodes",
        "f": figures,
        "now": now,
        "nodes": sorted(nodes, key=lambda each: (not each["alive"], -each["node"].id)),
        "leader": site.look.leader(),
    }
