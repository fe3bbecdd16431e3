"""Source `sqs`: Amazon SQS, standard and FIFO queues.

SQS hides what it gave out and shows it again in time, so nothing waits here. In a FIFO queue it gives nothing
more of a group while one of its messages is out, to whomever; a standard queue keeps no order, and the lane's
`hold_until = "done"` does instead.

What is buried goes to the queue's own dead-letter queue, or to one that is named, or to `NAME-dead`.
"""

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple, cast

from botocore.exceptions import BotoCoreError, ClientError

from penstock.brokers import sqs
from penstock.brokers.options import RECEIVING, known_only, text, visibility
from penstock.brokers.sqs import FIFO, MOST_AT_ONCE, Sqs
from penstock.brokers.words import said
from penstock.errors import InvalidSetting
from penstock.ports.source import Incoming, Options, SourceUnavailable, Supplies
from penstock.sources.turns import Turns

LONGEST_S: Final = 12 * 60 * 60  # SQS hides nothing for longer
WAIT_S: Final = 1
IDLE_S: Final = 0.5
DEAD: Final = "-dead"
MOST_QUEUES: Final = 20  # looked at together
_READ: Final = "read: allow sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility"


class Handle(NamedTuple):
    """What SQS knows a received message by."""

    url: str
    receipt: str
    id: str
    group: str | None


