"""`/history`: what ended, by time, lane and outcome, newest first."""

from collections import Counter
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.filters import Page
from penstock.domain.states import TERMINAL
from penstock.errors import InvalidQuery
from penstock.ui.site import AnyRequest, Site, lane_choice
from penstock.wire import job_object

PAGE: Final = 50
ENDS: Final = ("succeeded", "dead", "cancelled", "skipped", "expired")
SPANS: Final = (("", "all that is kept"), ("1h", "last hour"), ("1d", "last day"), ("7d", "last week"))


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/history", opt=needs(Scope.READ))
    async def history(request: AnyRequest) -> Response[bytes]:
        asked = {
            name: request.query_params.get(name, "").strip() for name in ("lane", "state", "within", "after")
        }
        return await site.page(request, "history.html", lambda: _view(site.seen_by(request), asked))

    return [history]


def _view(site: Site, asked: dict[str, str]) -> dict[str, Any]:
    figures = site.figures.now()
    line, problem = _line(asked), None
    try:
        wanted = (asked["state"],) if asked["state"] else tuple(state.label for state in TERMINAL)
        page = site.client.list(filter=line, state=wanted, limit=PAGE, after=asked["after"] or None)
    except InvalidQuery as error:
        page, problem = Page([], None), str(error)
    shown = [job_object(job, payload=False) for job in page.jobs]
    return {
        "screen": "history",
        "f": figures,
        "page": page,
        "jobs": shown,
        "problem": problem,
        "now": figures["at"] or site.store.now(),
        "base": {name: asked[name] for name in ("lane", "state", "within")},
        "asked": asked,
        "ends": ENDS,
        "spans": SPANS,
        **lane_choice(site, figures, asked["lane"]),
        "outcomes": Counter(job["state"] for job in shown),
        "line": f"{line} state:{asked['state'] or ','.join(ENDS)}".strip(),
    }


def _line(asked: dict[str, str]) -> str:
    terms = []
    if asked["lane"]:
        terms.append(f"lane:{asked['lane']}")
    if asked["within"]:
        terms.append(f"finished<{asked['within']}")
    return " ".join(terms)
