"""The OpenAPI document: what every route takes and gives, and which scope it needs.

Routes are described here and declared where they are served; `document` refuses to be made of a route that is
not described, so the document is complete, and the tests ask the API everything that it allows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from penstock.api.access_shapes import ACCESS_SHAPES
from penstock.api.desk import json_answer
from penstock.api.schemas import BOOLEAN, LIMIT, SCHEMAS, STRING, TIME, Schema, ref
from penstock.api.scopes import OPEN, needs_of
from penstock.api.standing_shapes import STANDING_SHAPES
from penstock.wire import encode

PATH: Final = "/api/openapi.json"
SERVED: Final = ("/api/", "/health/", "/metrics")
LIST: Final = {"limit": LIMIT, "after": STRING}
JOBS: Final = {
    "filter": STRING,
    "lane": STRING,
    "group": STRING,
    "tenant": STRING,
    "key": STRING,
    "state": STRING,
    "payloads": BOOLEAN,
    **LIST,
}
_COMMON: Final = {401: "who is asking is not known", 403: "not allowed", 503: "the store is away"}
_BODY: Final = {400: "no JSON", 413: "too large", 415: "not application/json", 422: "a value is wrong"}
_TEXTS: Final = {
    **_COMMON,
    **_BODY,
    404: "there is no such thing",
    409: "it cannot be done as things are",
    412: "somebody changed it meanwhile",
    429: "there is no room now",
    304: "as the ETag says",
}
_METRICS: Final = "text/plain"
_EVENTS: Final = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doc:
    """What a route takes and gives; `gives` is a shape by status, `fails` are statuses of problems."""

    summary: str
    gives: Mapping[int, str]
    takes: tuple[str, ...] = ()
    query: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Schema] = field(default_factory=dict)
    fails: tuple[int, ...] = ()
    media: str = "application/json"


def _look(summary: str, shape: str, *fails: int, **query: Schema) -> Doc:
    return Doc(
        summary=summary, gives={200: shape}, query=query, fails=(*fails, *((400, 422) if query else ()))
    )


def _kept(look: Doc) -> Doc:
    """Return what a look is that answers 304 to who has it already."""
    return replace(look, gives={**look.gives, 304: ""}, headers={**look.headers, "If-None-Match": STRING})


def _act(summary: str, takes: str, shape: str, *fails: int, **gives: str) -> Doc:
    more = {int(status.removeprefix("s")): name for status, name in gives.items()}
    return Doc(summary=summary, takes=(takes,), gives={200: shape, **more}, fails=(*_BODY, *fails))


def _named(word: str, shape: str) -> dict[str, Doc]:
    base, fails = f"/api/{word}s", (404, 409, 412)
    settings = Doc(
        summary=f"change a {word}, or make it",
        takes=("Settings",),
        gives={200: shape, 201: shape},
        headers={"If-Match": STRING, "If-None-Match": STRING},
        fails=(*_BODY, *fails),
    )
    return {
        f"GET {base}": _kept(_look(f"all {word}s", f"{shape}s")),
        f"GET {base}/{{name}}": _kept(_look(f"one {word}", shape, 404)),
        f"PUT {base}/{{name}}": settings,
        f"DELETE {base}/{{name}}": Doc(
            summary=f"delete a {word} that nothing needs",
            gives={200: "Deleted"},
            query={"reason": STRING},
            headers={"If-Match": STRING},
            fails=(404, 409, 412, 422),
        ),
        f"POST {base}/{{name}}/pause": _act(f"stop a {word}", "Pause", shape, 404),
        f"POST {base}/{{name}}/resume": _act(f"let a {word} go on", "Reason", shape, 404),
    }


def _verb(summary: str, takes: str) -> Doc:
    return _act(summary, takes, "Done", 404, 409, s202="Done")


JOB: Final = "/api/jobs/{job_id}"
DOCS: Final[Mapping[str, Doc]] = {
    "POST /api/jobs": Doc(
        summary="enqueue one job, or up to 1,000",
        takes=("NewJob", "NewJobs"),
        gives={200: "EnqueueAnswer", 201: "Job"},
        headers={"Idempotency-Key": STRING},
        fails=(*_BODY, 409, 429),
    ),
    "GET /api/jobs": _look("list jobs, page by page", "Jobs", order=STRING, **JOBS),
    "GET /api/jobs/scheduled": _look(
        "pending and waiting jobs, the next one first", "Jobs", order=STRING, **JOBS
    ),
    "GET /api/jobs/history": _look(
        "jobs that ended, the last one first", "Jobs", order=STRING, **JOBS, **{"from": TIME, "to": TIME}
    ),
    "GET /api/jobs/counts": _kept(_look("how many jobs of each lane are in which state", "Counts")),
    "GET /api/jobs/stats": _look("figures per lane", "LaneStats"),
    f"GET {JOB}": _kept(_look("one job", "Job", 404)),
    f"GET {JOB}/explain": _look("why it is where it is", "Explanation", 404),
    f"GET {JOB}/timeline": _look("what happened to it", "Timeline", 404),
    f"GET {JOB}/versions": _look("what it was to send at any time", "Versions", 404),
    f"POST {JOB}/cancel": _verb("end it, or ask its holder", "Cancel"),
    f"POST {JOB}/skip": _verb("pass over it", "Reason"),
    f"POST {JOB}/hold": _verb("park it", "Reason"),
    f"POST {JOB}/release": _verb("let it go", "Reason"),
    f"POST {JOB}/retry": _verb("send it now, or again", "Retry"),
    f"POST {JOB}/settle": _verb("say what became of it", "Settle"),
    f"POST {JOB}/edit": _verb("change what it sends", "Edit"),
    f"POST {JOB}/outcome": _act("an executor reports on a send", "Report", "Reported", 404),
    "POST /api/outcomes": _act("up to 1,000 reports", "Reports", "ReportedMany"),
    **_named("lane", "Lane"),
    "GET /api/lanes/{name}/sources": _look("where the settings of a lane come from", "Sources", 404),
    **_named("pool", "Pool"),
    "GET /api/groups": _kept(
        _look("ordered groups", "Groups", 404, lane=STRING, group=STRING, blocked=BOOLEAN, **LIST)
    ),
    "POST /api/groups/pause": _act("stop a group", "GroupPause", "GroupPaused"),
    "POST /api/groups/resume": _act("let a group go on", "GroupCommand", "GroupPaused"),
    "GET /api/targets": _kept(_look("targets in trouble, and paused ones", "Targets")),
    "POST /api/targets/reset": _act("close a target's breaker", "TargetCommand", "TargetReset"),
    "POST /api/targets/pause": _act("stop sending to a target", "TargetPause", "TargetPaused"),
    "POST /api/targets/resume": _act("let a target go on", "TargetCommand", "TargetPaused"),
    "GET /api/nodes": _look("nodes seen within the hour", "Nodes"),
    "POST /api/nodes/{node}/drain": _act("have a node claim nothing more", "Reason", "NodeDrain", 404),
    "POST /api/nodes/{node}/resume": _act("let a drained node claim again", "Reason", "NodeDrain", 404),
    "GET /api/audit": _look("who did what, newest first", "Audit", lane=STRING, people=BOOLEAN, **LIST),
    "GET /api/dead": _look("dead letters by cause", "Dead", filter=STRING, lane=STRING),
    "GET /api/pause": _look("the pause of everything", "StorePause"),
    "POST /api/pause": _act("stop everything", "Pause", "StorePause"),
    "POST /api/resume": _act("let everything go on", "Reason", "StorePause"),
    "POST /api/operations": Doc(
        summary="a verb on all that a filter finds: a count, or with dry_run false the beginning",
        takes=("NewOperation",),
        gives={200: "Preview", 202: "Operation"},
        headers={"Idempotency-Key": STRING},
        fails=(*_BODY, 409),
    ),
    "POST /api/replay": Doc(
        summary="send again what a filter finds among the dead: a count, or the beginning",
        takes=("Replay",),
        gives={200: "Preview", 202: "Operation"},
        headers={"Idempotency-Key": STRING},
        fails=(*_BODY, 409),
    ),
    "GET /api/operations": _look("bulk operations, newest first", "Operations", **LIST),
    "GET /api/operations/{operation_id}": _look("how far one is", "Operation", 404),
    "POST /api/operations/{operation_id}/stop": _act("stop one where it is", "Reason", "Operation", 404),
    "GET /api/access": _look("API keys, the newest first", "ApiKeys"),
    "POST /api/access": Doc(
        summary="make an API key, which is shown once",
        takes=("NewApiKey",),
        gives={201: "NewApiKeyMade"},
        fails=(*_BODY,),
    ),
    "DELETE /api/access/{name}": Doc(
        summary="revoke an API key, by its name or id",
        gives={200: "ApiKey"},
        query={"reason": STRING},
        fails=(404, 422),
    ),
    "GET /api/users": _look("people who log in", "Users"),
    "PUT /api/users/{name}": _act("add somebody, or change what he may do", "NewUser", "User", 404),
    "DELETE /api/users/{name}": Doc(
        summary="let somebody in no more",
        gives={200: "Deleted"},
        query={"reason": STRING},
        fails=(404, 422),
    ),
    "GET /api/stats": _look("the figures of the status page", "Anything"),
    "GET /api/events": Doc(
        summary="what changes, as it changes: server-sent events",
        gives={200: "Anything"},
        media=_EVENTS,
        query={"topics": STRING},
        headers={"Last-Event-ID": STRING},
        fails=(422, 429),
    ),
    "GET /api/openapi.json": _look("this document", "Anything"),
    "POST /api/dispatch/process": _act("deliver the job of a message", "Message", "Processed", 404),
    "POST /api/router/messages": _act(
        "messages for the router", "Anything", "Anything", 429, s202="Anything"
    ),
    "GET /health/live": _look("200 while the event loop turns", "Anything"),
    "GET /health/ready": Doc(
        summary="200, or 503 with the reasons", gives={200: "Anything", 503: "Anything"}
    ),
    "GET /metrics": Doc(summary="Prometheus", gives={200: "Anything"}, media=_METRICS),
}


class Undescribed(Exception):
    """A route is served that the document does not know."""

    def __init__(self, routes: Iterable[str]) -> None:
        super().__init__(f"{', '.join(sorted(routes))}: describe it in api/openapi.py")


def document(handlers: Iterable[HTTPRouteHandler], *, version: str) -> dict[str, Any]:
    """Return the document of these routes, those of people's pages left out."""
    paths: dict[str, dict[str, Any]] = {}
    undescribed = []
    for handler in handlers:
        for path in handler.paths:
            if not path.startswith(SERVED):
                continue
            plain = path.replace(":str", "")
            for method in handler.http_methods:
                doc = DOCS.get(f"{method} {plain}")
                if doc is None:
                    undescribed.append(f"{method} {plain}")
                else:
                    paths.setdefault(plain, {})[method.lower()] = _operation(handler, plain, doc)
    if undescribed:
        raise Undescribed(undescribed)
    enqueued = {"anyOf": [ref("Job"), ref("Enqueued")]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Penstock", "version": version, "license": {"name": "Apache-2.0"}},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**SCHEMAS, **STANDING_SHAPES, **ACCESS_SHAPES, "EnqueueAnswer": enqueued},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(handler: HTTPRouteHandler, path: str, doc: Doc) -> dict[str, Any]:
    needed = needs_of(handler)
    scope = None if needed is None or needed.scope is None else str(needed.scope)
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [_parameter(name, "path", STRING) for name in names]
    parameters += [_parameter(name, "query", schema) for name, schema in doc.query.items()]
    parameters += [_parameter(name, "header", schema) for name, schema in doc.headers.items()]
    made: dict[str, Any] = {
        "operationId": f"{handler.http_methods and min(handler.http_methods).lower()}{path}".replace(
            "/", "_"
        ),
        "summary": doc.summary,
        "parameters": parameters,
        "responses": _responses(doc),
        "x-penstock-scope": scope,
        "x-penstock-tenants": needed is not None and needed.tenants,
        "security": [{"key": []}] if scope else [],
    }
    if doc.takes:
        shapes = [ref(name) for name in doc.takes]
        schema = shapes[0] if len(shapes) == 1 else {"oneOf": shapes}
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _parameter(name: str, place: str, schema: Schema) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _responses(doc: Doc) -> dict[str, Any]:
    found: dict[str, Any] = {}
    problem = {"application/problem+json": {"schema": ref("Problem")}}
    for status in sorted({*doc.fails, *_COMMON}):
        found[str(status)] = {"description": _TEXTS[status], "content": problem}
    for status, shape in sorted(doc.gives.items()):
        schema = STRING if doc.media != "application/json" else ref(shape)
        content = {"content": {doc.media: {"schema": schema}}} if shape else {}
        found[str(status)] = {"description": _TEXTS.get(status, "done"), **content}
    return found


def openapi_route(handlers: Iterable[HTTPRouteHandler], *, version: str) -> HTTPRouteHandler:
    """Return the handler of the document, which is written once."""
    return described(handlers, version=version)[0]


def described(handlers: Iterable[HTTPRouteHandler], *, version: str) -> tuple[HTTPRouteHandler, str]:
    """Return the handler of the document, and the document."""

    @get(PATH, opt=OPEN)
    async def openapi() -> Response[bytes]:
        return json_answer(text)

    text = encode(document([*handlers, openapi], version=version))
    return openapi, text
