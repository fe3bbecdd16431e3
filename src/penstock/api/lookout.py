"""What stands where: groups, targets, nodes, the audit, dead letters by cause, figures per lane."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler

from penstock.api.desk import Desk, json_answer, tagged
from penstock.api.lane_stats import lane_stats
from penstock.api.params import PAGED, Items, flag, items_of, line, read_params, text
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.causes import causes
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import Job
from penstock.domain.queries import job_query
from penstock.empty import why_empty
from penstock.wire import audit_entry_object, encode, group_object, node_object, target_object

READ: Final = needs(Scope.READ)
MOST_DEAD: Final = 10_000
TOO_BROAD: Final = "older dead letters are not counted: narrow it, for example finished<1d"


@dataclass(slots=True)
class DeadLetters:
    """The last dead letters of a filter, a bounded number of them; `more`: there are others."""

    client: Client
    line: str
    more: bool = False

    def __iter__(self) -> Iterator[Job]:
        after = None
        for _ in range(MOST_DEAD // MAX_PAGE):
            page = self.client.list(filter=self.line, state="dead", limit=MAX_PAGE, after=after)
            yield from page.jobs
            after = page.next
            if after is None:
                return
        self.more = True


def lookout_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/api/groups", opt=READ)
    async def list_groups(request: Request[Any, Any, Any]) -> Response[bytes]:
        return tagged(request, await desk.ask(_groups, desk.acting(request), items_of(request)))

    @get("/api/targets", opt=READ)
    async def targets(request: Request[Any, Any, Any]) -> Response[bytes]:
        found = await desk.ask(desk.acting(request).store.targets)
        return tagged(request, encode({"targets": [target_object(found[name]) for name in sorted(found)]}))

    @get("/api/nodes", opt=READ)
    async def nodes(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_nodes, desk.acting(request)))

    @get("/api/audit", opt=READ)
    async def audit(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_audit, desk.acting(request), items_of(request)))

    @get("/api/dead", opt=needs(Scope.READ, tenants=True))
    async def dead(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_dead, desk.acting(request), items_of(request)))

    @get("/api/jobs/counts", opt=READ)
    async def counts(request: Request[Any, Any, Any]) -> Response[bytes]:
        return tagged(request, await desk.ask(_counts, desk.acting(request)))

    @get("/api/jobs/stats", opt=READ)
    async def stats(request: Request[Any, Any, Any]) -> Response[bytes]:
        client = desk.acting(request)
        return json_answer(await desk.ask(lambda: encode(lane_stats(client))))

    return [list_groups, targets, nodes, audit, dead, counts, stats]


def _groups(client: Client, items: Items) -> str:
    found = read_params(items, {"lane": text, "group": text, "blocked": flag, **PAGED})
    if "lane" in found:
        client.lane(found["lane"])
    page = client.store.list_groups(**found)
    return encode({"groups": [group_object(row) for row in page.groups], "next": page.next})


def _nodes(client: Client) -> str:
    now, found, leader = client.store.now(), client.store.nodes(), client.store.leader()
    shown = [
        node_object(node, now, leader)
        | {"silent_s": round(max(timedelta(0), now - node.seen_at).total_seconds(), 3)}
        for node in found
    ]
    return encode({"nodes": shown, "leader": leader})


def _audit(client: Client, items: Items) -> str:
    page = client.store.audit_log(**read_params(items, {"lane": text, "people": flag, **PAGED}))
    return encode({"entries": [audit_entry_object(entry) for entry in page.entries], "next": page.next})


def _counts(client: Client) -> str:
    found: dict[str, dict[str, int]] = {}
    for (lane, state), n in sorted(client.counts().items()):
        found.setdefault(lane, {})[state.label] = n
    return encode({"lanes": found})


def _dead(client: Client, items: Items) -> str:
    found = read_params(items, {"filter": line, "lane": text})
    asked = found.get("filter", "")
    if "lane" in found:
        asked = f"{asked} lane:{client.lane(found['lane']).name}"
    letters = DeadLetters(client, asked)
    shown = [cause.as_object() for cause in causes(letters)]
    hint = TOO_BROAD if letters.more else None
    if not shown and hint is None:
        hint = why_empty(client.store, job_query({"filter": asked}, now=client.store.now))
    return encode({"causes": shown, "more": letters.more} | ({} if hint is None else {"hint": hint}))
