"""`/lanes`: every lane with its switch; one lane with its settings, its chart, its errors and its groups."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from penstock.api.conditions import bound_to
from penstock.api.named import LANE
from penstock.api.scopes import needs
from penstock.config import changing
from penstock.config.sources import take_changes
from penstock.domain.access import Scope
from penstock.domain.breakers import Target
from penstock.domain.causes import causes
from penstock.domain.filters import JobQuery
from penstock.domain.job import AuditEntry
from penstock.domain.lanes import SETTINGS, Lane
from penstock.domain.names import near
from penstock.domain.retry import RetrySchedule
from penstock.domain.states import JobState
from penstock.domain.targets import target_of
from penstock.domain.vitals import PoolUse
from penstock.errors import InvalidSetting, PenstockError, UnknownLane
from penstock.ui import telling
from penstock.ui.audits import shown as shown_entries
from penstock.ui.settings import LIMITS, effect, given, lane_settings, shown
from penstock.ui.site import (
    NOTHING_REFUSED,
    REFUSED,
    AnyRequest,
    Site,
    acted,
    form,
    kept,
    pause_asked,
    reason_of,
    who,
)
from penstock.ui.telling import Told, back, undo
from penstock.ui.times import until_of
from penstock.ui.words import span

TRAIL: Final = 100
ERRORS: Final = 100
UNUSED: Final = PoolUse()
DEAD: Final = frozenset({JobState.DEAD})
NEW: Final = "/new-lane"  # beside /lanes/NAME: any word below it may be the name of a lane
OLD_NEW: Final = "new"  # where the form was once: kept for bookmarks, unless a lane is called that
NOT_FOLDED: Final = frozenset({*LIMITS, "enabled", "sink", "target", "mode"})
FOLDED: Final = SETTINGS.keys() - NOT_FOLDED  # of the form for a new lane
READ, OPERATE, ADMIN = needs(Scope.READ), needs(Scope.OPERATE), needs(Scope.ADMIN)


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/lanes", opt=READ)
    async def lanes(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "lanes.html", lambda: _lanes_view(site))

    @get(NEW, opt=ADMIN)
    async def new_lane(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "lane_new.html", _new_view)

    @post([NEW, f"/lanes/{OLD_NEW}"], opt=ADMIN)
    async def make_lane(request: AnyRequest) -> Response[bytes] | Redirect:
        fields, actor = await form(request), who(request)
        name = fields.get("name", "")

        try:
            said = await site.desk.ask(_make, site, name, fields, actor)
            site.forget()
            return back(f"/lanes/{name}", said)
        except PenstockError as error:
            refused = kept(fields, error)
            refused["unfolded"] = refused["wrong"] in FOLDED or any(map(fields.get, FOLDED))
            return await site.page(request, "lane_new.html", lambda: _new_view() | refused, status=REFUSED)

    @get(["/lanes/{name:str}", f"/lanes/{OLD_NEW}"], opt=READ)
    async def one_lane(request: AnyRequest) -> Response[bytes]:
        name = request.path_params.get("name", OLD_NEW)
        if name == OLD_NEW and name not in await site.desk.ask(site.look.lanes):
            return Redirect(NEW, status_code=303)
        return await site.page(request, "lane.html", lambda: _lane_view(site.seen_by(request), name))

    @get("/lanes/{name:str}/effect", opt=READ)
    async def preview(request: AnyRequest) -> Response[bytes]:
        name, rate = request.path_params["name"], request.query_params.get("rate", "").strip()

        return await site.page(request, "effect.html", lambda: _effect_view(site, name, rate))

    return [lanes, new_lane, make_lane, one_lane, preview, *_acting_routes(site)]


def _acting_routes(site: Site) -> list[HTTPRouteHandler]:
    @post(["/lanes/{name:str}/pause", "/lanes/{name:str}/resume"], opt=OPERATE)
    async def pause(request: AnyRequest) -> Response[Any]:
        name, verb = request.path_params["name"], request.url.path.rpartition("/")[2]
        fields, actor = await form(request), who(request)
        to = fields.get("next") or f"/lanes/{name}"
        return await acted(site, request, to, lambda: _pause(site, name, verb, fields, actor))

    @post(["/lanes/{name:str}/disable", "/lanes/{name:str}/enable"], opt=ADMIN)
    async def switch(request: AnyRequest) -> Response[Any]:
        """A setting of the lane, so whoever turns it may change lanes, here as over the API."""
        name, enabled = request.path_params["name"], request.url.path.endswith("/enable")
        fields, actor = await form(request), who(request)
        to = fields.get("next") or f"/lanes/{name}"
        return await acted(site, request, to, lambda: _switch(site, name, fields, actor, enabled=enabled))

    @post("/lanes/{name:str}/test", opt=needs(Scope.ENQUEUE))
    async def test(request: AnyRequest) -> Response[Any]:
        name, client = request.path_params["name"], site.acting(request)

        def act() -> str:
            made = client.enqueue(name, {"test": True, "by": client.actor})
            return f"Test job {made.id} is in the lane."

        return await acted(site, request, f"/lanes/{name}", act)

    @post("/lanes/{name:str}/set", opt=ADMIN)
    async def change(request: AnyRequest) -> Response[bytes] | Redirect:
        name, fields, seen = request.path_params["name"], await form(request), site.seen_by(request)
        try:
            said = await site.desk.ask(_set, seen, name, fields, who(request))
        except PenstockError as error:
            return await site.again(request, "lane.html", lambda: _lane_view(seen, name), (fields, error))
        site.forget()
        return back(f"/lanes/{name}", said)

    @get("/lanes/{name:str}/set", opt=READ)
    async def left(request: AnyRequest) -> Redirect:
        """What the browser has as the address of a form that was refused."""
        return Redirect(f"/lanes/{quote(request.path_params['name'], safe='')}", status_code=303)

    return [pause, switch, test, change, left]


def defaults() -> dict[str, Any]:
    """Return the settings of a lane that says nothing."""
    return {name: setting.default for name, setting in SETTINGS.items()}


def _new_view() -> dict[str, Any]:
    settings = shown(defaults(), lane_settings(), {})
    begun = {**NOTHING_REFUSED, "fields": {"sink": "http"}, "unfolded": False}
    return {"screen": "lanes", "settings": settings, "limits": LIMITS, "folded": FOLDED, **begun}


def _lanes_view(site: Site) -> dict[str, Any]:
    figures = site.figures.now()
    lanes, now = site.look.lanes(), figures["at"] or site.store.now()
    known = site.look.targets()
    targets = {name: _target(lane, known, now) for name, lane in lanes.items()}
    return {"screen": "lanes", "f": figures, "lanes": lanes, "targets": targets, "now": now}


def _target(lane: Lane, known: Mapping[str, Target], now: datetime) -> Target | None:
    """Return what is known of the target that a lane's jobs go to unless they name another."""
    name = target_of(lane["target"])
    return None if name is None else known.get(name, Target(name)).at(now)


