"""`/audit`: who did what, from what to what, and why."""

from collections.abc import Iterator
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from penstock.api.scopes import needs
from penstock.domain.access import Scope
from penstock.ui.audits import shown
from penstock.ui.site import AnyRequest, Site
from penstock.wire import encode

PAGE: Final = 50
EXPORTED: Final = 500


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/audit", opt=needs(Scope.READ))
    async def audit(request: AnyRequest) -> Response[bytes]:
        lane, after = request.query_params.get("lane", "").strip(), request.query_params.get("after")
        people = request.query_params.get("by", "people")
        return await site.page(request, "audit.html", lambda: _view(site, lane, after, people))

    @get("/audit/export", opt=needs(Scope.READ))
    async def export(request: AnyRequest) -> Stream:
        lane = request.query_params.get("lane", "").strip() or None
        page = await site.desk.ask(lambda: site.store.audit_log(lane=lane, limit=EXPORTED))

        def lines() -> Iterator[bytes]:
            for entry in page.entries:
                yield f"{encode(entry._asdict())}\n".encode(errors="replace")

        disposition = {
            "Content-Disposition": 'attachment; filename="audit.jsonl"',
            "Cache-Control": "no-store",
        }
        return Stream(lines(), media_type="application/x-ndjson", headers=disposition)

    return [audit, export]


def _view(site: Site, lane: str, after: str | None, people: str) -> dict[str, Any]:
    figures = site.figures.now()
    page = site.store.audit_log(lane=lane or None, people=people == "people", limit=PAGE, after=after)
    return {
        "screen": "audit",
        "f": figures,
        "entries": shown(page.entries),
        "next": page.next,
        "base": {"lane": lane, "by": None if people == "people" else people},
        "lane": lane,
        "people": people,
        "lanes": [each["lane"] for each in figures["lanes"]],
        "now": figures["at"] or site.store.now(),
    }
