"""Sink `kafka`: produces each message to a topic, keyed by its group, acknowledged by all replicas in sync.

The producer is idempotent: what it repeats after a lost answer Kafka takes once, and in order. It would go
on repeating for ever, so one that did not get an answer in time is given up with all that it still holds, and
the next call has a new one. What the engine then sends again may be there twice: Kafka knows producers, not
sends.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTopicError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from penstock.brokers.options import duration, flag, known_only, one_of, required, size, text, tls_context
from penstock.brokers.words import said
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope
from penstock.domain.headers import message_headers
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Unknown, Unsent
from penstock.domain.states import Reason
from penstock.errors import InvalidSetting
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.waves import TooLarge, in_waves

MAX_MESSAGE: Final = 1_000_000  # what brokers take unless told otherwise, less what a record adds
TIMEOUT: Final = timedelta(seconds=10)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SAID: Final = 300
_ROOM: Final = 64 * 1024  # for key and headers
_NO_TOPIC: Final = (UnknownTopicOrPartitionError, InvalidTopicError, TopicAuthorizationFailedError)
_FAILED: Final = (KafkaError, OSError, TimeoutError)

MakeProducer = Callable[[], AIOKafkaProducer]


class Record(NamedTuple):
    """One message as Kafka takes it."""

    topic: str
    key: bytes | None
    value: bytes
    headers: Sequence[tuple[str, bytes]]


@dataclass(slots=True, eq=False)
class Line:
    """A producer and how many calls use it; a retired one is stopped when the last of them has ended."""

    producer: AIOKafkaProducer
    calls: int = 0
    retired: bool = False


class KafkaSink:
    """Produces to topics: the lane's `queue`, else the sink's, else one with the lane's name."""

    max_batch = 500
    keeps_order = True
    format = "full"
    complete_on = "sent"

    def __init__(
        self,
        make: MakeProducer,
        *,
        writer: Writer,
        queue: str | None = None,
        max_message: int = MAX_MESSAGE,
        timeout: timedelta = TIMEOUT,
    ) -> None:
        self._make = make
        self._writer = writer
        self._queue = queue
        self._max_message = max_message
        self._timeout = timeout.total_seconds()
        self._line: Line | None = None
        self._opening = asyncio.Lock()

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Produce the batch and wait until it is acknowledged."""
        return await in_waves(batch, self._record, self._produce)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """A topic is not searched."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Stop the producer."""
        line, self._line = self._line, None
        if line is not None:
            await _stop(line.producer)

    async def open(self) -> Line:
        """Return a producer that works, as far as we know, or raise SinkUnavailable."""
        async with self._opening:
            if self._line is None or self._line.retired:
                self._line = Line(await self._started())
            return self._line

    async def _started(self) -> AIOKafkaProducer:
        producer = self._make()
        try:
            async with asyncio.timeout(self._timeout):
                await producer.start()
                if self._queue is not None:
                    await producer.partitions_for(self._queue)
        except _NO_TOPIC as error:
            await _stop(producer)
            raise SinkUnavailable(_no_topic(error, str(self._queue))) from error
        except _FAILED as error:
            await _stop(producer)
            # Of brokers that cannot be reached the driver tells no more than their list.
            nobody = isinstance(error, KafkaConnectionError)
            why = "none of the brokers in url answers" if nobody else said(error)
            advice = "check url, tls, username and password"
            raise SinkUnavailable(f"Kafka cannot be reached: {why}: {advice}") from error
        except BaseException:
            await _stop(producer)
            raise
        return producer

    def _record(self, envelope: Envelope) -> Record:
        value = self._writer.body(envelope)
        if len(value) > self._max_message:
            raise TooLarge(len(value), self._max_message)
        headers = message_headers(envelope, prefix=self._writer.prefix)
        return Record(
            envelope.queue or self._queue or envelope.lane,
            None if envelope.group is None else envelope.group.encode(),
            value,
            [(name, text.encode()) for name, text in headers.items()],
        )

    async def _produce(self, records: Sequence[Record]) -> Sequence[Receipt]:
        line = await self.open()
        line.calls += 1
        try:
            offered = await self._offer_all(line, records)
            waiting = [one for one in offered if isinstance(one, asyncio.Future)]
            if waiting:
                await asyncio.wait(waiting, timeout=self._timeout)
            answers = [
                _answer(one, record) if isinstance(one, asyncio.Future) else one
                for one, record in zip(offered, records, strict=True)
            ]
            # A producer that lost one record is out of step with Kafka's count of them.
            line.retired |= any(isinstance(one, asyncio.Future) and not _taken(one) for one in offered)
        except BaseException:
            line.retired = True
            raise
        finally:
            line.calls -= 1
            if line.retired and not line.calls:
                await _stop(line.producer)
        return answers

    async def _offer_all(
        self, line: Line, records: Sequence[Record]
    ) -> "list[asyncio.Future[Any] | Receipt]":
        """Give the records to the producer; a topic that could not be found is not looked for again."""
        missing: dict[str, Unsent] = {}
        offered: list[asyncio.Future[Any] | Receipt] = []
        for record in records:
            one = missing.get(record.topic) or await self._offer(line, record)
            if isinstance(one, Unsent):
                missing[record.topic] = one
            offered.append(one)
        return offered

    async def _offer(self, line: Line, record: Record) -> "asyncio.Future[Any] | Receipt":
        """Give a record to the producer; until that has taken it nothing goes out."""
        try:
            async with asyncio.timeout(self._timeout):
                future: asyncio.Future[Any] = await line.producer.send(
                    record.topic, record.value, key=record.key, headers=record.headers
                )
        except MessageSizeTooLargeError as error:
            return Rejected(said(error), Reason.TOO_LARGE)
        except (UnknownTopicOrPartitionError, InvalidTopicError):
            return Unsent(
                f'there is no topic "{record.topic}": create it, or name another in the lane\'s queue'
            )
        except TopicAuthorizationFailedError:
            return Unsent(f'the topic "{record.topic}" may not be written to: allow Write and Describe')
        except _FAILED as error:
            line.retired = True
            return Unsent(f"Kafka does not answer: {said(error)}")
        return future