def _make(site: Site, name: str, fields: Mapping[str, str], actor: str) -> str:
    if name in site.store.lanes():
        raise InvalidSetting("name", f'there is a lane "{name}" already: change it on its page')
    made, _ = changing.LANE.change(site.store, name, given(fields, SETTINGS), actor=actor, expect=0)
    return f'Lane "{made.name}" is there.'


def _effect_view(site: Site, name: str, rate: str) -> dict[str, Any]:
    try:
        found = site.figures.lane(name, site.figures.now())
        text, bad = effect(site.client.lane(name), rate, found["pending"] if found else 0), False
    except InvalidSetting as error:
        text, bad = str(error), True
    return {"text": text, "bad": bad}


def _lane_view(site: Site, name: str) -> dict[str, Any]:
    found = site.look.lanes().get(name)
    figures = site.figures.now()
    if found is None:
        raise UnknownLane(name, near(name, site.look.lanes()))
    now = site.store.now() if figures["at"] is None else figures["at"]
    with site.store.frozen() as still:
        trail = still.audit_log(lane=name, people=True, limit=TRAIL).entries
        dead = still.list_jobs(JobQuery(lane=name, states=DEAD, limit=ERRORS)).jobs
        blocked = still.list_groups(lane=name, blocked=True, limit=5).groups
    listed = any(each["lane"] == name for each in figures["lanes"])
    pool = site.look.pools().get(found["pool"] or "")
    of_lane = [entry for entry in trail if entry.action.startswith("lane.")]
    changed = dict[str, AuditEntry]()
    take_changes(of_lane, name, lane_settings(), kind="lane", found=changed)
    return {
        "screen": "lanes",
        "lane": found,
        "tag": LANE.tag(found, now),
        "f": figures,
        "x": site.figures.lane(name, figures),
        "now": now,
        "settings": shown(found.settings, lane_settings(), changed),
        "limits": LIMITS,
        "c": site.figures.chart(name, now),
        "waiting": site.figures.waiting(name, now) if listed else None,
        "retries": _curve(found),
        "errors": causes(dead),
        "errors_capped": len(dead) == ERRORS,
        "misses": site.figures.misses(name),
        "target": _target(found, site.look.targets(), now),
        "pool": pool,
        "use": None if pool is None else site.look.vitals().pools.get(pool.name, UNUSED),
        "blocked": blocked,
        "audit": shown_entries(of_lane[:8]),
        "toml": _toml(found),
        **NOTHING_REFUSED,
    }


