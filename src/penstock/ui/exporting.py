"""Exports: a list into a file, to its end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar


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
