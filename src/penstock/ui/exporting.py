"""Exports: a list into a file, to its end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from penstock.api.cutting import cuttable
from penstock.api.scopes import still_may
from penstock.ui.site import AnyRequest


class Paged(Protocol):
    """A page of some list."""

    @property
    def next(self) -> str | None:
        """Where the following page begins, None = that was the last."""


P = TypeVar("P", bound=Paged)


async def pages_from(first: P, following: Callable[[str], Awaitable[P]]) -> AsyncIterator[P]:
    """Yield page after page, as long as somebody reads: one at a time is held, so there may be any number."""
    page = first
    yield page
    while page.next is not None:
        page = await following(page.next)
        yield page


def while_allowed(request: AnyRequest, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Return the lines for somebody who may still see them; from him who may not, the rest is cut."""
    return _until_cut(lines, still_may(request), cuttable(request))


async def _until_cut(
    lines: AsyncIterator[bytes], still: Callable[[], Awaitable[bool]], cut: asyncio.Event
) -> AsyncIterator[bytes]:
    async for line in lines:
        if not await still():
            cut.set()
            await asyncio.Event().wait()  # until that ends this
        yield line
        await asyncio.sleep(0)  # a reader who is fast enough never makes us wait: others have their turn here