def _curve(found: Lane) -> list[dict[str, Any]]:
    """Return when each attempt goes after the first, for a drawing: long waits do not hide short ones."""
    schedule = RetrySchedule.from_text(found["retry"])
    total, points = 0.0, []
    for attempt in range(1, min(schedule.max_attempts, 12) + 1):
        delay = schedule.delay_before(attempt, random=0.0).total_seconds()
        total += delay
        points.append({"attempt": attempt, "after": span(delay) if delay else "at once", "total": total})
    most = len(points) - 1 or 1
    return [{**point, "x": 24 + index * 292 / most} for index, point in enumerate(points)]


def _toml(found: Lane) -> str:
    lines = [f"[lanes.{json.dumps(found.name)}]" if "." in found.name else f"[lanes.{found.name}]"]
    for name, setting in SETTINGS.items():
        value = found[name]
        if value != setting.default:
            lines.append(f"{name} = {_spelled(json.loads(value) if name == 'retry' else value)}")
    return "\n".join(lines)


def _spelled(value: object) -> str:
    """Return a value as TOML has it: as JSON, but for tables and for what JSON escapes in pairs, or not."""
    match value:
        case Mapping():
            return "{ " + ", ".join(f"{name} = {_spelled(each)}" for name, each in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_spelled, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _pause(site: Site, name: str, verb: str, fields: Mapping[str, str], actor: str) -> Told:
    store = site.store
    _known(site, name)
    paused, reason = pause_asked(verb, fields)
    until = until_of(fields.get("until", ""), store.now()) if paused else None
    store.pause_lane(name, paused=paused, actor=actor, reason=reason, until=until)
    store.wake([name])
    if not paused:
        return Told(f'Lane "{name}" goes on.')
    return telling.paused(f'Lane "{name}"', until, undo("lanes", name, "resume"))


def _switch(site: Site, name: str, fields: Mapping[str, str], actor: str, *, enabled: bool) -> Told:
    _known(site, name)
    wanted, reason = {"enabled": enabled}, reason_of(fields)
    changing.LANE.change(site.store, name, wanted, actor=actor, expect=changing.ANY, reason=reason)
    site.store.wake([name])
    if enabled:
        return Told(f'Lane "{name}" is enabled.')
    return Told(f'Lane "{name}" is disabled: nothing is sent from it.', undo("lanes", name, "enable"))


def _known(site: Site, name: str) -> Lane:
    lanes = site.store.lanes()
    if name not in lanes:
        raise UnknownLane(name, near(name, lanes))
    return lanes[name]


def _set(site: Site, name: str, fields: Mapping[str, str], actor: str) -> str:
    found, bound = _known(site, name), bound_to(fields.get("tag", ""))
    bound("lane", name, found)
    wanted = given({k: v for k, v in fields.items() if k in SETTINGS}, SETTINGS)
    changed = {setting: value for setting, value in wanted.items() if value != found[setting]}
    if not changed:
        return "Nothing was changed."
    changing.LANE.change(site.store, name, changed, actor=actor, expect=found.version, bound=bound)
    site.store.wake([name])
    return f'Lane "{name}": changed {", ".join(changed)}.'
