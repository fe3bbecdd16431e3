"""Long answers that are cut: those of somebody who may no longer see them, and those of a node that stops.

One that just ended early would look whole in the file that somebody keeps. So the server is told that the
reader is gone: it closes the connection in the middle, even while it waits for a reader who takes nothing.
"""

import asyncio
from typing import Any, Final

from litestar.connection import ASGIConnection
from litestar.types import HTTPScope, Receive

CUT: Final = "penstock_cut"


def cuttable(connection: ASGIConnection[Any, Any, Any, Any]) -> asyncio.Event:
    """Return what cuts the answer to this request when it is set; a node that stops cuts it, too."""
    cut = asyncio.Event()
    connection.scope[CUT] = cut  # type: ignore[typeddict-unknown-key]
    return cut


def cutting(scope: HTTPScope, receive: Receive, over: asyncio.Event) -> Receive:
    """Return `receive` that tells of a reader who is gone as soon as his answer is to be cut."""
    asked = False

    async def received() -> Any:  # noqa: ANN401 - ASGI's own
        nonlocal asked
        cut = scope.get(CUT)
        if asked and isinstance(cut, asyncio.Event):
            return await _gone(receive, cut, over)
        message = await receive()
        asked = asked or not message.get("more_body", False)
        return message

    return received


async def _gone(receive: Receive, *ends: asyncio.Event) -> Any:  # noqa: ANN401 - ASGI's own
    async def left() -> None:
        await receive()  # the request has come: there is nothing else to hear

    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(left()), *(group.create_task(end.wait()) for end in ends)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    return {"type": "http.disconnect"}
