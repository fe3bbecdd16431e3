"""`/`: how everything is, trouble first; on a node without a job, the way to the first one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.filters import JobQuery, Span
from penstock.domain.notes import Recovery, read
from penstock.domain.standing import NodeRow
from penstock.domain.states import JobState
from penstock.ui import telling
from penstock.ui.audits import shown
from penstock.ui.site import AnyRequest, Site, acted, form, pause_asked, who
from penstock.ui.targets import left_alone
from penstock.ui.telling import Told, undo
from penstock.ui.times import until_of

LAST_ACTIONS: Final = 6
BLOCKED_SHOWN: Final = 8  # as many as the figures name
BEHIND_CAP: Final = 1000  # nobody counts further
LATELY: Final = timedelta(days=1)
DIED_CAP: Final = 500
DEAD: Final = frozenset({JobState.DEAD})
RECOVERED_LATELY: Final = timedelta(minutes=15)


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/", opt=needs(Scope.READ))
    async def overview(request: AnyRequest) -> Response[bytes]:
        figures = await site.desk.ask(site.figures.now)
        if _nothing_yet(figures):
            return await site.page(request, "first.html", lambda: first_view(figures))
        return await site.page(request, "overview.html", lambda: _view(site.seen_by(request), figures))

    @post("/store/{verb:str}", opt=needs(Scope.OPERATE))
    async def pause_all(request: AnyRequest) -> Response[Any]:
        verb, fields, actor = request.path_params["verb"], await form(request), who(request)

        def act() -> Told:
            paused, reason = pause_asked(verb, fields)
            until = until_of(fields.get("until", ""), site.store.now()) if paused else None
            site.store.pause_store(paused=paused, actor=actor, reason=reason, until=until)
            site.store.wake(())
            if not paused:
                return Told("Everything goes on.")
            return telling.paused("Everything", until, undo("store", "resume"))

        return await acted(site, request, fields.get("next", "/"), act)

    return [overview, pause_all]


def _view(site: Site, figures: Mapping[str, Any]) -> dict[str, Any]:
    now = figures["at"] or site.store.now()
    away = figures["error"] is not None
    entries = [] if away else site.store.audit_log(people=True, limit=LAST_ACTIONS).entries
    return {
        "screen": "overview",
        "f": figures,
        "t": _totals(figures) | {"died": None if away else _died(site, figures["totals"]["dead"], now)},
        "died_cap": DIED_CAP,
        **left_alone({} if away else site.look.targets(), now),
        "recovered": None if away else _recovered(site.look.nodes(), now),
        "c": site.figures.chart("", now),
        "sent": site.figures.throughput(now),
        "audit": shown(entries),
        "now": now,
    }


def _died(site: Site, dead: int, now: datetime) -> int:
    """Return how many of the dead letters are of the last day, counted up to a cap."""
    query = JobQuery(states=DEAD, finished=Span(since=now - LATELY), limit=DIED_CAP)
    found: int = site.kept.answer("died", lambda: len(site.store.list_jobs(query).jobs)) if dead else 0
    return found


def _recovered(nodes: Iterable[NodeRow], now: datetime) -> Recovery | None:
    """Return what nodes recovered within the last minutes, all of them together."""
    told = [
        said for node in nodes if (said := read(node.note).recovered) and now - said.at < RECOVERED_LATELY
    ]
    if not told:
        return None
    told.sort(key=lambda each: each.at, reverse=True)
    fates: Counter[str] = Counter()
    for each in told:
        fates.update(each.fates)
    lanes = dict.fromkeys(lane for each in told for lane in each.lanes)
    return Recovery(told[0].at, fates, tuple(lanes))


def _totals(figures: Mapping[str, Any]) -> dict[str, Any]:
    totals: Mapping[str, Any] = figures["totals"]
    return {
        **totals,
        "in_flight": totals["claimed"] + totals["dispatched"] + totals["running"],
        "blocked": len(figures["blocked"]),
        "blocked_more": len(figures["blocked"]) == BLOCKED_SHOWN,
        "stuck": _stuck(figures["blocked"]),
        "forecast": _forecast(figures["lanes"], behind=totals["behind"]),
    }


def _stuck(blocked: Sequence[Mapping[str, Any]]) -> str | None:
    """Return how many jobs wait behind blocked groups, in words; None = none does."""
    behind = sum(group["behind"] for group in blocked)
    if not behind:
        return None
    more = len(blocked) == BLOCKED_SHOWN or any(group["behind"] >= BEHIND_CAP for group in blocked)
    wait = "waits" if behind == 1 else "wait"
    return f"{behind:,}{' or more' if more else ''} {wait} behind blocked groups"


def _forecast(lanes: Sequence[Mapping[str, Any]], *, behind: int) -> str | None:
    """Return when everything that is due will have gone, in words; `behind` lanes have something due.

    Of some nobody counted how much that is: they may stand, or grow, or take longer than all others.
    """
    waiting = [lane for lane in lanes if lane["forecast"] is not None]
    if not waiting:
        return None
    least = "at least " if behind > len(waiting) else ""
    growing = [lane["lane"] for lane in waiting if lane["forecast"].grows]
    if growing:
        return f"{growing[0]} grows" if len(growing) == 1 else f"{least}{len(growing)} lanes grow"
    ends = [lane["forecast"].at for lane in waiting]
    standing = sum(end is None for end in ends)
    if standing:
        return f"{least}{standing} of {max(behind, len(waiting))} lanes stand"
    return None if least else f"empty {max(ends):%H:%M:%S} UTC"


def _nothing_yet(figures: Mapping[str, Any]) -> bool:
    """Say whether no job was ever seen: then the page shows how to make one."""
    return not figures["error"] and not figures["jobs"] and not figures["ended"]


def first_view(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the first page shows: snippets that work here, and a list that ticks itself."""
    lanes = [lane["lane"] for lane in figures["lanes"]]
    return {
        "screen": "overview",
        "f": figures,
        "now": figures["at"],
        "lane": "hello" if "hello" in lanes or not lanes else lanes[0],
        "made": {
            "store": figures["node"]["store"] != "",
            "node": bool(figures["nodes"]),
            "lane": bool(lanes),
            "job": bool(figures["jobs"] or figures["ended"]),
            "sent": any(job["state"] == "succeeded" for job in figures["ended"]),
        },
    }
