"""What the suite stands on: queues and the way into them, as a test sees it."""

from collections.abc import Sequence
from typing import Protocol

from penstock.ports.source import Source


class SourceBed(Protocol):
    """Queues that are empty at first. `queues` is what an open source is told of; the suite changes it.

    `keeps_order`: the broker gives a group to one receiver at a time. `orders` is False for a kind that does
    not keep the order of groups at all, and leaves that to others.

    A bed that cannot do something (break down, tell what was put aside) says so and the cases that need it
    are skipped.
    """

    keeps_order: bool
    orders: bool
    queues: list[str]

    async def open(self) -> Source:
        """Return a source of these queues that hides messages for a minute or so; the suite closes it."""

    async def open_brief(self) -> Source:
        """Return one that hides them for a few seconds only: the suite waits until they come again."""

    async def put(self, queue: str, bodies: Sequence[str]) -> None:
        """Put messages into a queue, in this order; the group of each is its `messageGroupId`."""

    async def left(self, queue: str) -> int:
        """Return how many messages there are; the suite has closed every source before it asks."""

    async def dead(self, queue: str) -> Sequence[str] | None:
        """Return the bodies of what was put aside; None = nobody can tell."""

    async def break_down(self) -> bool:
        """Let nobody reach the broker, and break every connection; False = that cannot happen."""

    async def repair(self) -> None:
        """Let everybody reach it again."""
