"""`/nodes`: who is alive, who leads, what keeps whom from sending."""

from datetime import timedelta
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from penstock.api.params import node_number
from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.notes import read
from penstock.errors import NotFound
from penstock.ui.site import AnyRequest, Site, acted, form, reason_of, who
from penstock.ui.telling import Told, undo

ALIVE: Final = timedelta(seconds=30)
MOST: Final = 100


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/nodes", opt=needs(Scope.READ))
    async def nodes(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "nodes.html", lambda: _view(site))

    @post("/nodes/{node:str}/{verb:str}", opt=needs(Scope.OPERATE))
    async def drain(request: AnyRequest) -> Redirect:
        node, verb = node_number(request.path_params["node"]), request.path_params["verb"]
        fields, actor = await form(request), who(request)

        def act() -> Told:
            if verb not in ("drain", "resume"):
                raise NotFound("verb", verb)
            draining = verb == "drain"
            reason = reason_of(fields, "" if draining else "resumed")
            site.store.drain_node(node, draining=draining, actor=actor, reason=reason)
            if not draining:
                return Told(f"Node {node} goes on.")
            return Told(f"Node {node} claims nothing more.", undo("nodes", str(node), "resume"))

        return await acted(site, "/nodes", act)

    return [nodes, drain]


def _view(site: Site) -> dict[str, Any]:
    figures = site.figures.now()
    now = figures["at"] or site.store.now()
    nodes = [
        {"node": node, "said": said, "alive": now - node.seen_at < ALIVE}
        for node in site.look.nodes()[:MOST]
        for said in [read(node.note)]
        if said.sends
    ]
    return {
        "screen": "nodes",
        "f": figures,
        "now": now,
        "nodes": sorted(nodes, key=lambda each: (not each["alive"], -each["node"].id)),
        "leader": site.look.leader(),
    }
