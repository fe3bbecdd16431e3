"""`/api/jobs`: enqueue one or many, look at one, list."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.bodies import batch_of, json_text
from penstock.api.desk import Desk, json_answer, tagged
from penstock.api.params import (
    Items,
    Kind,
    flag,
    idempotency_key,
    items_of,
    line,
    number,
    read_params,
    states,
    text,
    time,
)
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.filters import SCHEDULED, Order, Span
from penstock.domain.job import Enqueued
from penstock.domain.masking import without_credentials
from penstock.domain.names import MAX_LABEL_BYTES, BadName, check_label
from penstock.domain.queries import Filters, job_query
from penstock.domain.states import TERMINAL, JobState
from penstock.empty import why_empty
from penstock.errors import InvalidJob, InvalidQuery, PenstockError
from penstock.observability.enqueueing import carrying
from penstock.wire import (
    batch_object,
    encode,
    enqueue_object,
    explanation_object,
    job_object,
    raw,
    timeline_object,
)

PAGE: Final = 50
TOO_BROAD: Final = "the filter is broad: narrow the time range or name a lane, or go on with `next`"
KINDS: Final[Mapping[str, Kind]] = {
    "filter": line, "lane": text, "group": text, "tenant": text, "key": text, "after": text, "order": text,
    "state": states, "limit": number, "payloads": flag,
}  # fmt: skip
SPAN: Final[Mapping[str, Kind]] = {"from": time, "to": time}


def job_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers of jobs."""

    @post("/api/jobs", opt=needs(Scope.ENQUEUE, tenants=True))
    async def enqueue(request: Request[Any, Any, Any]) -> Response[bytes]:
        body = await json_text(request)
        key = idempotency_key(request)
        with carrying(request.headers.get("traceparent")):
            made = await desk.ask(_enqueue, desk.acting(request), body, key)
        location = None if made.id is None else f"/api/jobs/{made.id}"
        return json_answer(made.text, status=made.status, location=location)

    @get("/api/jobs", opt=needs(Scope.READ, tenants=True))
    async def list_jobs(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_list, desk.acting(request), items_of(request)))

    @get("/api/jobs/scheduled", opt=needs(Scope.READ, tenants=True))
    async def scheduled(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_scheduled, desk.acting(request), items_of(request)))

    @get("/api/jobs/history", opt=needs(Scope.READ, tenants=True))
    async def history(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_history, desk.acting(request), items_of(request)))

    @get("/api/jobs/{job_id:str}", opt=needs(Scope.READ, tenants=True))
    async def get_job(request: Request[Any, Any, Any]) -> Response[bytes]:
        client, job_id = desk.acting(request), request.path_params["job_id"]
        return tagged(request, await desk.ask(lambda: encode(job_object(client.get(job_id)))), of_job=True)

    @get("/api/jobs/{job_id:str}/explain", opt=needs(Scope.READ, tenants=True))
    async def explain(request: Request[Any, Any, Any]) -> Response[bytes]:
        client, job_id = desk.acting(request), request.path_params["job_id"]
        return json_answer(await desk.ask(lambda: encode(explanation_object(client.explain(job_id)))))

    @get("/api/jobs/{job_id:str}/timeline", opt=needs(Scope.READ, tenants=True))
    async def get_timeline(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_timeline, desk.acting(request), request.path_params["job_id"]))

    @get("/api/jobs/{job_id:str}/versions", opt=needs(Scope.PAYLOAD, tenants=True))
    async def versions(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_versions, desk.acting(request), request.path_params["job_id"]))

    return [enqueue, list_jobs, scheduled, history, get_job, explain, get_timeline, versions]


class _Made(NamedTuple):
    status: int
    text: str
    id: str | None = None


def _enqueue(client: Client, text: str, key: str | None) -> _Made:
    elements = batch_of(text, "jobs")
    if elements is not None:
        return _Made(200, _enqueue_many(client, elements, key))
    given = _with_key(enqueue_object(text), key)
    [answer] = client.enqueue_many([given])
    if isinstance(answer, PenstockError):
        raise answer
    return _Made(200 if answer.duplicate else 201, _made(client, answer), answer.id)


