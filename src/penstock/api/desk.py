"""Blocking calls of the client, made beside the event loop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from litestar import Response

from penstock.client import Client
from penstock.ports.executor import Executor

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Desk:
    """A client, and the threads that may wait for it."""

    client: Client
    executor: Executor

    async def ask(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what a blocking call returns, raise what it raises."""
        return await self.executor.run(partial(call, *args, **kwargs))


def json_answer(text: str, *, status: int = 200, location: str | None = None) -> Response[bytes]:
    """Return JSON that is already written; a lone surrogate in it is no UTF-8 and is replaced."""
    headers = {"Cache-Control": "no-store"} | ({"Location": location} if location else {})
    return Response(
        text.encode(errors="replace"), media_type="application/json", status_code=status, headers=headers
    )
