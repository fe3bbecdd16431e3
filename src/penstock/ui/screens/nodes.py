"""`/nodes`: who is alive and how it does, who leads, what keeps whom from sending."""

from datetime import timedelta
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.params import node_number
from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.notes import is_alive, read
from penstock.errors import NotFound
from penstock.ui.site import AnyRequest, Site, acted, form, reason_of, who
from penstock.ui.targets import left_alone
from penstock.ui.telling import Told, undo

MOST: Final = 100
NONE: Final = timedelta(0)
SKEWED: Final = timedelta(seconds=2)  # as the alert that we ship
SLOW: Final = timedelta(milliseconds=500)  # an event loop that late sends late


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/nodes", opt=needs(Scope.READ))
    async def nodes(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "nodes.html", lambda: _view(site))

    @post("/nodes/{node:str}/{verb:str}", opt=needs(Scope.OPERATE))
    async def drain(request: AnyRequest) -> Response[Any]:
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

        return await acted(site, request, "/nodes", act)

    return [nodes, drain]


def _view(site: Site) -> dict[str, Any]:
    figures = site.figures.now()
    now = figures["at"] or site.store.now()
    leader = site.look.leader()
    nodes: list[dict[str, Any]] = [
        {
            "node": node,
            "said": said,
            "alive": is_alive(node, now),
            "skewed": said.skew is not None and abs(said.skew) > SKEWED,
            "slow": said.loop_delay is not None and said.loop_delay > SLOW,
        }
        for node in site.look.nodes()[:MOST]
        for said in [read(node.note)]
        if said.sends
    ]
    alive = [each for each in nodes if each["alive"]]
    return {
        "screen": "nodes",
        "f": figures,
        "now": now,
        **left_alone(site.look.targets(), now),
        "nodes": sorted(nodes, key=lambda each: (not each["alive"], -each["node"].id)),
        "alive": len(alive),
        "leader": leader,
        "leads": next((each["said"] for each in alive if each["node"].id == leader), None),
        "claimed": sum(each["said"].claimed or 0 for each in alive),
        "latest": max(alive, key=lambda each: each["said"].loop_delay or NONE, default=None),
        "off": max(alive, key=lambda each: abs(each["said"].skew or NONE), default=None),
    }
