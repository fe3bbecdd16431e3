"""`/lanes`: every lane with its switch; one lane with its settings, its chart, its errors and its groups."""

import json
from collections.abc import Mapping
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.causes import causes
from penstock.domain.lanes import SETTINGS, Lane, lane
from penstock.domain.names import near
from penstock.domain.retry import RetrySchedule
from penstock.domain.states import JobState
from penstock.errors import InvalidSetting, PenstockError, UnknownLane
from penstock.ui.audits import shown as shown_entries
from penstock.ui.settings import LIMITS, effect, given, lane_settings, shown
from penstock.ui.site import AnyRequest, Site, acted, back, form, who
from penstock.ui.times import until_of
from penstock.ui.words import span

TRAIL: Final = 100
ERRORS: Final = 100
READ, OPERATE, ADMIN = needs(Scope.READ), needs(Scope.OPERATE), needs(Scope.ADMIN)


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/lanes", opt=READ)
    async def lanes(request: AnyRequest) -> Response[bytes]:
        return await site.page(request, "lanes.html", lambda: _lanes_view(site))

    @get("/lanes/new", opt=ADMIN)
    async def new_lane(request: AnyRequest) -> Response[bytes]:
        facts = {"screen": "lanes", "settings": shown(defaults(), lane_settings(), []), "limits": LIMITS}
        return await site.page(request, "lane_new.html", lambda: facts)

    @post("/lanes/new", opt=ADMIN)
    async def make_lane(request: AnyRequest) -> Redirect:
        fields, actor = await form(request), who(request)
        name = fields.pop("name", "")

        try:
            said = await site.desk.ask(_make, site, name, fields, actor)
            site.forget()
            return back(f"/lanes/{name}", said)
        except PenstockError as error:
            return back("/lanes/new", str(error), bad=True)

    @get("/lanes/{name:str}", opt=READ)
    async def one_lane(request: AnyRequest) -> Response[bytes]:
        name = request.path_params["name"]
        return await site.page(request, "lane.html", lambda: _lane_view(site.seen_by(request), name))

    @get("/lanes/{name:str}/effect", opt=READ)
    async def preview(request: AnyRequest) -> Response[bytes]:
        name, rate = request.path_params["name"], request.query_params.get("rate", "").strip()

        return await site.page(request, "effect.html", lambda: _effect_view(site, name, rate))

    @post("/lanes/{name:str}/{verb:str}", opt=OPERATE)
    async def act_on_lane(request: AnyRequest) -> Redirect:
        name, verb = request.path_params["name"], request.path_params["verb"]
        fields, actor = await form(request), who(request)
        to = fields.get("next") or f"/lanes/{name}"
        return await acted(site, to, lambda: _act(site, name, verb, fields, actor))

    @post("/lanes/{name:str}/set", opt=ADMIN)
    async def change(request: AnyRequest) -> Redirect:
        name, fields, actor = request.path_params["name"], await form(request), who(request)
        return await acted(site, f"/lanes/{name}", lambda: _set(site, name, fields, actor))

    return [lanes, new_lane, make_lane, one_lane, preview, act_on_lane, change]


def defaults() -> dict[str, Any]:
    """Return the settings of a lane that says nothing."""
    return {name: setting.default for name, setting in SETTINGS.items()}


def _lanes_view(site: Site) -> dict[str, Any]:
    figures = site.figures.now()
    return {"screen": "lanes", "f": figures, "lanes": site.look.lanes(), "now": figures["at"]}


def _make(site: Site, name: str, fields: Mapping[str, str], actor: str) -> str:
    if name in site.store.lanes():
        raise InvalidSetting("name", f'there is a lane "{name}" already: change it on its page')
    made = site.store.put_lane(lane(name, **given(fields, SETTINGS)), actor=actor)
    return f'Lane "{made.name}" is there.'


def _effect_view(site: Site, name: str, rate: str) -> dict[str, Any]:
    try:
        text, bad = effect(site.client.lane(name), rate, _figures(site, name)["pending"]), False
    except InvalidSetting as error:
        text, bad = str(error), True
    return {"text": text, "bad": bad}


def _figures(site: Site, name: str) -> Mapping[str, Any]:
    lanes: list[dict[str, Any]] = site.figures.now()["lanes"]
    for each in lanes:
        if each["lane"] == name:
            return each
    raise UnknownLane(name)


def _lane_view(site: Site, name: str) -> dict[str, Any]:
    found = site.look.lanes().get(name)
    figures = site.figures.now()
    if found is None:
        raise UnknownLane(name, near(name, site.look.lanes()))
    now = site.store.now() if figures["at"] is None else figures["at"]
    trail = site.store.audit_log(lane=name, limit=TRAIL).entries
    of_lane = [entry for entry in trail if entry.action.startswith("lane.")]
    dead = site.client.list(lane=name, state=JobState.DEAD, limit=ERRORS).jobs
    mine = next((each for each in figures["lanes"] if each["lane"] == name), None)
    return {
        "screen": "lanes",
        "lane": found,
        "f": figures,
        "x": mine,
        "now": now,
        "settings": shown(found.settings, lane_settings(), of_lane),
        "limits": LIMITS,
        "c": site.figures.chart(name, now),
        "waiting": site.figures.waiting(name, now),
        "retries": _curve(found),
        "errors": causes(dead),
        "errors_capped": len(dead) == ERRORS,
        "blocked": site.store.list_groups(lane=name, blocked=True, limit=5).groups,
        "audit": shown_entries(of_lane[:8]),
        "toml": _toml(found),
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
            text = value if name == "retry" else json.dumps(value)
            lines.append(f"{name} = {text}")
    return "\n".join(lines)


def _act(site: Site, name: str, verb: str, fields: Mapping[str, str], actor: str) -> str:
    store, reason = site.store, fields.get("reason", "")
    found = store.lanes().get(name)
    if found is None:
        raise UnknownLane(name, near(name, store.lanes()))
    match verb:
        case "pause":
            until = until_of(fields.get("until", ""), store.now())
            store.pause_lane(name, paused=True, actor=actor, reason=reason, until=until)
            said = "is paused" if until is None else f"is paused until {until:%H:%M:%S} UTC"
        case "resume":
            store.pause_lane(name, paused=False, actor=actor, reason=reason or "resumed")
            said = "goes on"
        case "disable" | "enable":
            store.put_lane(lane(name, **{**found.settings, "enabled": verb == "enable"}), actor=actor)
            said = "is enabled" if verb == "enable" else "is disabled: nothing is sent from it"
        case "test":
            made = site.client.enqueue(name, {"test": True, "by": actor})
            return f"Test job {made.id} is in the lane."
        case _:
            raise InvalidSetting("action", f"{verb!r} is nothing that can be done to a lane")
    store.wake([name])
    return f'Lane "{name}" {said}.'


def _set(site: Site, name: str, fields: Mapping[str, str], actor: str) -> str:
    found = site.store.lanes().get(name)
    if found is None:
        raise UnknownLane(name, near(name, site.store.lanes()))
    if fields.get("version") != str(found.version):
        raise InvalidSetting("version", "somebody changed the lane meanwhile: look again, then change it")
    wanted = given({k: v for k, v in fields.items() if k in SETTINGS}, SETTINGS)
    changed = {setting: value for setting, value in wanted.items() if value != found[setting]}
    if not changed:
        return "Nothing was changed."
    site.store.put_lane(lane(name, **{**found.settings, **changed}), actor=actor)
    site.store.wake([name])
    return f'Lane "{name}": changed {", ".join(changed)}.'
