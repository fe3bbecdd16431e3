"""`/pools`: the limits that lanes share and how much of them is taken, and how targets do."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from penstock.api.conditions import bound_to
from penstock.api.named import POOL
from penstock.api.scopes import needs
from penstock.api.stats import MOST_LANES
from penstock.config import changing
from penstock.domain.access import Scope
from penstock.domain.breakers import Target
from penstock.domain.notes import Said, alive
from penstock.domain.pools import POOL_SETTINGS
from penstock.domain.targets import paused_name, target_of
from penstock.domain.vitals import PoolUse
from penstock.errors import InvalidSetting, NotFound, PenstockError
from penstock.observability.targets import Calls
from penstock.ui import telling
from penstock.ui.settings import given
from penstock.ui.site import NOTHING_REFUSED, AnyRequest, Site, acted, form, pause_asked, reason_of, who
from penstock.ui.telling import Told, back, undo
from penstock.ui.times import until_of

MOST_TARGETS: Final = 100
UNUSED: Final = PoolUse()


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/pools", opt=needs(Scope.READ))
    async def pools(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "pools.html", lambda: _view(site))

    @post("/pools/set", opt=needs(Scope.ADMIN))
    async def change(request: AnyRequest) -> Response[bytes] | Redirect:
        fields = await form(request)
        try:
            said = await site.desk.ask(_set, site, fields, who(request))
        except PenstockError as error:
            return await site.again(request, "pools.html", lambda: _view(site), (fields, error))
        site.forget()
        return back("/pools", said)

    @get("/pools/set", opt=needs(Scope.READ))
    async def left() -> Redirect:
        """What the browser has as the address of a form that was refused."""
        return Redirect("/pools", status_code=303)

    @post("/pools/{name:str}/{verb:str}", opt=needs(Scope.OPERATE))
    async def act_on_pool(request: AnyRequest) -> Response[Any]:
        name, verb = request.path_params["name"], request.path_params["verb"]
        fields, actor = await form(request), who(request)
        return await acted(site, request, "/pools", lambda: _act(site, name, verb, fields, actor))

    @post("/targets/reset", opt=needs(Scope.OPERATE))
    async def reset(request: AnyRequest) -> Response[Any]:
        fields, actor = await form(request), who(request)

        def act() -> str:
            name = paused_name(fields.get("target", ""))
            if not site.store.reset_target(name, actor=actor, reason=reason_of(fields, "closed by hand")):
                return "It was closed already."
            site.store.wake(())
            return "The breaker is closed: calls go again."

        return await acted(site, request, "/pools", act)

    @post("/targets/{verb:str}", opt=needs(Scope.OPERATE))
    async def act_on_target(request: AnyRequest) -> Response[Any]:
        verb, fields, actor = request.path_params["verb"], await form(request), who(request)
        return await acted(site, request, "/pools", lambda: _act_on_target(site, verb, fields, actor))

    return [pools, change, left, act_on_pool, reset, act_on_target]


def _view(site: Site) -> dict[str, Any]:
    figures = site.figures.now()
    now = figures["at"] or site.store.now()
    pools, lanes, uses = site.look.pools(), site.look.lanes(), site.look.vitals().pools
    # What a node that is gone said last is not so any more.
    said = [each for each in alive(site.look.nodes(), now) if not each.stops]
    waits = [limit for each in said for limit in each.limits]
    targets = _targets(site.look.targets(), site.figures.targets(), now)
    return {
        "screen": "pools",
        "f": figures,
        "pools": [
            {
                "pool": each,
                "tag": POOL.tag(each, now),
                "lanes": sorted(name for name, lane in lanes.items() if lane["pool"] == each.name),
                "use": uses.get(each.name, UNUSED),
                "full": f"pool/{each.name}" in waits,
                "crowd": _crowd(each.name, uses.get(each.name, UNUSED), waits),
                "waiting": _waiting(said, each.name),
                "stopped": each.stopped(now),
            }
            for each in pools.values()
        ],
        "targets": targets[:MOST_TARGETS],
        "more_targets": max(0, len(targets) - MOST_TARGETS),
        "hosts": sorted({name for lane in lanes.values() if (name := target_of(lane["target"]))})[:200],
        "limited": [
            {"lane": name, "rate": lane["rate"], "most": lane["max_in_flight"], "pool": lane["pool"],
             "full": f"lane/{name}" in waits}
            for name, lane in sorted(lanes.items())[:MOST_LANES]
        ],
        "more_limited": max(0, len(lanes) - MOST_LANES),
        "now": now,
        **NOTHING_REFUSED,
    }  # fmt: skip


def _targets(known: Mapping[str, Target], called: Mapping[str, Calls], now: datetime) -> list[dict[str, Any]]:
    """Return every target that is in trouble or was called lately: trouble first, then those called most."""
    rows = [
        {"target": known.get(name, Target(name)).at(now), "calls": called.get(name)}
        for name in known.keys() | called.keys()
    ]

    def rank(row: Mapping[str, Any]) -> tuple[bool, bool, int, str]:
        target, calls = row["target"], row["calls"] or Calls()
        return not target.troubled, not target.failures, -calls.calls, target.name

    return sorted(rows, key=rank)


def _is_of(limit: str, pool: str) -> bool:
    """Say whether a limit, by the name that nodes give it, is that of a pool or of one of its keys."""
    return limit.split("/")[:2] == ["pool", pool]


def _crowd(pool: str, use: PoolUse, waits: Sequence[str]) -> tuple[int, int]:
    """Return how many keys of a pool are at their limit, and of how many: by the store or by nodes."""
    named = {limit for limit in waits if limit != f"pool/{pool}" and _is_of(limit, pool)}
    at_limit = max(use.at_limit, len(named))
    return at_limit, max(use.keys, at_limit)


def _waiting(said: Sequence[Said], pool: str) -> int:
    """Return how many jobs wait for a pool, of those that nodes have in hand."""
    return sum(jobs for each in said for limit, jobs in each.queues.items() if _is_of(limit, pool))


def _set(site: Site, fields: Mapping[str, str], actor: str) -> str:
    name = fields.get("name", "")
    found = site.store.pools().get(name)
    bound = bound_to(fields["tag"]) if "tag" in fields else None
    if bound is not None:
        bound("pool", name, found)
    elif found is not None:
        raise InvalidSetting("name", f'there is a pool "{name}" already: change it in the list below')
    seen = 0 if found is None else found.version
    wanted = given(fields, POOL_SETTINGS)
    changing.POOL.change(site.store, name, wanted, actor=actor, expect=seen, bound=bound)
    return f'Pool "{name}" is as you said.'


def _act_on_target(site: Site, verb: str, fields: Mapping[str, str], actor: str) -> Told:
    name, (paused, reason) = paused_name(fields.get("target", "")), pause_asked(verb, fields)
    until = until_of(fields.get("until", ""), site.store.now()) if paused else None
    site.store.pause_target(name, paused=paused, actor=actor, reason=reason, until=until)
    if not paused:
        return Told(f"{name} goes on.")
    return telling.paused(name, until, undo("targets", "resume", target=name))


def _act(site: Site, name: str, verb: str, fields: Mapping[str, str], actor: str) -> Told:
    if name not in site.store.pools():
        raise NotFound("pool", name)
    paused, reason = pause_asked(verb, fields)
    until = until_of(fields.get("until", ""), site.store.now()) if paused else None
    site.store.pause_pool(name, paused=paused, actor=actor, reason=reason, until=until)
    site.store.wake(())
    if not paused:
        return Told(f'Pool "{name}" goes on.')
    return telling.paused(f'Pool "{name}"', until, undo("pools", name, "resume"))
