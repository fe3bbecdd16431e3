"""`POST /api/router/messages`: pointers for the router, one or many, from whoever has no queue."""

from typing import Any

from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.bodies import batch_of, json_text
from penstock.api.desk import json_answer
from penstock.api.problems import AGAIN_AFTER_S, Problem
from penstock.api.scopes import needs
from penstock.delivery.pointers import BadMessage, Pointer, read_pointer
from penstock.domain.access import Scope
from penstock.sources.posted import Posted, PostedSource
from penstock.wire import encode


def message_routes(source: PostedSource) -> list[HTTPRouteHandler]:
    """Return the handler of messages; what is taken is in memory, not on disk."""

    @post("/api/router/messages", opt=needs(Scope.ENQUEUE))
    async def take(request: Request[Any, Any, Any]) -> Response[bytes]:
        text = await json_text(request)
        elements = batch_of(f'{{"messages":{text}}}' if text.lstrip().startswith("[") else text, "messages")
        read = [_read(element) for element in ([text] if elements is None else elements)]
        good = [one for one in read if not isinstance(one, BadMessage)]
        if len(good) > source.room:
            hint = "try again later: the router is behind with what it has"
            headers = {"Retry-After": AGAIN_AFTER_S}
            raise Problem(429, "router-full", f"there is room for {source.room}", hint=hint, headers=headers)
        source.post([posted for _, posted in good])
        if elements is not None:
            results = [{"index": index} | _told(one) for index, one in enumerate(read)]
            return json_answer(encode({"results": results}))
        [one] = read
        if isinstance(one, BadMessage):
            hint = "send a pointer, or a list of them: docs/reference/messages.md shows one"
            raise Problem(422, "invalid-message", str(one), hint=hint)
        return json_answer(encode(_told(one)), status=202)

    return [take]


def _read(text: str) -> tuple[Pointer, Posted] | BadMessage:
    try:
        pointer = read_pointer(text)
    except BadMessage as error:
        return error
    return pointer, Posted(text, pointer.group, pointer.dedup)


def _told(one: tuple[Pointer, Posted] | BadMessage) -> dict[str, Any]:
    return {"error": str(one)} if isinstance(one, BadMessage) else {"id": one[0].id, "accepted": True}