def _with_key(given: dict[str, Any], key: str | None) -> dict[str, Any]:
    """Take the key of the Idempotency-Key header, unless the object has one of its own."""
    if key is None:
        return given
    if given.get("key") not in (None, key):
        raise InvalidJob("key", "differs from the header Idempotency-Key: send one of them")
    return {**given, "key": key}


def _made(client: Client, answer: Enqueued) -> str:
    """Return the job; it is written, so a store that fails now must not make it look refused."""
    try:
        shown = job_object(client.get(answer.id))
    except PenstockError:
        shown = {"id": answer.id}
    return encode(shown | ({"duplicate": True} if answer.duplicate else {}))


def _enqueue_many(client: Client, elements: Sequence[str], key: str | None) -> str:
    """Write the jobs; those without a key of their own get one of the request's and of their place in it.

    A key that is none for one of them is refused before anything is written.
    """
    answers: list[Enqueued | PenstockError | None] = []
    given = []
    for place, element in enumerate(elements):
        try:
            one = enqueue_object(element)
            own = key is None or one.get("key") is not None
            given.append(one if own else {**one, "key": _placed(key or "", place, among=len(elements))})
            answers.append(None)
        except InvalidJob as error:
            answers.append(error)
    written = iter(client.enqueue_many(given))
    return encode(batch_object([next(written) if answer is None else answer for answer in answers]))


def _placed(key: str, place: int, *, among: int) -> str:
    """Return the key of one of many jobs, or raise InvalidQuery."""
    try:
        check_label("key", key)
    except BadName as error:
        raise InvalidQuery("Idempotency-Key", str(error)) from None
    placed, most = f"{key}/{place}", MAX_LABEL_BYTES - len(f"/{among - 1}")
    if len(placed.encode()) > MAX_LABEL_BYTES:
        raise InvalidQuery(
            "Idempotency-Key",
            f"has {len(key.encode())} bytes in UTF-8, and with /{place} behind it more than the"
            f" {MAX_LABEL_BYTES} of a key: for {among} jobs use at most {most}, a hash for example",
        )
    return placed


def _list(client: Client, items: Items) -> str:
    return listed(client, cast("Filters", read_params(items, KINDS)))


def _scheduled(client: Client, items: Items) -> str:
    found = {"state": [*SCHEDULED], "order": Order.DUE} | read_params(items, KINDS)
    return listed(client, cast("Filters", found))


def _history(client: Client, items: Items) -> str:
    found = read_params(items, {**KINDS, **SPAN})
    span = Span(found.pop("from", None), found.pop("to", None))
    more = {"finished": span} if span else {}
    ends = [state.label for state in JobState if state in TERMINAL]
    live = [
        state.label for state in JobState if state not in TERMINAL and state.label in found.get("state", ())
    ]
    if live:
        raise InvalidQuery("state", f"{live[0]} is no end: this lists jobs that are {', '.join(ends)}")
    return listed(client, cast("Filters", {"state": [*TERMINAL], **found, **more}))


def listed(client: Client, filters: Filters) -> str:
    """Return one page of a list."""
    lane = filters.get("lane")
    if lane is not None:
        client.lane(lane)
    page = client.list(**filters)
    payloads = filters.get("payloads", False)
    jobs = [job_object(job, payload=payloads) for job in page.jobs]
    hint = None
    if page.next is not None:
        hint = TOO_BROAD if len(jobs) < filters.get("limit", PAGE) else None
    elif not jobs and filters.get("after") is None:
        hint = why_empty(client.store, job_query(filters, now=client.store.now))
    return encode({"jobs": jobs, "next": page.next} | ({} if hint is None else {"hint": hint}))


def _timeline(client: Client, job_id: str) -> str:
    return encode(timeline_object(client.get(job_id), client.timeline(job_id)))


def _versions(client: Client, job_id: str) -> str:
    job = client.get(job_id)
    found = client.store.payload_versions(job.id)
    shown = [
        {
            **version._asdict(),
            "payload": raw(version.payload),
            "headers": raw(without_credentials(version.headers)),
        }
        for version in found
    ]
    return encode({"id": job.id, "revision": job.live.revision, "versions": shown})
