"""Source `posted`: messages that came by HTTP. They are kept in memory, for as long as the router lives.

Nothing is lost with it: a job whose message is gone is noticed by its ack timeout and sent again. Of a group
one message is out at a time, in the order they came; a send that is here already is not taken twice.
"""

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.ports.clock import Clock
from penstock.ports.source import Incoming
from penstock.sources.shelf import Shelf

MOST: Final = 10_000
VISIBILITY: Final = timedelta(hours=1)


class Posted(NamedTuple):
    """A message as it was posted; `dedup` is the name of its send."""

    body: str
    group: str | None
    dedup: str


class PostedSource:
    """A queue in memory."""

    name = "posted"

    def __init__(self, clock: Clock, *, most: int = MOST, visibility: timedelta = VISIBILITY) -> None:
        self.visibility = visibility
        self._most = most
        self._shelf = Shelf(clock, visibility)
        self.buried: deque[str] = deque(maxlen=1000)

    @property
    def room(self) -> int:
        """How many more messages it takes."""
        return self._most - len(self._shelf)

    def post(self, messages: Sequence[Posted]) -> None:
        """Take messages, those of a group in their order; a send that is known is not taken again."""
        for posted in messages:
            if posted.dedup not in self._shelf:
                self._shelf.put(self.name, posted.body, posted.group, tag=posted.dedup)

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return what is ready, the first that came first."""
        await self._shelf.rest()
        return self._shelf.take(limit)

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Forget them; the next of their groups are ready."""
        self._shelf.done(messages)

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Have them come again."""
        self._shelf.again(messages, delay)

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Nobody else can get them."""
        return self._shelf.extend(messages)

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Keep the last thousand, for whoever looks; their jobs will be sent again."""
        self.buried.extend(message.body for message in messages)
        await self.ack(messages)

    async def close(self) -> None:
        """There is nothing to close."""
