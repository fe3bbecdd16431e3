"""`POST /api/dispatch/process`: whoever consumed a pointer has its job delivered."""

from math import ceil
from typing import Any, Final

from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.bodies import bad_json, json_object, json_text
from penstock.api.desk import json_answer
from penstock.api.problems import Problem
from penstock.api.scopes import OPEN
from penstock.delivery.processing import Answer, Processor
from penstock.errors import NotFound
from penstock.tokens import BadToken
from penstock.wire import encode

PROCESS: Final = "/api/dispatch/process"
SCHEME: Final = "bearer"


def dispatch_routes(processor: Processor) -> list[HTTPRouteHandler]:
    """Return the handler of the processing endpoint."""

    @post("/api/dispatch/process", opt=OPEN)  # the message's own token is the proof
    async def process(request: Request[Any, Any, Any]) -> Response[bytes]:
        token = _bearer(request.headers.get("authorization"))
        job_id = json_object(await json_text(request)).get("messageId")
        if not isinstance(job_id, str):
            raise bad_json('write {"messageId": "01K…"}: the id of the message, which is its job\'s')
        try:
            return json_answer(encode(_shown(await processor.process(job_id, token))))
        except BadToken as error:
            raise _refused(str(error)) from None
        except NotFound as error:
            hint = "acknowledge the message: its job is gone, nothing will become of it"
            raise Problem(404, "unknown-job", str(error), hint=hint, ack=True) from None

    return [process]


def _bearer(header: str | None) -> str:
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != SCHEME or not token:
        raise _refused("there is no bearer token")
    return token.strip()


def _refused(detail: str) -> Problem:
    return Problem(
        401,
        "bad-token",
        detail,
        hint="send `Authorization: Bearer` with the authToken of the message, unchanged",
        headers={"WWW-Authenticate": "Bearer"},
    )


def _shown(answer: Answer) -> dict[str, Any]:
    if answer.ack:
        return {"ack": True}
    return {"ack": False, "delaySeconds": ceil(answer.delay.total_seconds())}
