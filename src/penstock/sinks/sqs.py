"""Sink `sqs`: Amazon SQS, standard and FIFO queues, and whatever speaks its protocol.

In a FIFO queue (its name ends in `.fifo`) a message carries its group and the name of its send, so SQS itself
drops what a crash sent twice within five minutes, while a retry, which is a new send, is delivered. A message
without an order to keep is a group of its own: it waits for nobody.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import aiohttp
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
    SSLError,
)

from penstock.brokers import sqs
from penstock.brokers.options import RECEIVING, flag, known_only, size, text
from penstock.brokers.sqs import FIFO, MOST_AT_ONCE, Sqs, code, slow_down, unreachable
from penstock.brokers.words import said
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, TryAgain, Unknown, Unsent
from penstock.domain.texts import shown
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.waves import PAUSE, TooLarge, in_waves

MAX_MESSAGE: Final = 256 * 1024
_SAID: Final = 300
_UNFIT: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GROUP: Final = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")


class Entry(NamedTuple):
    """One message as SQS takes it, for a queue, with its size in bytes."""

    queue: str
    fields: Mapping[str, Any]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where messages go and how large they may be; `fifo` = into FIFO queues only, which keep order."""

    queue: str | None
    fifo: bool
    max_message: int


class SqsSink:
    """Sends batches of ten. See the module."""

    max_batch = MOST_AT_ONCE
    format = "pointer"
    complete_on = "reported"

    def __init__(self, queues: Sqs, *, writer: Writer, place: Place) -> None:
        self.keeps_order = place.fifo
        self._sqs = queues
        self._client = queues.client
        self._writer = writer
        self._place = place

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Send the batch, one call per queue and wave."""
        return await in_waves(batch, self._entry, self._send)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """SQS shows a message only to those who take it."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Close the kept connections."""
        await self._sqs.close()

    async def check(self) -> None:
        """Raise SinkUnavailable unless SQS answers us, and has our queue if we know one."""
        try:
            if self._place.queue is None:
                await self._client.list_queues(MaxResults=1)
            else:
                await self._client.get_queue_attributes(
                    QueueUrl=await self._sqs.url(self._place.queue), AttributeNames=["QueueArn"]
                )
        except ClientError as error:
            # Whoever may send need not be allowed to look around.
            if not code(error).startswith("AccessDenied"):
                raise SinkUnavailable(_refused(error, self._place.queue) or said(error)) from error
        except BotoCoreError as error:
            raise SinkUnavailable(unreachable(error)) from error

    def _entry(self, envelope: Envelope) -> Entry:
        queue = envelope.queue or self._place.queue or envelope.lane
        body = self._writer.body(envelope).decode()
        unfit = _UNFIT.search(body)
        if unfit is not None:
            sign = f"U+{ord(unfit[0]):04X}"
            raise Unwritable(f'the message holds {sign}, which SQS refuses: send format = "pointer"')
        facts = {"Job-Id": envelope.id, "Send": str(envelope.number), "Lane": envelope.lane}
        attributes = {
            f"X-Penstock-{name}": {"DataType": "String", "StringValue": fact} for name, fact in facts.items()
        }
        length = len(body.encode()) + sum(len(f"X-Penstock-{n}String{fact}") for n, fact in facts.items())
        if length > self._place.max_message:
            raise TooLarge(length, self._place.max_message)
        fields: dict[str, Any] = {"MessageBody": body, "MessageAttributes": attributes}
        if queue.endswith(FIFO):
            fields["MessageGroupId"] = group_id(envelope.ordered_group or envelope.id)
            fields["MessageDeduplicationId"] = envelope.dedup
        return Entry(queue, fields, length)

    async def _send(self, entries: Sequence[Entry]) -> Sequence[Receipt]:
        answers: dict[int, Receipt] = {}
        for numbers in _calls(entries, self._place.max_message):
            answers |= zip(numbers, await self._call([entries[n] for n in numbers]), strict=True)
        return [answers[n] for n in range(len(entries))]

    async def _call(self, entries: Sequence[Entry]) -> Sequence[Receipt]:
        queue, number = entries[0].queue, len(entries)
        if self._place.fifo and not queue.endswith(FIFO):
            return [Unsent(f'the queue "{queue}" is not FIFO: name one that is, or drop fifo')] * number
        try:
            reply = await self._client.send_message_batch(
                QueueUrl=await self._sqs.url(queue),
                Entries=[{"Id": str(n), **entry.fields} for n, entry in enumerate(entries)],
            )
        except ClientError as error:
            whole = _whole(error, queue)
            if isinstance(whole, Rejected) and number > 1:  # one of them is bad: ask of each
                return [(await self._call([entry]))[0] for entry in entries]
            return [whole] * number
        except BotoCoreError as error:
            fate = Unsent if _never_left(error) else Unknown
            return [fate(unreachable(error))] * number
        taken = {int(one["Id"]): Accepted(one.get("MessageId")) for one in reply.get("Successful", ())}
        failed = {int(one["Id"]): _entry_failed(one) for one in reply.get("Failed", ())}
        silent = Unknown("SQS said nothing of this message")
        return [failed.get(n) or taken.get(n) or silent for n in range(len(entries))]