def _taken(future: "asyncio.Future[Any]") -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _answer(future: "asyncio.Future[Any]", record: Record) -> Receipt:
    """Return what became of a record that the producer had."""
    if not future.done() or future.cancelled():
        return Unknown("Kafka did not acknowledge it in time")
    match future.exception():
        case None:
            told = future.result()
            return Accepted(f"{told.topic}/{told.partition}/{told.offset}")
        case MessageSizeTooLargeError() | RecordListTooLargeError() as error:
            return Rejected(f"Kafka refuses it: {said(error)}", Reason.TOO_LARGE)
        case PolicyViolationError() as error:
            return Rejected(f"Kafka refuses it: {said(error)}")
        case TopicAuthorizationFailedError() as error:
            return Unsent(_no_topic(error, record.topic))
        case error:
            return Unknown(said(error))


def _no_topic(error: KafkaError, topic: str) -> str:
    if isinstance(error, TopicAuthorizationFailedError):
        return f'the topic "{topic}" may not be written to: allow Write and Describe'
    return f'there is no topic "{topic}": create it, or name another in the lane\'s queue'


async def _stop(producer: AIOKafkaProducer) -> None:
    """Stop a producer with all that it still holds: its own `stop` would go on until that is delivered."""
    task = producer._sender.sender_task  # noqa: SLF001 - nothing public ends it
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.1)
    producer._closed = True  # noqa: SLF001
    with suppress(*_FAILED):
        await producer.client.close()


async def open_kafka(options: Options, supplies: Supplies) -> KafkaSink:
    """Start a producer, which finds the cluster."""
    known_only(
        options, "url", "queue", "username", "password", "sasl_mechanism", "tls", "ca_file",
        "max_message", "timeout",
    )  # fmt: skip
    servers = [one.strip() for one in required(options, "url", "127.0.0.1:9092").split(",")]
    if not all(_is_address(one) for one in servers):
        raise InvalidSetting(
            "url", "is not a list of brokers: write host:9092, or several with commas between"
        )
    username, password = text(options, "username"), text(options, "password")
    if (username is None) != (password is None):
        raise InvalidSetting("password" if password is None else "username", "is missing: they go together")
    max_message = size(options, "max_message", MAX_MESSAGE)
    timeout = duration(options, "timeout", TIMEOUT)
    mechanism = one_of(options, "sasl_mechanism", MECHANISMS, MECHANISMS[0])
    tls, ca_file = flag(options, "tls"), text(options, "ca_file")
    context = await supplies.executor.run(lambda: tls_context(ca_file)) if tls else None
    protocol = ("SASL_" if username is not None else "") + ("SSL" if tls else "PLAINTEXT")

    def make() -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=servers,
            client_id="penstock",
            enable_idempotence=True,
            acks="all",
            request_timeout_ms=int(timeout.total_seconds() * 1000),
            max_request_size=max_message + _ROOM,
            security_protocol=protocol,
            ssl_context=context,
            sasl_mechanism=mechanism,
            sasl_plain_username=username,
            sasl_plain_password=password,
        )

    sink = KafkaSink(
        make,
        writer=supplies.writer("kafka", format=KafkaSink.format),
        queue=text(options, "queue"),
        max_message=max_message,
        timeout=timeout,
    )
    await sink.open()
    return sink


def _is_address(server: str) -> bool:
    host, _, port = server.rpartition(":")
    return bool(host) and "/" not in host and port.isascii() and port.isdigit()
