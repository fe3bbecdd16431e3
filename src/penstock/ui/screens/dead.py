"""`/dead`: dead letters by what killed them, with the way to send them again."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs, who_of
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.causes import causes
from penstock.domain.job import Job
from penstock.domain.states import JobState
from penstock.ui.site import AnyRequest, Site

LOOKED_AT: Final = 500
HOURS: Final = 24


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/dead", opt=needs(Scope.READ))
    async def dead(request: AnyRequest) -> Response[bytes]:
        lane, after = request.query_params.get("lane", "").strip(), request.query_params.get("after")
        who = who_of(request)
        sees = (who.tenant, who.scopes) if who is not None else None
        return await site.page(request, "dead.html", lambda: _view(site.seen_by(request), lane, after, sees))

    return [dead]


def _view(site: Site, lane: str, after: str | None, sees: object) -> dict[str, Any]:
    figures = site.figures.now()
    now = figures["at"] or site.store.now()
    lanes = [each for each in figures["lanes"] if each["dead"]]
    asked = site.figures.lane(lane, figures) if lane else figures["totals"]
    # Hundreds of jobs are read for some lines: once a second, for all who see the same.
    found = site.kept.answer(("dead", lane, after, sees), lambda: _found(site.client, lane, after, now))
    return {
        "screen": "dead",
        "f": figures,
        "lane": lane,
        "lanes": lanes,
        "total": asked["dead"] if asked else 0,
        "elsewhere": figures["totals"]["dead"] - sum(each["dead"] for each in lanes),
        "base": {"lane": lane},
        "now": now,
        **found,
    }


def _found(client: Client, lane: str, after: str | None, now: datetime) -> dict[str, Any]:
    page = client.list(lane=lane or None, state=JobState.DEAD, limit=LOOKED_AT, after=after)
    jobs = page.jobs
    return {
        "causes": causes(jobs),
        "looked_at": len(jobs),
        "next": page.next,
        "trend": _trend(jobs, now),
    }


def _trend(jobs: list[Job], now: datetime) -> list[int]:
    """Return how many of these died in each of the last hours, the oldest first."""
    ago = Counter(int((now - job.finished_at) / timedelta(hours=1)) for job in jobs if job.finished_at)
    return [ago.get(hour, 0) for hour in range(HOURS - 1, -1, -1)]