def group_id(group: str) -> str:
    """Return the group as SQS takes it: as it is, or its hash where SQS would refuse it."""
    return group if _GROUP.fullmatch(group) else f"sha256:{sha256(group.encode()).hexdigest()}"


def _calls(entries: Sequence[Entry], limit: int) -> Iterator[list[int]]:
    """Yield what goes in one call: ten entries of one queue at most, together no larger than one may be."""
    open_calls: dict[str, tuple[list[int], int]] = {}
    for number, entry in enumerate(entries):
        numbers, total = open_calls.get(entry.queue, ([], 0))
        if numbers and (len(numbers) == SqsSink.max_batch or total + entry.size > limit):
            yield numbers
            numbers, total = [], 0
        open_calls[entry.queue] = ([*numbers, number], total + entry.size)
    yield from (numbers for numbers, _ in open_calls.values())


def _entry_failed(one: Mapping[str, Any]) -> Receipt:
    """Return what it means that SQS refused one message of a batch."""
    error = shown(f"{one.get('Code')}: {one.get('Message') or ''}", _SAID)
    if slow_down(str(one.get("Code"))):
        return Throttled(PAUSE, error)
    return Rejected(error) if one.get("SenderFault") else TryAgain(error)


def _whole(error: ClientError, queue: str) -> Receipt:
    """Return what it means that SQS refused a whole call: it took nothing of it, unless it broke inside."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if slow_down(code(error)) or status == 429:
        return Throttled(PAUSE, said(error))
    if status >= 500:
        return Unknown(said(error))
    why = _refused(error, queue)
    return Rejected(said(error)) if why is None else Unsent(why)


def _refused(error: ClientError, queue: str | None) -> str | None:
    return sqs.refused(error, queue, wants="written to: allow sqs:SendMessage")


def _never_left(error: BotoCoreError) -> bool:
    """Say whether a call failed before anything of it went out."""
    if isinstance(error, EndpointConnectionError):  # also what a connection is called that broke later
        return isinstance(error.kwargs.get("error"), aiohttp.ClientConnectorError | socket.gaierror)
    early = ConnectTimeoutError | SSLError | ProxyConnectionError
    return isinstance(error, early) or not isinstance(error, HTTPClientError)


async def open_sqs(options: Options, supplies: Supplies) -> SqsSink:
    """Open a pool of connections to SQS and see that it answers."""
    known_only(options, *sqs.OPTIONS, "fifo", "max_message", *RECEIVING)
    queue = text(options, "queue")
    place = Place(
        queue=queue,
        fifo=flag(options, "fifo", default=queue is not None and queue.endswith(FIFO)),
        max_message=size(options, "max_message", MAX_MESSAGE),
    )
    queues = await sqs.open_client(options)
    sink = SqsSink(queues, writer=supplies.writer("sqs", format=SqsSink.format), place=place)
    try:
        await sink.check()
    except BaseException:
        await sink.close()
        raise
    return sink
