"""One source as the router uses it: the messages it holds, kept hidden while it does, and its word on them.

Acknowledgements that wait for each other go together: a batch costs a source what one message does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Final

from penstock.domain.leases import trusted_until
from penstock.errors import StoreUnavailable
from penstock.ports.events import SourceFailed
from penstock.ports.source import Incoming, Source, SourceUnavailable
from penstock.scheduler.ground import Ground, wait_for

AWAY: Final = (SourceUnavailable, StoreUnavailable)
TRIES: Final = 4
AGAIN_S: Final = 0.2
_NUMBERS: Final = count(1)  # 0 is nobody's


@dataclass(slots=True, eq=False)
class Held:
    """A message that the router holds, hidden from others until then at least; `lost` = it has come again."""

    inlet: "Inlet"
    message: Incoming
    since: float
    until: float
    number: int = field(default_factory=lambda: next(_NUMBERS))
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    call: asyncio.Task[object] | None = None
    lost: bool = False
    ending: bool = False


class Inlet:
    """A source, and at most `prefetch` messages of it."""

    def __init__(self, ground: Ground, source: Source, *, prefetch: int) -> None:
        self.source = source
        self.held: dict[int, Held] = {}
        self._ground = ground
        self._prefetch = prefetch
        self._stopping = False
        self._room = asyncio.Event()
        self._room.set()
        self._done: list[Held] = []
        self._turn = asyncio.Lock()

    async def receive(self) -> Sequence[Held]:
        """Return messages as soon as there is room for some; the source limits how long it waits for them."""
        await self._room.wait()
        if self._stopping:
            return []
        started = self._ground.monotonic()
        messages = await self.source.receive(max(1, self._prefetch - len(self.held)))
        until = trusted_until(started, self.source.visibility)
        taken = [Held(self, message, self._ground.monotonic(), until) for message in messages]
        self.held |= {held.number: held for held in taken}
        self._look()
        return taken

    def let_go(self) -> None:
        """Receive nothing more, and have nobody wait for it."""
        self._stopping = True
        self._room.set()

    async def ack(self, held: Held) -> None:
        """Have a message deleted, together with those that wait for it too."""
        self._done.append(held)
        async with self._turn:
            done, self._done = self._done, []
            if done:  # else it went with others
                await self._say(done, lambda: self.source.ack([one.message for one in done]))

    async def nack(self, several: Sequence[Held], delay: timedelta) -> None:
        """Have messages come again."""
        if several:
            await self._say(several, lambda: self.source.nack([one.message for one in several], delay=delay))

    async def bury(self, held: Held) -> None:
        """Have a message put aside."""
        await self._say([held], lambda: self.source.bury([held.message]))

    def forget(self, held: Held) -> None:
        """Say nothing more of a message that is not ours any more."""
        self._drop([held])

    async def keep(self, over: asyncio.Event) -> None:
        """Keep what is held hidden, three times as often as needed, until it is over."""
        while not await wait_for(over, self.source.visibility.total_seconds() / 3):
            mine = [held for held in self.held.values() if not (held.lost or held.ending)]
            if mine:
                await self._extend(mine)

    async def _extend(self, mine: Sequence[Held]) -> None:
        started = self._ground.monotonic()
        try:
            kept = await self.source.extend([held.message for held in mine])
        except Exception as error:  # noqa: BLE001 - what a driver lets out is not to end the router
            if not isinstance(error, AWAY):
                self._tell(repr(error))
            return  # until it answers again, what is held is trusted for as long as it was
        ours = {id(message) for message in kept}
        for held in mine:
            if id(held.message) in ours:
                held.until = trusted_until(started, self.source.visibility)
            elif not held.ending:
                held.lost = True
                held.wake.set()

    async def _say(self, several: Sequence[Held], call: Callable[[], Awaitable[None]]) -> None:
        """Tell the source, and be done with messages; if it cannot be told they are lost, and come again."""
        for failures in range(1, TRIES + 1):
            try:
                await call()
            except Exception as error:  # noqa: BLE001 - what a driver lets out is not to end the router
                if failures == TRIES:
                    self._fail(several, error)
                else:
                    await asyncio.sleep(AGAIN_S * failures)
            else:
                break
        self._drop(several)

    def _fail(self, several: Sequence[Held], error: Exception) -> None:
        for held in several:
            held.lost = True
        self._tell(str(error) if isinstance(error, AWAY) else repr(error))

    def _tell(self, error: str) -> None:
        pause = self.source.visibility
        self._ground.emit(SourceFailed(source=self.source.name, error=error, pause=pause))

    def _drop(self, several: Sequence[Held]) -> None:
        for held in several:
            self.held.pop(held.number, None)
        self._look()

    def _look(self) -> None:
        if self._stopping or len(self.held) < self._prefetch:
            self._room.set()
        else:
            self._room.clear()
