"""Source `rabbitmq`: consumes queues, each on a channel of its own.

RabbitMQ keeps what it gave out until that is acknowledged or the connection ends; then it puts everything
back in its place. It cannot put off a message, so messages wait here (shelf.py), unacknowledged. `visibility`
is the heartbeat of the connection: a router that was silent for that long has lost what it had. Between
several routers it is the lane's `hold_until = "done"` that keeps a group in order, or a queue declared with
`x-single-active-consumer`.

What is buried is published to the queue `NAME/dead`, which is declared when it is needed.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity
from aiormq.exceptions import ChannelAccessRefused, ChannelLockedResource

from penstock.brokers import rabbitmq
from penstock.brokers.options import RECEIVING, known_only
from penstock.brokers.rabbitmq import CONNECT_TIMEOUT, LOST, Place, uncancelled
from penstock.brokers.words import said
from penstock.ports.source import Incoming, Options, SourceUnavailable, Supplies
from penstock.sources.reading import Reading, reading
from penstock.sources.shelf import Kept, group_of

_DELIVERIES: Final = "x-delivery-count"  # of quorum queues: how often it was given out before


@dataclass(frozen=True, slots=True, eq=False)
class Consumer:
    """A queue that is consumed."""

    queue: str
    channel: AbstractChannel
    tag: str

    async def is_served(self) -> bool:
        """Say whether RabbitMQ still serves it: a queue may have been deleted."""
        if self.channel.is_closed:
            return False
        channel: Any = await self.channel.get_underlay_channel()
        return self.tag in channel.consumers

    async def close(self) -> None:
        """Consume no more; RabbitMQ puts back what is not acknowledged."""
        with suppress(*LOST):
            await self.channel.close()


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """What RabbitMQ knows a message by, and the channel it lives as long as."""

    channel: AbstractChannel
    message: AbstractIncomingMessage


class RabbitMqSource:
    """Consumes queues over one connection, opened anew when it broke. See the module."""

    def __init__(self, place: Place, reading: Reading) -> None:
        self.name = reading.name
        self.visibility = reading.visibility
        self._place = place
        self._reading = reading
        self._turns = reading.turns
        self._clock = reading.clock
        self._shelf = reading.shelf()
        self._connection: AbstractConnection | None = None
        self._control: AbstractChannel | None = None
        self._consumers: dict[str, Consumer] = {}
        self._heard_at = float("-inf")
        self._opening = asyncio.Lock()

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return what RabbitMQ has sent; wait a moment if that is nothing."""
        await self._open()
        await self._shelf.rest()
        if self._clock.monotonic() > self._heard_at + self.visibility.total_seconds() / 3:
            await self._confirm()
        found = self._shelf.take(limit)
        if not found:
            self._turns.complain()
        return found

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Acknowledge them; if the connection breaks before RabbitMQ hears it, they come again."""
        for kept in self._shelf.done(messages):
            with suppress(*LOST), uncancelled():
                await _delivery(kept).message.ack()

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Let them wait here."""
        self._shelf.again(messages, delay)

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Make sure that RabbitMQ hears us."""
        await self._confirm()
        return self._shelf.extend(messages)

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Publish each to the dead queue, and acknowledge it when that is confirmed."""
        await self._open()
        assert self._control is not None  # noqa: S101 - for the type checker
        for message in messages:
            kept = cast("Kept", message.handle)
            if kept.gone:
                continue
            queue = self._reading.dead(message.queue)
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                    with uncancelled():
                        await self._publish(queue, _delivery(kept).message)
            except LOST as error:
                why = f'a message cannot be put aside in "{queue}": {said(error)}'
                raise SourceUnavailable(f"{why}: declare it, or name a dead_queue") from error
            await self.ack([message])

    async def close(self) -> None:
        """End the connection; RabbitMQ puts back what is not acknowledged."""
        connection, self._connection, self._control = self._connection, None, None
        self._consumers.clear()
        self._shelf.lose(lambda _: True)
        if connection is not None:
            with suppress(*LOST):
                async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                    with uncancelled():
                        await connection.close()

    # -- connecting
    async def _open(self) -> None:
        """Be connected and consume every queue there is; raise SourceUnavailable with what to do."""
        async with self._opening:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                    with uncancelled():
                        await self._connect()
                        await self._consume_all()
            except LOST as error:
                await self.close()
                raise SourceUnavailable(self._place.unreachable(error)) from error

    async def _connect(self) -> None:
        transport = self._connection.transport if self._connection is not None else None
        opened = transport is not None and transport.connection.is_opened
        if opened and self._control is not None and not self._control.is_closed:
            return
        await self.close()
        started = self._clock.monotonic()
        self._connection = await self._place.connect(
            f"penstock router {self.name}", heartbeat=math.ceil(self.visibility.total_seconds())
        )
        self._control = await self._channel()
        self._heard_at = started

    async def _channel(self) -> AbstractChannel:
        assert self._connection is not None  # noqa: S101 - for the type checker
        channel = self._connection.channel(publisher_confirms=True, on_return_raises=True)
        await channel.initialize()
        return channel

    async def _consume_all(self) -> None:
        """Consume every queue of our lanes, and no other."""
        current = self._turns.current()
        for consumer in list(self._consumers.values()):
            if consumer.queue not in current or not await consumer.is_served():
                del self._consumers[consumer.queue]
                self._lose(consumer.channel)
                await consumer.close()
        for queue in self._turns.next():
            if queue not in self._consumers:
                await self._consume(queue)

    async def _consume(self, queue: str) -> None:
        channel = await self._channel()
        channel.close_callbacks.add(lambda *_: self._lose(channel))
        try:
            await channel.set_qos(prefetch_count=self._reading.prefetch)
            consumed = await channel.get_queue(queue, ensure=False)
            tag = await consumed.consume(self._take(queue, channel))
        except (ChannelNotFoundEntity, ChannelAccessRefused, ChannelLockedResource) as error:
            self._turns.skip(queue, _wrong(queue, error))
        else:
            self._consumers[queue] = Consumer(queue, channel, tag)

    def _take(
        self, queue: str, channel: AbstractChannel
    ) -> Callable[[AbstractIncomingMessage], Awaitable[None]]:
        """Return what puts a queue's messages on the shelf, in the order in which they come."""

        async def take(message: AbstractIncomingMessage) -> None:
            if channel.is_closed:
                return
            body = message.body.decode(errors="surrogateescape")
            before = message.headers.get(_DELIVERIES)
            receives = before if isinstance(before, int) else int(bool(message.redelivered))
            self._shelf.put(queue, body, group_of(body), tag=Delivery(channel, message), receives=receives)

        return take

    def _lose(self, channel: AbstractChannel) -> None:
        """Forget the messages of a channel that ended."""
        self._shelf.lose(lambda kept: _delivery(kept).channel is channel)

    async def _confirm(self) -> None:
        """Have RabbitMQ answer; if it does not, whatever we have is no longer ours."""
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(self.visibility.total_seconds() / 3):
                if self._control is None:
                    raise ConnectionError("there is no connection")
                with uncancelled():
                    await self._control.set_qos(prefetch_count=1)
        except LOST as error:
            await self.close()
            raise SourceUnavailable(self._place.unreachable(error)) from error
        self._heard_at = started

    async def _publish(self, queue: str, delivery: AbstractIncomingMessage) -> None:
        assert self._control is not None  # noqa: S101 - for the type checker
        if self._reading.dead_queue is None:
            await self._declare(queue)
        copy = aio_pika.Message(
            delivery.body,
            headers=delivery.headers,
            content_type=delivery.content_type,
            message_id=delivery.message_id,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        await self._control.default_exchange.publish(copy, queue, mandatory=True)

    async def _declare(self, queue: str) -> None:
        """Declare a durable queue unless there is one, of whatever kind."""
        channel = await self._channel()
        try:
            await channel.declare_queue(queue, passive=True)
        except ChannelNotFoundEntity:
            channel = await self._channel()
            await channel.declare_queue(queue, durable=True)
        await channel.close()


def _delivery(kept: Kept) -> Delivery:
    return cast("Delivery", kept.tag)


def _wrong(queue: str, error: Exception) -> str:
    match error:
        case ChannelNotFoundEntity():
            return f'there is no queue "{queue}": declare it, or name another in the lane\'s queue'
        case ChannelAccessRefused():
            return f'the queue "{queue}" may not be read: grant read permission'
        case _:
            return f'the queue "{queue}" cannot be consumed: {said(error)}'


async def open_rabbitmq(options: Options, supplies: Supplies) -> RabbitMqSource:
    """Read the options; the first look connects."""
    known_only(options, *rabbitmq.OPTIONS, "exchange", "max_message", *RECEIVING)
    return RabbitMqSource(await rabbitmq.place_of(options, supplies.executor), reading(options, supplies))
