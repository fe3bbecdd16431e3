"""Sink `rabbitmq`: publishes each message, persistent and mandatory, and waits for the broker's confirm.

A message that no queue takes comes back and is not lost: its job stays pending until there is a queue.
RabbitMQ does not remember what it took: a send whose confirm was lost is published again.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import (
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from aiormq.exceptions import ChannelAccessRefused

from penstock.brokers import rabbitmq
from penstock.brokers.options import RECEIVING, known_only, size, text
from penstock.brokers.rabbitmq import CONNECT_TIMEOUT, LOST, Place
from penstock.brokers.words import said
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.headers import message_headers
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, Unknown, Unsent
from penstock.domain.states import Reason
from penstock.domain.texts import shown
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.waves import PAUSE, TooLarge, in_waves

MAX_MESSAGE: Final = 16 * 1024 * 1024
MAX_NAME: Final = 255  # bytes, of a routing key and of a header's name
MAX_HEADERS: Final = 64 * 1024  # they go in one frame, which the broker limits to 128 KiB
_LARGER: Final = re.compile(r"larger than configured max size ([0-9]+)")


class Letter(NamedTuple):
    """One message and the key it is routed by."""

    key: str
    message: aio_pika.Message


class RabbitMqSink:
    """Publishes on one channel, opened anew when it or its connection broke. See the module."""

    max_batch = 100
    keeps_order = False
    format = "pointer"
    complete_on = "reported"

    def __init__(
        self,
        place: Place,
        *,
        writer: Writer,
        exchange: str = "",
        queue: str | None = None,
        max_message: int = MAX_MESSAGE,
    ) -> None:
        self._place = place
        self._writer = writer
        self._exchange_name = exchange
        self._queue = queue
        self._max_message = max_message
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._exchange: AbstractExchange | None = None
        self._opening = asyncio.Lock()

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Publish the batch and wait for every confirm."""
        return await in_waves(batch, self._letter, self._publish_all)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """A queue shows a message only to those who take it."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(*LOST):
                await connection.close()

    async def open(self) -> AbstractExchange:
        """Return the exchange to publish to, connected; raise SinkUnavailable with what to do."""
        async with self._opening:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                    return await self._opened()
            except LOST as error:
                await self.close()
                raise SinkUnavailable(self._unreachable(error)) from error

    async def _opened(self) -> AbstractExchange:
        transport = self._connection.transport if self._connection is not None else None
        if self._connection is None or transport is None or not transport.connection.is_opened:
            await self.close()
            self._connection = await self._place.connect("penstock")
        if self._channel is None or self._channel.is_closed or self._exchange is None:
            channel = self._connection.channel(publisher_confirms=True, on_return_raises=True)
            await channel.initialize()
            self._channel = channel
            self._exchange = (
                await channel.get_exchange(self._exchange_name)
                if self._exchange_name
                else channel.default_exchange
            )
        return self._exchange

    def _letter(self, envelope: Envelope) -> Letter:
        body = self._writer.body(envelope)
        if len(body) > self._max_message:
            raise TooLarge(len(body), self._max_message)
        key = envelope.queue or self._queue or envelope.lane
        if len(key.encode()) > MAX_NAME:
            raise Unwritable(f"queue: is longer than the {MAX_NAME} bytes that RabbitMQ takes")
        message = aio_pika.Message(
            body,
            headers=dict(_headers(message_headers(envelope, prefix=self._writer.prefix))),
            content_type="application/json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=envelope.dedup,
            app_id="penstock",
        )
        return Letter(key, message)

    async def _publish_all(self, letters: Sequence[Letter]) -> Sequence[Receipt]:
        exchange = await self.open()
        if await self._is_blocked():
            return [Throttled(PAUSE, "RabbitMQ takes nothing now: it is short of memory or disk")] * len(
                letters
            )
        async with asyncio.TaskGroup() as tasks:
            publishing = [tasks.create_task(self._publish(exchange, letter)) for letter in letters]
        return [task.result() for task in publishing]

    async def _publish(self, exchange: AbstractExchange, letter: Letter) -> Receipt:
        try:
            await exchange.publish(letter.message, letter.key, mandatory=True)
        except PublishError:
            return Unsent(f'no queue takes messages for "{letter.key}": declare or bind one')
        except DeliveryError:
            return Throttled(
                PAUSE, f'RabbitMQ refuses messages for "{letter.key}": the queue is full, perhaps'
            )
        except (ChannelAccessRefused, ChannelNotFoundEntity) as error:
            return Unsent(self._unreachable(error))
        except ChannelPreconditionFailed as error:
            return _too_large(letter, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Unknown("the connection broke")  # the driver cancels what waits on a lost connection
        except LOST as error:
            return Unknown(f"the connection broke: {said(error)}")
        return Accepted(letter.message.message_id)

    async def _is_blocked(self) -> bool:
        """Say whether the broker told us to publish nothing."""
        transport = self._connection.transport if self._connection is not None else None
        if transport is None:
            return False
        try:
            async with asyncio.timeout(0):
                await transport.connection.ready()
        except TimeoutError:
            return True
        return False

    def _unreachable(self, error: Exception) -> str:
        match error:
            case ChannelAccessRefused():
                return f'the exchange "{self._exchange_name}" may not be written to: grant write permission'
            case ChannelNotFoundEntity():
                return f'there is no exchange "{self._exchange_name}": declare it, or name another'
            case _:
                return self._place.unreachable(error)


def _headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers that fit a frame, or raise Unwritable."""
    for name in headers:
        if len(name) > MAX_NAME:
            raise Unwritable(
                f"headers: {shown(name, 40)} is longer than the {MAX_NAME} bytes that RabbitMQ takes"
            )
    if sum(len(name) + len(value.encode()) for name, value in headers.items()) > MAX_HEADERS:
        raise Unwritable("headers: together they are more than the 64KiB that RabbitMQ takes")
    return headers


def _too_large(letter: Letter, error: Exception) -> Receipt:
    """Tell the message that the broker hung up over from those that it took along."""
    larger = _LARGER.search(str(error))
    if larger is not None and len(letter.message.body) > int(larger[1]):
        return Rejected(said(error), Reason.TOO_LARGE)
    return Unknown(said(error))


async def open_rabbitmq(options: Options, supplies: Supplies) -> RabbitMqSink:
    """Connect, and see that the exchange is there."""
    known_only(options, *rabbitmq.OPTIONS, "exchange", "max_message", *RECEIVING)
    sink = RabbitMqSink(
        await rabbitmq.place_of(options, supplies.executor),
        writer=supplies.writer("rabbitmq", format=RabbitMqSink.format),
        exchange=text(options, "exchange") or "",
        queue=text(options, "queue"),
        max_message=size(options, "max_message", MAX_MESSAGE),
    )
    await sink.open()
    return sink
