"""`/jobs`: the list that a filter shows, the way to put one job in, and an export."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect, Stream

from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.filter_line import NAMES, read_filter
from penstock.domain.filters import SCHEDULED, JobQuery, Order, Page
from penstock.domain.masking import without_content
from penstock.domain.payloads import Json
from penstock.domain.queries import job_query
from penstock.domain.states import JobState
from penstock.domain.texts import no_formula
from penstock.domain.ulid import BadUlid
from penstock.domain.ulid import parse as parse_ulid
from penstock.empty import why_empty
from penstock.errors import InvalidJob, InvalidQuery, PenstockError
from penstock.ui.columns import COLUMNS, NUMBERS, chosen, rare, said
from penstock.ui.counting import count_of, count_to_the_cap
from penstock.ui.exporting import pages_from, while_allowed
from penstock.ui.ranges import ABOUT, RANGES, ranged
from penstock.ui.rendering import query as query_string
from penstock.ui.site import REFUSED, AnyRequest, Site, acted, form, kept, may, once, whole
from penstock.ui.telling import back
from penstock.ui.times import until_of
from penstock.wire import encode, job_object

PAGE: Final = 50
EXPORT_PAGE: Final = 500
EXPORTED: Final = (
    "id", "lane", "group", "state", "reason", "run_at", "attempt", "tenant", "key", "created_at",
    "finished_at", "last_error",
)  # fmt: skip
QUICK: Final = (
    ("all", ""), ("due", "state:pending run<0s"), ("scheduled", "state:pending,waiting run>0s"),
    ("in flight", "state:claimed,dispatched,running"), ("held", "state:held"), ("dead", "state:dead"),
    ("succeeded", "state:succeeded"), ("failed tries", "state:pending attempt>0"),
)  # fmt: skip
FIELDS: Final = ("group", "tenant", "key", "target", "entity", "correlation")


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/jobs", opt=needs(Scope.READ))
    async def jobs(request: AnyRequest) -> Response[bytes]:
        given = request.query_params
        line, after, columns = given.get("q", "").strip(), given.get("after"), chosen(given.getall("col", []))
        found = _is_id(line)
        if found is not None:
            return Redirect(f"/jobs/{found}", status_code=303)
        if "range" in given:
            line = await site.desk.ask(_ranged, line, dict(given.multi_items()))
            return Redirect(f"/jobs{query_string({'q': line, 'col': said(columns)})}", status_code=303)
        return await site.page(
            request, "jobs.html", lambda: _view(site.seen_by(request), line, after, columns)
        )

    @get("/jobs/count", opt=needs(Scope.READ))
    async def count(request: AnyRequest) -> Response[bytes]:
        line = request.query_params.get("q", "").strip()
        return await site.page(request, "count.html", lambda: _counted(site.seen_by(request), line))

    @get("/jobs/export", opt=needs(Scope.READ))
    async def export(request: AnyRequest) -> Stream:
        line, kind = request.query_params.get("q", "").strip(), request.query_params.get("as", "jsonl")
        payloads, seen = may(request, Scope.PAYLOAD), site.seen_by(request)
        first = await site.desk.ask(_page, seen, line, None, payloads)
        name = f"jobs.{'csv' if kind == 'csv' else 'jsonl'}"
        return Stream(
            while_allowed(request, _exported(seen, line, first, csv_wanted=kind == "csv", payloads=payloads)),
            media_type="text/csv" if kind == "csv" else "application/x-ndjson",
            headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
        )

    @get("/ui/names", opt=needs(Scope.READ))
    async def names() -> dict[str, Any]:
        lanes = await site.desk.ask(lambda: sorted(site.look.lanes())[:500])
        fields: dict[str, list[str]] = {f"{name.removesuffix('.NAME')}:": [] for name in NAMES}
        fields["lane:"], fields["state:"] = lanes, [state.label for state in JobState]
        fields["mode:"] = ["immediate", "next_on_error", "block_on_error"]
        return {"lanes": lanes, "fields": fields}

    return [jobs, count, export, names, *_making_routes(site)]


def _making_routes(site: Site) -> list[HTTPRouteHandler]:
    @get("/jobs/new", opt=needs(Scope.ENQUEUE))
    async def new_job(request: AnyRequest) -> Response[bytes]:
        fields = {"lane": request.query_params.get("lane", ""), "payload": '{"n": 1}'}
        return await site.page(request, "job_new.html", lambda: _new_view(site, fields))

    @post("/jobs/new", opt=needs(Scope.ENQUEUE))
    async def make_job(request: AnyRequest) -> Response[bytes] | Redirect:
        fields = await form(request)
        try:
            made = await site.desk.ask(_enqueue, site.seen_by(request), fields)
        except PenstockError as error:
            refused = kept(fields, error)
            return await site.page(
                request, "job_new.html", lambda: _new_view(site, fields) | refused, status=REFUSED
            )
        return back(f"/jobs/{made}", "The job was accepted.")

    @post("/demo", opt=needs(Scope.ENQUEUE))
    async def demo(request: AnyRequest) -> Response[Any]:
        seen, admin = site.seen_by(request), may(request, Scope.ADMIN)
        return await acted(site, request, "/", lambda: _demo(seen.client, admin=admin))

    return [new_job, make_job, demo]


def _is_id(line: str) -> str | None:
    try:
        return parse_ulid(line)
    except BadUlid:
        return None


def _page(site: Site, line: str, after: str | None, payloads: bool, limit: int = EXPORT_PAGE) -> Page:  # noqa: FBT001
    return site.client.list(filter=line, after=after, payloads=payloads, limit=limit)


def _ranged(line: str, asked: Mapping[str, str]) -> str:
    try:
        return ranged(line, asked)
    except InvalidQuery:  # the page says what is wrong with it
        return line


def _view(site: Site, line: str, after: str | None, columns: Sequence[str]) -> dict[str, Any]:
    figures, all_facts = site.figures.now(), rare(columns)
    now = figures["at"] or site.store.now()
    try:
        query = _query(line, after, now)
        page, problem = site.store.list_jobs(query), None
        count = count_of(query, page, lambda: site.kept.answer("counts", site.store.counts))
        why = None if page.jobs or page.next else why_empty(site.look, query)
    except InvalidQuery as error:
        page, problem, why, query, count = Page([], None), str(error), None, None, None
    return {
        "screen": "jobs",
        "f": figures,
        "line": line,
        "page": page,
        "rows": [(job, job_object(job, payload=False) if all_facts else None) for job in page.jobs],
        "problem": problem,
        "why": why,
        "count": count,
        "sifted": query is not None and query.where != (),
        "now": now,
        "quick": QUICK,
        "base": {"q": line, "col": said(columns)},
        "after": after,
        "columns": columns,
        "known": COLUMNS,
        "numbers": NUMBERS,
        "ranges": RANGES,
        "about": ABOUT,
    }


def _query(line: str, after: str | None, now: datetime) -> JobQuery:
    order = _order(line, lambda: now)
    return job_query({"filter": line, "after": after, "limit": PAGE, "order": order}, now=lambda: now)


def _counted(site: Site, line: str) -> dict[str, Any]:
    return {"line": line, "count": count_to_the_cap(site.store, _query(line, None, site.store.now()))}


def _order(line: str, now: Callable[[], datetime]) -> Order:
    """Jobs of which the line says when they are due come as they will go; an index has them so."""
    read = read_filter(line, now=now)
    return (
        Order.DUE if "run" in read and read.get("state", frozenset(JobState)) <= SCHEDULED else Order.NEWEST
    )


def _new_view(site: Site, fields: Mapping[str, str]) -> dict[str, Any]:
    lanes, key = sorted(site.look.lanes()), fields.get("once") or once()
    return {"screen": "jobs", "lanes": lanes, "fields": fields, "once": key, "problem": None}


def _enqueue(site: Site, fields: Mapping[str, str]) -> str:
    text = fields.get("payload", "")
    given: dict[str, Any] = {name: fields[name] for name in FIELDS if fields.get(name)}
    if fields.get("once"):
        given.setdefault("key", fields["once"])
    at = until_of(fields.get("run_at", ""), site.store.now())
    if at is not None:
        given["run_at"] = at
    if fields.get("sequence"):
        given["sequence"] = whole(fields["sequence"])
        if given["sequence"] is None:
            raise InvalidJob("sequence", "write a whole number")
    return site.client.enqueue(fields.get("lane", ""), Json(text) if text else None, **given).id


def _demo(client: Client, *, admin: bool) -> str:
    from penstock.domain.lanes import lane  # noqa: PLC0415 - `lane` is a word of this module's

    if "hello" not in client.store.lanes() and admin:
        client.store.put_lane(lane("hello"), actor=client.actor)
    made = client.enqueue("hello", {"hello": "world"})
    return f"Job {made.id} is in the lane hello."


async def _exported(
    site: Site, line: str, first: Page, *, csv_wanted: bool, payloads: bool
) -> AsyncIterator[bytes]:
    """Yield a line for each job, as long as somebody reads."""
    if csv_wanted:
        yield _row(EXPORTED)
    async for page in pages_from(first, lambda after: site.desk.ask(_page, site, line, after, payloads)):
        for job in page.jobs:
            shown = job_object(job if payloads else without_content(job), payload=payloads)
            yield (
                _row([_cell(shown[name]) for name in EXPORTED])
                if csv_wanted
                else f"{encode(shown)}\n".encode()
            )


def _row(cells: Any) -> bytes:  # noqa: ANN401 - whatever csv writes
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode(errors="replace")


def _cell(value: object) -> object:
    text = encode(value).strip('"') if not isinstance(value, str | int | type(None)) else value
    return no_formula(text) if isinstance(text, str) else text
