"""`/api/jobs`: enqueue one or many, look at one, list."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.bodies import batch_of, json_text
from penstock.api.desk import Desk, json_answer
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.intake import check_text
from penstock.domain.job import Enqueued
from penstock.domain.names import near
from penstock.domain.queries import Filters
from penstock.errors import InvalidJob, InvalidQuery, PenstockError
from penstock.observability.enqueueing import carrying
from penstock.wire import (
    batch_object,
    encode,
    enqueue_object,
    explanation_object,
    job_object,
    timeline_object,
)

FILTERS: Final = ("filter", "lane", "group", "tenant", "key", "after", "order")
PAGE: Final = 50
TOO_BROAD: Final = "the filter is broad: narrow the time range or name a lane, or go on with `next`"
Items: TypeAlias = Sequence[tuple[str, str]]
KNOWN: Final = (*FILTERS, "state", "limit", "payloads")


def job_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers of jobs."""

    @post("/api/jobs", opt=needs(Scope.ENQUEUE, tenants=True))
    async def enqueue(request: Request[Any, Any, Any]) -> Response[bytes]:
        text = await json_text(request)
        key = request.headers.get("idempotency-key")
        with carrying(request.headers.get("traceparent")):
            made = await desk.ask(_enqueue, desk.acting(request), text, key)
        location = None if made.id is None else f"/api/jobs/{made.id}"
        return json_answer(made.text, status=made.status, location=location)

    @get("/api/jobs", opt=needs(Scope.READ, tenants=True))
    async def list_jobs(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_list, desk.acting(request), [*request.query_params.multi_items()]))

    @get("/api/jobs/{job_id:str}", opt=needs(Scope.READ, tenants=True))
    async def get_job(request: Request[Any, Any, Any]) -> Response[bytes]:
        client, job_id = desk.acting(request), request.path_params["job_id"]
        return json_answer(await desk.ask(lambda: encode(job_object(client.get(job_id)))))

    @get("/api/jobs/{job_id:str}/explain", opt=needs(Scope.READ, tenants=True))
    async def explain(request: Request[Any, Any, Any]) -> Response[bytes]:
        client, job_id = desk.acting(request), request.path_params["job_id"]
        return json_answer(await desk.ask(lambda: encode(explanation_object(client.explain(job_id)))))

    @get("/api/jobs/{job_id:str}/timeline", opt=needs(Scope.READ, tenants=True))
    async def get_timeline(request: Request[Any, Any, Any]) -> Response[bytes]:
        return json_answer(await desk.ask(_timeline, desk.acting(request), request.path_params["job_id"]))

    return [enqueue, list_jobs, get_job, explain, get_timeline]


class _Made(NamedTuple):
    status: int
    text: str
    id: str | None = None


def _enqueue(client: Client, text: str, key: str | None) -> _Made:
    elements = batch_of(text, "jobs")
    if elements is not None:
        return _Made(200, _enqueue_many(client, elements))
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


def _enqueue_many(client: Client, elements: Sequence[str]) -> str:
    answers: list[Enqueued | PenstockError | None] = []
    given = []
    for element in elements:
        try:
            given.append(enqueue_object(element))
            answers.append(None)
        except InvalidJob as error:
            answers.append(error)
    written = iter(client.enqueue_many(given))
    return encode(batch_object([next(written) if answer is None else answer for answer in answers]))


def _list(client: Client, items: Items) -> str:
    filters = _filters(items)
    lane = filters.get("lane")
    if lane is not None:
        client.lane(lane)
    page = client.list(**filters)
    payloads = filters.get("payloads", False)
    jobs = [job_object(job, payload=payloads) for job in page.jobs]
    partial = page.next is not None and len(jobs) < filters.get("limit", PAGE)
    return encode({"jobs": jobs, "next": page.next} | ({"hint": TOO_BROAD} if partial else {}))


def _filters(items: Items) -> Filters:
    found: dict[str, Any] = {}
    for name, value in items:
        if name == "state":
            found.setdefault("state", []).extend(value.split(","))
        elif name in found:
            raise InvalidQuery(name, "stands twice: give it once")
        elif name == "limit":
            found[name] = _number(name, value)
        elif name == "payloads":
            found[name] = _flag(name, value)
        elif name in FILTERS:
            found[name] = _text(name, value)
        else:
            raise InvalidQuery(name, f"there is no such filter; {_meant(name)}")
    return cast("Filters", found)


def _meant(name: str) -> str:
    close = near(name, KNOWN)
    return f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(KNOWN)}"


def _number(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise InvalidQuery(name, f"{value!r} is no whole number")
    return int(value)


def _flag(name: str, value: str) -> bool:
    if value not in {"true", "false"}:
        raise InvalidQuery(name, f"{value!r} is neither true nor false")
    return value == "true"


def _text(name: str, value: str) -> str:
    try:
        return check_text(value)
    except (ValueError, TypeError) as error:
        raise InvalidQuery(name, str(error)) from None


def _timeline(client: Client, job_id: str) -> str:
    return encode(timeline_object(client.get(job_id), client.timeline(job_id)))
