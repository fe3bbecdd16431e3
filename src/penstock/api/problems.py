"""Every refusal as RFC 9457 problem JSON: what is wrong, and in `hint` what to do about it."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from litestar import Request, Response
from litestar.exceptions import HTTPException

from penstock.api.marks import mark_of
from penstock.errors import (
    Forbidden,
    InUse,
    InvalidCursor,
    InvalidFilter,
    InvalidJob,
    InvalidQuery,
    InvalidSetting,
    KeyConflict,
    LaneFull,
    NotFound,
    PenstockError,
    SchemaMismatch,
    StoreUnavailable,
    UnknownLane,
    VersionChanged,
)
from penstock.observability.logs import FIELDS
from penstock.wire import encode

MEDIA_TYPE: Final = "application/problem+json"
TYPE: Final = "urn:penstock:problem:"
LONGEST: Final = 1000
AGAIN_AFTER_S: Final = "1"
_LOG: Final = logging.getLogger("penstock.api")
_HINTS: Final[Mapping[int, tuple[str, str]]] = {
    404: ("not-found", "docs/reference/api.md lists the addresses there are"),
    405: ("method-not-allowed", "the Allow header names the methods of this address"),
    413: ("too-large", "send less at a time: at most 1,000 jobs and 8 MiB in one request"),
}


_NOT_FOUND: Final = {
    "job": "use the id as POST /api/jobs returned it; a finished job is dropped when it is old",
    "lane": "GET /api/lanes lists them; PUT /api/lanes/NAME makes one",
    "pool": "GET /api/pools lists them; PUT /api/pools/NAME makes one",
    "user": "GET /api/users lists them; PUT /api/users/NAME with a password and a role, or scopes, adds one",
    "operation": "GET /api/operations lists them; they are kept for 30 days",
}


class Problem(Exception):
    """A refusal as it is sent; `facts` are members beside the usual ones."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        hint: str,
        headers: Mapping[str, str] | None = None,
        **facts: object,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.hint = status, kind, detail, hint
        self.headers = dict(headers or {})
        self.facts = facts
        self.written: Mapping[str, str] = {}  # what a refused form held; only the page for its sender has it

    def body(self, request: str = "") -> bytes:
        """Return the JSON; `request` is the id of the request that it answers."""
        members = {
            "type": TYPE + self.kind,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": _short(self.detail),
            "hint": _short(self.hint),
            **({"request": request} if request else {}),
            **self.facts,
        }
        # What callers sent comes back in the words: a lone surrogate in it is no UTF-8.
        return encode(members).encode(errors="replace")


def problem_of(error: PenstockError) -> Problem:
    """Return the problem that an error of Penstock is."""
    match error:
        case LaneFull(lane=lane):
            hint = f"try again later, or let it hold more: penstock lanes set {lane} max_depth=N"
            return Problem(
                429, "lane-full", str(error), hint=hint, headers={"Retry-After": AGAIN_AFTER_S}, lane=lane
            )
        case InvalidJob(field="object"):
            return _bad_json(str(error))
        case InvalidJob(field=field):
            hint = f"correct {_short(field)} and send it again; nothing was written"
            if _short(field) == "id" and "already" in str(error):
                hint = "if you repeat a request, this is the job that it made: GET /api/jobs/ID shows it"
            return Problem(422, "invalid-job", str(error), hint=hint, field=_short(field))
        case UnknownLane(near=near):
            hint = "penstock lanes list shows them; penstock lanes set NAME --create makes one"
            return Problem(422, "unknown-lane", str(error), hint=hint, field="lane", near=list(near))
        case KeyConflict(job_id=job, key=key):
            hint = f"GET /api/jobs/{job} shows it"
            return Problem(409, "key-conflict", str(error), hint=hint, job=job, key=key)
        case NotFound(kind=kind):
            return Problem(404, "not-found", str(error), hint=_NOT_FOUND.get(kind, "look for it in its list"))
        case InvalidCursor():
            hint = "give `next` of the page before as `after`, with the same filters, or leave it out"
            return Problem(400, "invalid-cursor", str(error), hint=hint, field="after")
        case InvalidFilter(position=position, fix=fix):
            return Problem(422, "invalid-query", str(error), hint=fix, field="filter", position=position)
        case InvalidQuery(field=field):
            hint = f"correct {_short(field)} and send it again; nothing was changed"
            return Problem(422, "invalid-query", str(error), hint=hint, field=_short(field))
        case _:
            return _changed_problem(error)


def _changed_problem(error: PenstockError) -> Problem:
    match error:
        case Forbidden():
            hint = "use a key or a login that may: penstock access list shows what each one may do"
            return Problem(403, "forbidden", str(error), hint=hint)
        case VersionChanged(version=version):
            hint = "GET it again, change what is there now, and send its ETag as If-Match"
            return Problem(412, "version-changed", str(error), hint=hint, version=version)
        case InUse():
            return Problem(409, "in-use", str(error), hint="do what it says first; nothing was changed")
        case InvalidSetting(setting=setting):
            hint = f"correct {_short(setting)}: docs/reference/configuration.md lists the settings"
            return Problem(422, "invalid-setting", str(error), hint=hint, field=_short(setting))
        case _:
            return _store_problem(error)


def _store_problem(error: PenstockError) -> Problem:
    match error:
        case StoreUnavailable():
            hint = "the same request may succeed later; with a `key` or an `id` it makes one job"
            return Problem(
                503, "store-unavailable", str(error), hint=hint, headers={"Retry-After": AGAIN_AFTER_S}
            )
        case SchemaMismatch(problem=problem, fix=fix):
            return Problem(503, "schema-mismatch", problem, hint=fix)
        case _:
            return Problem(422, "refused", str(error), hint="nothing was changed")


def _bad_json(detail: str) -> Problem:
    return Problem(
        400, "bad-json", detail, hint='write one object, like {"lane": "hello", "payload": {"n": 1}}'
    )


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the response to an error; one that nobody foresaw is logged and tells nothing of itself."""
    match error:
        case Problem():
            problem = error
        case PenstockError():
            problem = problem_of(error)
        case HTTPException(status_code=status, detail=detail) if status < 500:
            kind, hint = _HINTS.get(status, ("refused", "see docs/reference/api.md"))
            words = detail or HTTPStatus(status).phrase
            problem = Problem(status, kind, words, hint=hint, headers=_allowing(error.headers))
        case _:
            mark, what = mark_of(request), f"{request.method} {request.scope['path']}"
            _LOG.error("request %s failed: %s", mark, what, exc_info=error, extra={FIELDS: {"request": mark}})
            hint = f"its log has the trace, under request {mark}: report it"
            problem = Problem(500, "internal", "something went wrong in the node", hint=hint)
    return Response(
        problem.body(mark_of(request)),
        media_type=MEDIA_TYPE,
        status_code=problem.status,
        headers=problem.headers,
    )


def _allowing(headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Name HEAD among the methods that an address has, where it has GET."""
    known = (headers or {}).get("allow", "").split(", ")
    return {**(headers or {}), "allow": ", ".join(sorted({*known, "HEAD"}))} if "GET" in known else headers


def unknown_caller(detail: str = "this node wants to know who is asking") -> Problem:
    """Return the problem of a request that proves nothing."""
    return Problem(
        401,
        "unknown-caller",
        detail,
        hint="send `Authorization: Bearer pk_…` with an API key (penstock access create NAME; commands take"
        " it from PENSTOCK_API_KEY or their profile), or log in",
        headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
