"""Source `embedded`: the queues of the store itself, or of a SQLite file of their own.

They are looked at in turn, each time another one first. While they are empty the looks become rarer, up to
two a second; a bell (`ring`) ends the wait for those who know that something was just put in.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, cast

from penstock.brokers.options import VISIBILITY, text, visibility
from penstock.errors import InvalidSetting
from penstock.ports.executor import Executor
from penstock.ports.queue import Delivery, Message, Queue, QueueFile
from penstock.ports.source import Incoming, Options, Supplies

SHORTEST_S: Final = 0.02
LONGEST_S: Final = 0.5
DEAD: Final = "/dead"  # no lane can be named so


class EmbeddedSource:
    """Receives from the queues of a store; what is buried goes into the queue `NAME/dead`."""

    def __init__(
        self,
        queue: Queue,
        *,
        queues: Callable[[], Sequence[str]],
        executor: Executor,
        name: str = "embedded",
        visibility: timedelta = VISIBILITY,
        own: QueueFile | None = None,
    ) -> None:
        self._own = own
        self.name = name
        self.visibility = visibility
        self._queue = queue
        self._queues = queues
        self._executor = executor
        self._bell = asyncio.Event()
        self._pause = SHORTEST_S
        self._turn = 0

    def ring(self) -> None:
        """Look again now."""
        self._bell.set()

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return what is visible in the queues; if that is nothing, wait a moment."""
        self._bell.clear()
        queues = self._in_turn()
        found = await self._executor.run(lambda: self._look(queues, limit)) if queues else []
        if found:
            self._pause = SHORTEST_S
        else:
            await self._rest()
        return found

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Delete them."""
        await self._executor.run(lambda: self._queue.ack(_deliveries(messages)))

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Make them visible after the delay."""
        await self._executor.run(lambda: self._queue.nack(_deliveries(messages), delay=delay))

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Hide them for longer; who lost one is found out one by one, which is rare."""
        if await self._hide(messages) == len(messages):
            return messages
        return [message for message in messages if await self._hide([message])]

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Move them to the dead queue; said twice it is done once."""

        def move() -> None:
            for message, delivery in zip(messages, _deliveries(messages), strict=True):
                dead = Message(message.body, dedup=f"{message.queue}:{delivery.id}")
                self._queue.push(message.queue + DEAD, [dead])
                self._queue.ack([delivery])

        await self._executor.run(move)

    async def close(self) -> None:
        """Close a file of our own; the store is not ours to close."""
        own, self._own = self._own, None
        if own is not None:
            await self._executor.run(own.close)

    def _in_turn(self) -> Sequence[str]:
        queues = list(self._queues())
        if not queues:
            return queues
        self._turn = (self._turn + 1) % len(queues)
        return queues[self._turn :] + queues[: self._turn]

    def _look(self, queues: Sequence[str], limit: int) -> list[Incoming]:
        found: list[Incoming] = []
        for queue in queues:
            left = limit - len(found)
            if left > 0:
                received = self._queue.receive(queue, left, visibility=self.visibility)
                found += [Incoming(queue, one.body, one.receives, one) for one in received]
        return found

    async def _hide(self, messages: Sequence[Incoming]) -> int:
        return await self._executor.run(
            lambda: self._queue.nack(_deliveries(messages), delay=self.visibility)
        )

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._pause):
                await self._bell.wait()
            self._pause = SHORTEST_S
        except TimeoutError:
            self._pause = min(self._pause * 2, LONGEST_S)


class RungQueue:
    """Queues of a store that ring a bell when something was put in: for sinks of the same process.

    `push` is called in a thread, so the bell is rung on the loop that made this.
    """

    def __init__(self, queue: Queue, ring: Callable[[], None]) -> None:
        self._queue = queue
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self.receive, self.ack, self.nack, self.queued = queue.receive, queue.ack, queue.nack, queue.queued

    def push(self, queue: str, messages: Sequence[Message]) -> list[int | None]:
        """Append messages, and ring."""
        numbers = self._queue.push(queue, messages)
        self._loop.call_soon_threadsafe(self._ring)
        return numbers


def _deliveries(messages: Sequence[Incoming]) -> list[Delivery]:
    return [cast("Delivery", message.handle) for message in messages]


async def open_embedded(options: Options, supplies: Supplies) -> EmbeddedSource:
    """Open the store's own queues, or those of the file `url`."""
    url, open_queues = text(options, "url"), supplies.open_queues
    if url is None or open_queues is None:
        return embedded_source(options, supplies)
    own = await supplies.executor.run(lambda: open_queues(url))
    return embedded_source(options, supplies, own=own)


def embedded_source(options: Options, supplies: Supplies, *, own: QueueFile | None = None) -> EmbeddedSource:
    """Return a source on the store's own queues, or on those of a file, which it closes."""
    for name in options:
        if name not in {"kind", "url", "visibility"}:
            raise InvalidSetting(name, "embedded queues have no such option: there are url and visibility")
    queue = own if own is not None else supplies.queue
    if queue is None:
        raise InvalidSetting("kind", "this process has no store with queues: use another source")
    return EmbeddedSource(
        queue,
        own=own,
        queues=supplies.queues,
        executor=supplies.executor,
        name=supplies.name,
        visibility=visibility(options),
    )
