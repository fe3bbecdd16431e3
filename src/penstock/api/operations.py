"""`/api/operations`: a verb on all that a filter finds; counted first, begun when asked for."""

from typing import Any, Final

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.commands import Reason, checked_reason, command
from penstock.api.desk import Desk, json_answer
from penstock.api.params import PAGED, idempotency_key, items_of, read_params, text
from penstock.api.scopes import needs
from penstock.bulk import Preview, new_operation, verb_of
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.states import Verb
from penstock.wire import encode, operation_object

OPERATE: Final = needs(Scope.OPERATE, tenants=True)
READ: Final = needs(Scope.READ, tenants=True)


class Replay(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Dead jobs that go again; nothing is done unless `dry_run` is false."""

    filter: str
    reason: str | None = None
    dry_run: bool = True
    rate: int | None = None
    out_of_order: bool = False


class Wanted(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A verb on a filter; nothing is done unless `dry_run` is false."""

    verb: str
    filter: str
    reason: str | None = None
    dry_run: bool = True
    rate: int | None = None
    force: bool = False
    change: dict[str, Any] | None = None


def operation_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers of bulk operations."""

    async def begin(request: Request[Any, Any, Any], wanted: Wanted) -> Response[bytes]:
        client, key = desk.acting(request), idempotency_key(request)
        if wanted.dry_run:
            return json_answer(encode(_counted(await desk.ask(_previewed, client, wanted))))
        started = await desk.ask(_started, client, wanted, key)
        return json_answer(encode(started), status=202, location=f"/api/operations/{started['id']}")

    @post("/api/operations", opt=OPERATE)
    async def start(request: Request[Any, Any, Any]) -> Response[bytes]:
        return await begin(request, await command(request, Wanted))

    @post("/api/replay", opt=OPERATE)
    async def replay(request: Request[Any, Any, Any]) -> Response[bytes]:
        said = await command(request, Replay)
        wanted = Wanted(
            verb="retry",
            filter=said.filter,
            reason=said.reason,
            dry_run=said.dry_run,
            rate=said.rate,
            force=said.out_of_order,
        )
        return await begin(request, wanted)

    @get("/api/operations", opt=READ)
    async def list_operations(request: Request[Any, Any, Any]) -> Response[bytes]:
        found = read_params(items_of(request), PAGED)
        page = await desk.ask(desk.acting(request).operations, **found)
        shown = [operation_object(operation) for operation in page.operations]
        return json_answer(encode({"operations": shown, "next": page.next}))

    @get("/api/operations/{operation_id:str}", opt=READ)
    async def get_operation(request: Request[Any, Any, Any]) -> Response[bytes]:
        found = await desk.ask(desk.acting(request).operation, request.path_params["operation_id"])
        return json_answer(encode(operation_object(found)))

    @post("/api/operations/{operation_id:str}/stop", opt=OPERATE, status_code=200)
    async def stop(request: Request[Any, Any, Any]) -> Response[bytes]:
        said, client = await command(request, Reason), desk.acting(request)
        found = await desk.ask(client.stop, request.path_params["operation_id"], reason=said.reason)
        return json_answer(encode(operation_object(found)))

    return [start, replay, list_operations, get_operation, stop]


def _started(client: Client, wanted: Wanted, key: str | None) -> dict[str, Any]:
    started = client.start(
        wanted.verb,
        wanted.filter,
        reason=checked_reason(wanted.reason),
        rate=wanted.rate,
        force=wanted.force,
        key=None if key is None else text("Idempotency-Key", key),
        change=wanted.change,
    )
    return operation_object(started)


def _previewed(client: Client, wanted: Wanted) -> Preview:
    """Count; what could not begin is refused here already, but an edit may not yet say what changes."""
    verb, change = verb_of(wanted.verb), wanted.change
    if change or verb is not Verb.EDIT:
        new_operation(verb, wanted.filter, actor=client.actor, reason="", rate=wanted.rate, change=change)
    return client.preview(wanted.verb, wanted.filter)


def _counted(preview: Preview) -> dict[str, Any]:
    return {"dry_run": True, **preview._asdict(), "verb": str(preview.verb)}
