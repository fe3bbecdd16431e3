"""`/bulk` and `/operations`: a verb on all that a filter finds, counted before anything happens."""

import json
from collections.abc import Mapping
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.masking import MASK
from penstock.domain.operations import OPEN, STATES, OperationState, query_of
from penstock.domain.states import VERBS
from penstock.errors import InvalidQuery, NotFound, PenstockError
from penstock.ports.operations import Operation
from penstock.ui.site import AnyRequest, Site, acted, form, once, refused, whole
from penstock.ui.telling import back

PAGE: Final = 30
MOST_IDS: Final = 100
CUT_SHORT: Final = (OperationState.STOPPED, OperationState.FAILED)
WORDS: Final[Mapping[str, str]] = {
    "retry": "go again, in their order",
    "hold": "are parked until somebody releases them",
    "release": "go when they are due",
    "skip": "are passed over and never sent",
    "cancel": "end here",
}


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/bulk", opt=needs(Scope.OPERATE))
    async def preview(request: AnyRequest) -> Response[bytes]:
        given, client = request.query_params, site.acting(request)
        line = _line(given.get("q", "").strip(), given.get("ids", ""))
        verb = given.get("verb", "retry")
        if verb not in WORDS:  # an edit says what changes, and has no form here
            raise NotFound("bulk operation", verb)
        return await site.page(request, "bulk.html", lambda: _preview_view(client, verb, line))

    @post("/bulk", opt=needs(Scope.OPERATE))
    async def start(request: AnyRequest) -> Response[Any]:
        fields, client = await form(request), site.acting(request)
        try:
            begun = await site.desk.ask(_start, client, fields)
        except PenstockError as error:
            return refused(request, fields.get("next", "/jobs"), error)
        return back(f"/operations/{begun.id}", "It has begun.")

    @get("/operations", opt=needs(Scope.READ))
    async def operations(request: AnyRequest) -> Response[bytes]:
        after = request.query_params.get("after")
        return await site.page(request, "operations.html", lambda: _list_view(site.seen_by(request), after))

    @get("/operations/{operation:str}", opt=needs(Scope.READ))
    async def one(request: AnyRequest) -> Response[bytes]:
        name = request.path_params["operation"]
        return await site.page(request, "operation.html", lambda: _one_view(site.seen_by(request), name))

    @post("/operations/{operation:str}/stop", opt=needs(Scope.OPERATE))
    async def stop(request: AnyRequest) -> Response[Any]:
        name, fields, client = request.path_params["operation"], await form(request), site.acting(request)

        def act() -> str:
            client.stop(name, reason=fields.get("reason", ""))
            return "Stopped where it was: what is done is done."

        return await acted(site, request, f"/operations/{name}", act)

    return [preview, start, operations, one, stop]


def _line(line: str, ids: str) -> str:
    """Return the filter: what was written, or the jobs that were selected."""
    chosen = [word for word in ids.split(",") if word][:MOST_IDS]
    return f"id:{','.join(chosen)}" if chosen else line


def _preview_view(client: Client, verb: str, line: str) -> dict[str, Any]:
    try:
        found, problem = client.preview(verb, line), None
    except InvalidQuery as error:
        found, problem = None, str(error)
    now = client.store.now()
    idle = query_of(found.verb, line, now=now).states - VERBS[found.verb].keys() if found else ()
    jobs = {} if found is None else client.store.find(found.ids)
    return {
        "screen": "operations",
        "first": [jobs[id_] for id_ in found.ids if id_ in jobs] if found else [],
        "verb": verb,
        "words": WORDS[verb],
        "line": line,
        "found": found,
        "problem": problem,
        "implied": ", ".join(sorted(state.label for state in STATES.get(found.verb, ()))) if found else "",
        "idle": ", ".join(sorted(state.label for state in idle)),
        "key": once(),
        "now": now,
    }


def _start(client: Client, fields: Mapping[str, str]) -> Operation:
    rate = whole(fields.get("rate", ""))
    if fields.get("rate") and rate is None:
        raise InvalidQuery("rate", "write a whole number of jobs a second, or nothing")
    return client.start(
        fields.get("verb", ""),
        fields.get("q", ""),
        reason=fields.get("reason", ""),
        rate=rate,
        force=fields.get("force") == "on",
        key=fields.get("key") or None,
    )


def _list_view(site: Site, after: str | None) -> dict[str, Any]:
    page = site.client.operations(limit=PAGE, after=after)
    return {
        "screen": "operations",
        "operations": [shown(each) for each in page.operations],
        "next": page.next,
        "base": {},
        "now": site.store.now(),
    }


def _one_view(site: Site, name: str) -> dict[str, Any]:
    return {"screen": "operations", "o": shown(site.client.operation(name)), "now": site.store.now()}


def shown(operation: Operation) -> dict[str, Any]:
    """Return an operation with how far it is, in percent."""
    through = operation.done + operation.requested + operation.refused
    total = operation.matched if operation.matched is not None else operation.found
    return {
        **operation._asdict(),
        "open": operation.state in OPEN,
        "again": operation.state in CUT_SHORT and operation.verb in WORDS and operation.filter != MASK,
        "through": through,
        "total": total,
        "percent": 100 if operation.state == "done" else round(100 * through / total) if total else 0,
        "why": sorted(json.loads(operation.refusals).items(), key=lambda pair: -pair[1]),
    }