class SqsSource:
    """Receives up to ten messages per call and queue. See the module."""

    def __init__(
        self,
        queues: Sqs,
        *,
        name: str,
        turns: Turns,
        visibility: timedelta = timedelta(seconds=30),
        dead_queue: str | None = None,
    ) -> None:
        self.name = name
        self.visibility = visibility
        self._sqs = queues
        self._turns = turns
        self._dead_queue = dead_queue
        self._dead: dict[str, str] = {}

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Look at all queues, as many at once as may be; if they are empty, wait at some for a second.

        One queue is waited at right away: that is one call a second where nothing comes.
        """
        looked = self._turns.current() if len(self._turns.current()) == 1 else frozenset[str]()
        found: list[Incoming] = []
        waited = False
        while not found and not waited:
            queues = self._turns.next(min(limit, MOST_QUEUES))
            if not queues:
                await asyncio.sleep(IDLE_S)
                break
            waited = looked.issuperset(queues)
            found = await self._look(queues, limit, wait=WAIT_S if waited else 0)
            looked |= set(queues)
        if not found:
            self._turns.complain()
        return found

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Delete them; one that has come again meanwhile is not ours to delete."""
        await self._each(
            messages,
            lambda url, entries: self._sqs.client.delete_message_batch(QueueUrl=url, Entries=entries),
        )

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Have SQS show them after the delay, in whole seconds."""
        await self._hide(messages, delay)

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Have SQS hide them for longer."""
        return await self._hide(messages, self.visibility)

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Send each to the dead queue, then delete it."""
        for message in messages:
            handle = _handle(message)
            try:
                await self._send_dead(message, handle)
            except ClientError as error:
                wants = "buried in: allow sqs:SendMessage, sqs:GetQueueAttributes, sqs:CreateQueue"
                why = sqs.refused(error, f"{message.queue}{DEAD}", wants=wants) or said(error)
                raise SourceUnavailable(
                    f"a message cannot be put aside: {why}; or name a dead_queue"
                ) from error
            except BotoCoreError as error:
                raise SourceUnavailable(sqs.unreachable(error)) from error
        await self.ack(messages)

    async def close(self) -> None:
        """Close the kept connections; what was received is shown again by SQS."""
        await self._sqs.close()

    async def _look(self, queues: Sequence[str], limit: int, *, wait: int) -> list[Incoming]:
        share = min(MOST_AT_ONCE, limit // len(queues))
        async with asyncio.TaskGroup() as tasks:
            looking = [tasks.create_task(self._receive(queue, share, wait=wait)) for queue in queues]
        found = [message for task in looking for message in task.result()]
        while len(queues) == 1 and found and len(found) % MOST_AT_ONCE == 0 and len(found) < limit:
            more = await self._receive(queues[0], min(MOST_AT_ONCE, limit - len(found)), wait=0)
            if not more:
                break
            found += more
        return found

    async def _receive(self, queue: str, limit: int, *, wait: int) -> list[Incoming]:
        """Return what a queue has; one that cannot be read is left alone for a while."""
        try:
            url = await self._sqs.url(queue)
            reply = await self._sqs.client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=wait,
                VisibilityTimeout=math.ceil(self.visibility.total_seconds()),
                AttributeNames=["ApproximateReceiveCount", "MessageGroupId"],
            )
        except ClientError as error:
            self._turns.skip(queue, sqs.refused(error, queue, wants=_READ) or said(error))
            return []
        except BotoCoreError as error:
            self._turns.skip(queue, sqs.unreachable(error), timedelta(0))
            return []
        return [_incoming(queue, url, message) for message in reply.get("Messages", ())]

    async def _hide(self, messages: Sequence[Incoming], delay: timedelta) -> Sequence[Incoming]:
        seconds = min(math.ceil(delay.total_seconds()), LONGEST_S)
        return await self._each(
            messages,
            lambda url, entries: self._sqs.client.change_message_visibility_batch(
                QueueUrl=url, Entries=[{**entry, "VisibilityTimeout": seconds} for entry in entries]
            ),
        )

    async def _each(self, messages: Sequence[Incoming], call: Callable[..., Any]) -> list[Incoming]:
        """Say the same of all messages; return those of which SQS took it, the others are not ours."""
        taken: list[Incoming] = []
        for url, batch in _batches(messages):
            entries = [{"Id": str(n), "ReceiptHandle": _handle(one).receipt} for n, one in enumerate(batch)]
            try:
                reply = await call(url, entries)
            except ClientError as error:
                raise SourceUnavailable(said(error)) from error
            except BotoCoreError as error:
                raise SourceUnavailable(sqs.unreachable(error)) from error
            refused = {int(one["Id"]): one for one in reply.get("Failed", ())}
            ours_to_repeat = [one for one in refused.values() if not one.get("SenderFault")]
            if ours_to_repeat:
                raise SourceUnavailable(f"SQS could not: {ours_to_repeat[0].get('Code')}")
            taken += [one for n, one in enumerate(batch) if n not in refused]
        return taken

    async def _send_dead(self, message: Incoming, handle: Handle) -> None:
        url = self._dead.get(handle.url) or await self._find_dead(message.queue, handle.url)
        self._dead[handle.url] = url
        fields = {"QueueUrl": url, "MessageBody": message.body}
        if url.endswith(FIFO):  # said twice it is there once
            fields |= {"MessageGroupId": handle.group or handle.id, "MessageDeduplicationId": handle.id}
        await self._sqs.client.send_message(**fields)

    async def _find_dead(self, queue: str, url: str) -> str:
        if self._dead_queue is not None:
            return await self._sqs.url(self._dead_queue)
        found = await self._sqs.client.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])
        policy = found.get("Attributes", {}).get("RedrivePolicy")
        if policy is not None:
            return await self._sqs.url(str(json.loads(policy)["deadLetterTargetArn"]).rpartition(":")[2])
        own = queue.rpartition("/")[2]
        fifo = own.endswith(FIFO)
        name = f"{own.removesuffix(FIFO)}{DEAD}{FIFO if fifo else ''}"
        attributes = {"FifoQueue": "true"} if fifo else {}
        made = await self._sqs.client.create_queue(QueueName=name, Attributes=attributes)
        return str(made["QueueUrl"])


def _incoming(queue: str, url: str, message: Mapping[str, Any]) -> Incoming:
    facts = message.get("Attributes", {})
    handle = Handle(url, message["ReceiptHandle"], message["MessageId"], facts.get("MessageGroupId"))
    return Incoming(queue, message["Body"], int(facts.get("ApproximateReceiveCount", 1)), handle)


def _handle(message: Incoming) -> Handle:
    return cast("Handle", message.handle)


def _batches(messages: Sequence[Incoming]) -> Iterator[tuple[str, list[Incoming]]]:
    """Yield what goes in one call: ten messages of one queue at most."""
    queues: dict[str, list[Incoming]] = {}
    for message in messages:
        queues.setdefault(_handle(message).url, []).append(message)
    for url, several in queues.items():
        for begin in range(0, len(several), MOST_AT_ONCE):
            yield url, several[begin : begin + MOST_AT_ONCE]


async def open_sqs(options: Options, supplies: Supplies) -> SqsSource:
    """Open a pool of connections to SQS; the first look tells whether it answers."""
    known_only(options, *sqs.OPTIONS, "fifo", "max_message", *RECEIVING)
    hidden = visibility(options)
    if hidden.total_seconds() > LONGEST_S:
        raise InvalidSetting("visibility", "SQS hides nothing for longer than 12h: write 30s, for example")
    return SqsSource(
        await sqs.open_client(options),
        name=supplies.name,
        turns=Turns(supplies.queues, supplies.clock),
        visibility=hidden,
        dead_queue=text(options, "dead_queue"),
    )
