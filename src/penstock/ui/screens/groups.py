"""`/groups`: ordered groups, those that wait for help first, and what can be done about them."""

from collections.abc import Sequence
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.arguments import check_filter, check_group
from penstock.domain.groups import GroupRow, behind_name
from penstock.domain.names import MAX_LABEL_BYTES
from penstock.ports.insight import GroupPage
from penstock.ports.store import Store
from penstock.ui import telling
from penstock.ui.screens.job import operated
from penstock.ui.site import AnyRequest, Site, acted, form, lane_choice, reason_of, who
from penstock.ui.telling import Told, undo
from penstock.ui.times import until_of

PAGE: Final = 50
ALIKE: Final = 10  # groups whose names begin alike, and how many lanes are looked at for them
LANES: Final = 20
SHORTEST: Final = 2  # letters of a name that are worth a look


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/groups", opt=needs(Scope.READ))
    async def groups(request: AnyRequest) -> Response[bytes]:
        asked = {name: request.query_params.get(name, "") for name in ("lane", "group", "after", "show")}
        return await site.page(request, "groups.html", lambda: _view(site, asked))

    @get("/ui/groups", opt=needs(Scope.READ))
    async def begun(request: AnyRequest) -> dict[str, Any]:
        begin = check_filter("group", request.query_params.get("begin", "")).strip()
        rows = await site.desk.ask(_begun, site, begin) if len(begin) >= SHORTEST else []
        return {"groups": [{"lane": row.lane, "group": row.group} for row in rows]}

    @post(["/groups/act", "/groups/resume"], opt=needs(Scope.OPERATE))
    async def act(request: AnyRequest) -> Response[Any]:
        fields, actor, client = await form(request), who(request), site.acting(request)
        to = fields.get("next") or "/groups"

        def acting() -> str | Told:
            resume = request.url.path.endswith("/resume")
            verb = "resume" if resume else fields.get("verb", "")
            if verb in ("pause", "resume"):
                paused, reason = verb == "pause", reason_of(fields)
                lane, group = fields.get("lane", ""), check_group(fields.get("group", ""))
                until = until_of(fields.get("until", ""), site.store.now()) if paused else None
                site.store.pause_group(lane, group, paused=paused, actor=actor, reason=reason, until=until)
                site.store.wake([lane])
                if not paused:
                    return Told(f'Group "{group}" goes on.')
                way = undo("groups", "resume", lane=lane, group=group)
                return telling.paused(f'Group "{group}"', until, way)
            return operated(client, fields.get("job", ""), verb, fields)

        return await acted(site, request, to, acting)

    return [groups, begun, act]


def _view(site: Site, asked: dict[str, str]) -> dict[str, Any]:
    lane, after = asked["lane"] or None, asked["after"] or None
    group = check_filter("group", asked["group"]) or None
    show = asked["show"] or ("all" if group else "blocked")
    figures = site.figures.now()
    page = _found(site.store, lane, group, after, blocked=show == "blocked")
    empty_so_far = not page.groups and page.next is None
    if show == "blocked" and empty_so_far and not asked["show"]:
        show, page = "all", site.store.list_groups(lane=lane, limit=PAGE)
    choice = lane_choice(site, figures, asked["lane"])
    lanes = [lane] if lane else choice["lanes"]
    alike = _alike(site.store, lanes, group) if group and empty_so_far else []
    return {
        "screen": "groups",
        "alike": alike,
        "f": figures,
        "page": _ordered(page),
        "now": figures["at"] or site.store.now(),
        "show": show,
        "modes": {name: lane["mode"].replace("_", " ") for name, lane in site.look.lanes().items()},
        "base": {"lane": lane, "group": group, "show": asked["show"]},
        "lane": asked["lane"],
        "group": asked["group"],
        **choice,
    }


def _found(
    store: Store, lane: str | None, group: str | None, after: str | None, *, blocked: bool
) -> GroupPage:
    """Return the groups of exactly this name, or of that without blanks around it: it may be pasted."""
    page = store.list_groups(lane=lane, group=group, blocked=blocked, limit=PAGE, after=after)
    if page.groups or not group or not group.strip():
        return page
    return store.list_groups(lane=lane, group=group.strip(), blocked=blocked, limit=PAGE, after=after)


def _begun(site: Site, begin: str) -> list[GroupRow]:
    """Return some groups that somebody may mean who has written the beginning of a name: the whole first."""
    whole = site.store.list_groups(group=begin, limit=ALIKE).groups
    alike = _alike(site.store, sorted(site.look.lanes()), begin)
    return [*whole, *(row for row in alike if row.group != begin)][:ALIKE]


def _alike(store: Store, lanes: Sequence[str], begin: str) -> list[GroupRow]:
    """Return some groups whose names begin like that, each lane's by its index."""
    found: list[GroupRow] = []
    if len(begin.encode()) > MAX_LABEL_BYTES:  # longer than the name of any group
        return found
    for lane in lanes[:LANES]:
        rows = store.list_groups(lane=lane, limit=ALIKE, after=behind_name(lane, begin.strip())).groups
        found += [row for row in rows if row.group.startswith(begin.strip())]
        if len(found) >= ALIKE:
            break
    return found[:ALIKE]


def _ordered(page: GroupPage) -> GroupPage:
    """Those in trouble come first on their page; the pages themselves go by name."""
    rank = {"blocked": 0, "paused": 1, "busy": 2, "waiting": 3}
    return page._replace(groups=sorted(page.groups, key=lambda g: (rank.get(g.state, 4), g.lane, g.group)))
