"""`POST /api/jobs/{id}/cancel` and the other verbs: what an operator does to one job."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.bodies import json_text
from penstock.api.commands import Reason, checked_reason, command
from penstock.api.desk import Desk, json_answer
from penstock.api.problems import Problem
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.states import Effect
from penstock.errors import InvalidJob
from penstock.ports.store import Done
from penstock.wire import done_object, encode, enqueue_object

EDITED: Final = ("payload", "headers", "target")
EDIT: Final = frozenset({*EDITED, "run_at", "reason", "replay", "out_of_order"})
Handler = Callable[[Request[Any, Any, Any]], Awaitable[Response[bytes]]]


class Cancel(Reason, kw_only=True):
    """`force` ends what is out, too."""

    force: bool = False


class Retry(Reason, kw_only=True):
    """`out_of_order` replays although jobs behind it went already."""

    out_of_order: bool = False


class Settle(Reason, kw_only=True):
    """`outcome` is succeeded or dead."""

    outcome: str


def verb_routes(desk: Desk) -> list[HTTPRouteHandler]:
    """Return the handlers of verbs."""

    def route(verb: str, kind: type[Reason], act: Callable[[Client, str, Any], Done]) -> HTTPRouteHandler:
        async def handler(request: Request[Any, Any, Any]) -> Response[bytes]:
            said, job_id = await command(request, kind), request.path_params["job_id"]
            client = desk.acting(request)
            return _answered(job_id, await desk.ask(lambda: act(client, job_id, said)))

        path = f"/api/jobs/{{job_id:str}}/{verb}"
        return post(path, name=verb, opt=needs(Scope.OPERATE, tenants=True), status_code=200)(handler)

    @post("/api/jobs/{job_id:str}/edit", opt=needs(Scope.OPERATE, tenants=True), status_code=200)
    async def edit(request: Request[Any, Any, Any]) -> Response[bytes]:
        text, job_id = await json_text(request), request.path_params["job_id"]
        return _answered(job_id, await desk.ask(_edit, desk.acting(request), job_id, text))

    return [
        route(
            "cancel",
            Cancel,
            lambda client, id_, said: client.cancel(id_, reason=said.reason, force=said.force),
        ),
        route("skip", Reason, lambda client, id_, said: client.skip(id_, reason=said.reason)),
        route("hold", Reason, lambda client, id_, said: client.hold(id_, reason=said.reason)),
        route("release", Reason, lambda client, id_, said: client.release(id_, reason=said.reason)),
        route(
            "retry",
            Retry,
            lambda client, id_, said: client.retry(id_, reason=said.reason, out_of_order=said.out_of_order),
        ),
        route(
            "settle", Settle, lambda client, id_, said: client.settle(id_, said.outcome, reason=said.reason)
        ),
        edit,
    ]


def _edit(client: Client, job_id: str, text: str) -> Done:
    given = enqueue_object(text)
    unknown = sorted(given.keys() - EDIT)
    if unknown:
        raise InvalidJob(unknown[0], f"cannot be edited: what can is {', '.join(sorted(EDIT))}")
    flags = {name: given.get(name, False) for name in ("replay", "out_of_order")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidJob(name, "is neither true nor false")
    content: Any = {name: given[name] for name in EDITED if name in given}
    reason = checked_reason(given.get("reason"))
    return client.edit(job_id, reason=reason, run_at=given.get("run_at"), **flags, **content)


def _answered(job_id: str, done: Done) -> Response[bytes]:
    """Say what happened; a refusal is a conflict with what the job is."""
    if done.effect is Effect.REFUSED:
        state = None if done.state is None else done.state.label
        hint = f"GET /api/jobs/{job_id}/explain shows where it stands"
        raise Problem(409, "not-now", done.text or "it is refused", hint=hint, state=state)
    return json_answer(
        encode(done_object(job_id, done)), status=202 if done.effect is Effect.REQUESTED else 200
    )
