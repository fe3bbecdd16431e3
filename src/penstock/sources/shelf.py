"""Messages that were taken from a broker and wait in memory: for their group, for their time, for a receiver.

For brokers that cannot put off a message, or that would let later ones of its group go past it meanwhile.

- Of a group one message is out at a time, in the order they came; the next follows when the one before is
  done with, however often that one comes again.
- Who takes a message and neither says anything of it nor extends its time has lost it: it is due again.
- What the broker gives to somebody else, because a connection broke, for example, is gone from here.

What is said of a message that is lost or gone counts for nothing.
"""

import asyncio
import heapq
import json
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Final, cast

from penstock.ports.clock import Clock
from penstock.ports.source import Incoming

IDLE_S: Final = 0.5
LONGEST_POINTER: Final = 256 * 1024


@dataclass(slots=True, eq=False)
class Kept:
    """A message that waits, or is out until then; `tag` is what its broker knows it by."""

    queue: str
    body: str
    group: str | None
    tag: Hashable
    number: int
    receives: int = 0
    until: float | None = None
    gone: bool = False


class Shelf:
    """Keeps messages in order. It never asks a broker for anything."""

    def __init__(self, clock: Clock, visibility: timedelta) -> None:
        self._clock = clock
        self._visibility = visibility.total_seconds()
        self._numbers = count(1)
        self._kept: dict[Hashable, Kept] = {}
        self._out: dict[Hashable, Kept] = {}  # the one that is out longest is the first
        self._ready: list[tuple[float, int, Kept]] = []
        self._lines: dict[tuple[str, str], deque[Kept]] = {}
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(list(self._kept.values()))

    def __contains__(self, tag: Hashable) -> bool:
        return tag in self._kept

    def put(self, queue: str, body: str, group: str | None, *, tag: Hashable, receives: int = 0) -> None:
        """Take a message in, behind those of its group; `receives` is how often others received it."""
        kept = self._kept[tag] = Kept(queue, body, group, tag, next(self._numbers), receives)
        if group is not None:
            line = self._lines.setdefault((queue, group), deque())
            line.append(kept)
            if len(line) > 1:
                return
        self._push(kept, self._clock.monotonic())

    @property
    def due(self) -> bool:
        """Whether there is something to be taken now."""
        return self.due_in == 0

    @property
    def due_in(self) -> float:
        """In how many seconds there is something to be taken, as far as is known."""
        while self._ready and self._ready[0][2].gone:
            heapq.heappop(self._ready)
        return max(0.0, self._ready[0][0] - self._clock.monotonic()) if self._ready else float("inf")

    def take(self, limit: int) -> list[Incoming]:
        """Return what is due, the first that came first."""
        self._take_back()
        found: list[Incoming] = []
        while len(found) < limit and self.due:
            kept = heapq.heappop(self._ready)[2]
            kept.receives += 1
            self._lend(kept)
            found.append(Incoming(kept.queue, kept.body, kept.receives, kept))
        return found

    async def rest(self, seconds: float = IDLE_S) -> None:
        """Wait until something is due or new, but not for longer than this."""
        self._news.clear()
        if self.due:
            return
        try:
            async with asyncio.timeout(min(seconds, self.due_in)):
                await self._news.wait()
        except TimeoutError:
            return

    def ring(self) -> None:
        """End the rest of whoever waits."""
        self._news.set()

    def extend(self, messages: Sequence[Incoming]) -> list[Incoming]:
        """Let messages be out for longer; return those that are not lost, gone or done with."""
        ours = [message for message in messages if not kept_of(message).gone]
        for message in ours:
            self._lend(kept_of(message))
        return ours

    def again(self, messages: Sequence[Incoming], delay: timedelta) -> None:
        """Have messages be due after the delay; those behind them wait."""
        at = self._clock.monotonic() + delay.total_seconds()
        for kept in self._out_of(messages):
            del self._out[kept.tag]
            kept.until = None
            self._push(kept, at)

    def done(self, messages: Sequence[Incoming]) -> list[Kept]:
        """Forget messages, and return those that were still ours; the next of their groups are due."""
        several = self._out_of(messages)
        for kept in several:
            self._remove(kept)
        return several

    def lose(self, which: Callable[[Kept], bool]) -> None:
        """Forget messages that the broker gives to others."""
        for kept in self:
            if which(kept):
                self._remove(kept)
        self._ready = [entry for entry in self._ready if not entry[2].gone]
        heapq.heapify(self._ready)

    def _remove(self, kept: Kept) -> None:
        kept.gone = True
        del self._kept[kept.tag]
        self._out.pop(kept.tag, None)
        if kept.group is None:
            return
        place = (kept.queue, kept.group)
        line = self._lines[place]
        was_first = line[0] is kept
        line.remove(kept)
        if not line:
            del self._lines[place]
        elif was_first:
            self._push(line[0], self._clock.monotonic())

    def _out_of(self, messages: Sequence[Incoming]) -> list[Kept]:
        several = [kept_of(message) for message in messages]
        return [kept for kept in several if not kept.gone and kept.tag in self._out]

    def _lend(self, kept: Kept) -> None:
        self._out.pop(kept.tag, None)
        self._out[kept.tag] = kept
        kept.until = self._clock.monotonic() + self._visibility

    def _take_back(self) -> None:
        """Have messages be due whose time is over; whoever has one cannot say anything of it any more."""
        now = self._clock.monotonic()
        for kept in list(self._out.values()):
            if kept.until is None or kept.until > now:
                return
            del self._out[kept.tag]
            kept.gone = True
            fresh = self._kept[kept.tag] = replace(kept, until=None, gone=False)
            if kept.group is not None:
                self._lines[kept.queue, kept.group][0] = fresh
            self._push(fresh, now)

    def _push(self, kept: Kept, at: float) -> None:
        heapq.heappush(self._ready, (at, kept.number, kept))
        self._news.set()


def kept_of(message: Incoming) -> Kept:
    """Return what the shelf knows a message by."""
    return cast("Kept", message.handle)


def group_of(body: str) -> str | None:
    """Return the group of a pointer whose order must be kept; what is no pointer has none."""
    if len(body) > LONGEST_POINTER:
        return None
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    group = said.get("messageGroupId") if isinstance(said, dict) else None
    return group if isinstance(group, str) else None
