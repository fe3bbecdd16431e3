"""`/audit`: who did what, from what to what, and why."""

from collections.abc import AsyncIterator
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.domain.job import AuditPage
from penstock.ui.audits import shown
from penstock.ui.exporting import pages_from, while_allowed
from penstock.ui.site import AnyRequest, Site, lane_choice
from penstock.wire import encode

PAGE: Final = 50
EXPORT_PAGE: Final = 500
PEOPLE: Final = "people"


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/audit", opt=needs(Scope.READ))
    async def audit(request: AnyRequest) -> Response[bytes]:
        (lane, people), after = _asked(request), request.query_params.get("after")
        return await site.page(
            request, "audit.html", lambda: _view(site.seen_by(request), lane, after, people)
        )

    @get("/audit/export", opt=needs(Scope.READ))
    async def export(request: AnyRequest) -> Stream:
        seen, (lane, people) = site.seen_by(request), _asked(request)
        first = await seen.desk.ask(_page, seen, lane, people, None)
        disposition = {
            "Content-Disposition": 'attachment; filename="audit.jsonl"',
            "Cache-Control": "no-store",
        }
        lines = while_allowed(request, _exported(seen, lane, people, first))
        return Stream(lines, media_type="application/x-ndjson", headers=disposition)

    return [audit, export]


def _asked(request: AnyRequest) -> tuple[str, str]:
    return request.query_params.get("lane", "").strip(), request.query_params.get("by", PEOPLE)


def _page(site: Site, lane: str, people: str, after: str | None, limit: int = EXPORT_PAGE) -> AuditPage:
    return site.store.audit_log(lane=lane or None, people=people == PEOPLE, limit=limit, after=after)


async def _exported(site: Site, lane: str, people: str, first: AuditPage) -> AsyncIterator[bytes]:
    """Yield a line for each entry of what the page shows, as long as somebody reads."""
    async for page in pages_from(first, lambda after: site.desk.ask(_page, site, lane, people, after)):
        for entry in page.entries:
            yield f"{encode(entry._asdict())}\n".encode(errors="replace")


def _view(site: Site, lane: str, after: str | None, people: str) -> dict[str, Any]:
    figures = site.figures.now()
    page = _page(site, lane, people, after, PAGE)
    return {
        "screen": "audit",
        "f": figures,
        "entries": shown(page.entries),
        "next": page.next,
        "base": {"lane": lane, "by": None if people == PEOPLE else people},
        "lane": lane,
        "people": people,
        **lane_choice(site, figures, lane),
        "now": figures["at"] or site.store.now(),
    }
