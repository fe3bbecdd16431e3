"""Blocking calls of the client, made beside the event loop."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2s
from typing import Any, ParamSpec, TypeVar

from litestar import Request, Response

from penstock.api.problems import unknown_caller
from penstock.api.scopes import who_of
from penstock.client import Client
from penstock.ports.executor import Executor

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Desk:
    """A client, and the threads that may wait for it."""

    client: Client
    executor: Executor

    def acting(self, request: Request[Any, Any, Any]) -> Client:
        """Return the client as whoever sent the request may use it; every handler about jobs uses this."""
        who = who_of(request)
        if who is None:
            raise unknown_caller()
        return self.client.acting(who)

    async def ask(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what a blocking call returns, raise what it raises."""
        return await self.executor.run(partial(call, *args, **kwargs))


def tagged(
    request: Request[Any, Any, Any], text: str, *, of_job: bool = False, mark: str | None = None
) -> Response[bytes]:
    """Return JSON with an ETag, or 304 to somebody who has it already.

    What is of a job is not to be kept on the way or on a disk, whoever asks again may say what he has.
    """
    keep = "no-store" if of_job else "private, no-cache"
    tag = tag_of(text, mark)
    known = {name.strip().removeprefix("W/") for name in request.headers.get("if-none-match", "").split(",")}
    headers = {"ETag": tag, "Cache-Control": keep}
    if known & {tag, "*"}:
        return Response(b"", status_code=304, media_type="application/json", headers=headers)
    return json_answer(text, headers=headers)


def tag_of(text: str, mark: str | None = None) -> str:
    """Return the ETag of what is answered; that of a thing with versions begins with a mark, its version.

    The version alone would not do: a pause that ends by itself changes none.
    """
    digest = blake2s(text.encode(errors="replace"), digest_size=9).hexdigest()
    return f'"{digest}"' if mark is None else f'"{mark}-{digest}"'


def json_answer(
    text: str, *, status: int = 200, location: str | None = None, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    """Return JSON that is already written; a lone surrogate in it is no UTF-8 and is replaced."""
    also = {"Location": location} if location else {}
    return Response(
        text.encode(errors="replace"),
        media_type="application/json",
        status_code=status,
        headers={"Cache-Control": "no-store", **also, **(headers or {})},
    )
