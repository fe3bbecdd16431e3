"""Source `posted`: messages that came by HTTP. They are kept in memory, for as long as the router lives.

Nothing is lost with it: a job whose message is gone is noticed by its ack timeout and sent again. Of a group
one message is out at a time, in the order they came; a send that is here already is not taken twice.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Final, NamedTuple, cast

from penstock.ports.clock import Clock
from penstock.ports.source import Incoming

MOST: Final = 10_000
VISIBILITY: Final = timedelta(hours=1)
IDLE_S: Final = 0.5


class Posted(NamedTuple):
    """A message as it was posted; `dedup` is the name of its send."""

    body: str
    group: str | None
    dedup: str


@dataclass(slots=True, eq=False)
class _Kept:
    posted: Posted
    number: int
    receives: int = 0


class PostedSource:
    """A queue in memory."""

    name = "posted"
    visibility = VISIBILITY

    def __init__(self, clock: Clock, *, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._numbers = count(1)
        self._known: dict[str, _Kept] = {}
        self._ready: list[tuple[float, int, _Kept]] = []
        self._lines: dict[str, deque[_Kept]] = {}
        self._news = asyncio.Event()
        self.buried: deque[str] = deque(maxlen=1000)

    @property
    def room(self) -> int:
        """How many more messages it takes."""
        return self._most - len(self._known)

    def post(self, messages: Sequence[Posted]) -> None:
        """Take messages, those of a group in their order; a send that is known is not taken again."""
        for posted in messages:
            if posted.dedup not in self._known:
                kept = self._known[posted.dedup] = _Kept(posted, next(self._numbers))
                self._append(kept)
        self._news.set()

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return what is ready, the first that came first."""
        self._news.clear()
        if not self._ready or self._ready[0][0] > self._clock.monotonic():
            await self._rest()
        found, now = list[Incoming](), self._clock.monotonic()
        while self._ready and len(found) < limit and self._ready[0][0] <= now:
            kept = heapq.heappop(self._ready)[2]
            kept.receives += 1
            found.append(Incoming(self.name, kept.posted.body, kept.receives, kept))
        return found

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Forget them; the next of their groups are ready."""
        for kept in _kept(messages):
            if self._known.pop(kept.posted.dedup, None) is not None:
                self._next(kept)
        self._news.set()

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Have them come again."""
        at = self._clock.monotonic() + delay.total_seconds()
        for kept in _kept(messages):
            if kept.posted.dedup in self._known:
                heapq.heappush(self._ready, (at, kept.number, kept))
        self._news.set()

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Nobody else can get them."""
        return messages

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Keep the last thousand, for whoever looks; their jobs will be sent again."""
        self.buried.extend(message.body for message in messages)
        await self.ack(messages)

    async def close(self) -> None:
        """There is nothing to close."""

    def _append(self, kept: _Kept) -> None:
        group = kept.posted.group
        if group is not None:
            line = self._lines.setdefault(group, deque())
            line.append(kept)
            if len(line) > 1:
                return
        heapq.heappush(self._ready, (self._clock.monotonic(), kept.number, kept))

    def _next(self, kept: _Kept) -> None:
        group = kept.posted.group
        if group is None:
            return
        line = self._lines[group]
        line.popleft()
        if line:
            heapq.heappush(self._ready, (self._clock.monotonic(), line[0].number, line[0]))
        else:
            del self._lines[group]

    async def _rest(self) -> None:
        wait = IDLE_S
        if self._ready:
            wait = min(wait, max(0.0, self._ready[0][0] - self._clock.monotonic()))
        try:
            async with asyncio.timeout(wait):
                await self._news.wait()
        except TimeoutError:
            return


def _kept(messages: Sequence[Incoming]) -> list[_Kept]:
    return [cast("_Kept", message.handle) for message in messages]
