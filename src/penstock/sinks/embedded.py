"""Sink `embedded`: the broker inside the store, or in a SQLite file of its own, for those who run no other.

A message is deleted when the router has done with it. So one that is still queued has been taken over and
waits or is at work: a probe calls that *running*, which means "do not repeat it". One that is gone was done
with, or never arrived: nobody here knows which.
"""

from collections.abc import Mapping, Sequence

from penstock.brokers.options import known_only, text
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.outcomes import Accepted, Duplicate, Receipt, Rejected
from penstock.errors import InvalidSetting
from penstock.ports.executor import Executor
from penstock.ports.queue import Message, Queue, QueueFile
from penstock.ports.sink import RUNNING, UNKNOWN, Options, Probed, Supplies


class EmbeddedSink:
    """Pushes messages into queues of the store: the lane's `queue`, or one with the lane's own name.

    A push whose answer was lost may be repeated: the second message of the same send is a duplicate.
    """

    max_batch = 500
    keeps_order = True
    format = "pointer"
    complete_on = "reported"

    def __init__(
        self, queue: Queue, *, writer: Writer, executor: Executor, own: QueueFile | None = None
    ) -> None:
        self._queue = queue
        self._own = own
        self._writer = writer
        self._executor = executor

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Push the batch, one call per queue; what cannot be written is left out and rejected."""
        receipts: dict[int, Receipt] = {}
        messages: dict[str, dict[int, Message]] = {}
        for index, envelope in enumerate(batch):
            try:
                body = self._writer.body(envelope).decode()
            except Unwritable as error:
                receipts[index] = Rejected(str(error))
            else:
                message = Message(body, envelope.ordered_group, envelope.dedup)
                messages.setdefault(_queue(envelope), {})[index] = message
        for queue, ours in messages.items():
            numbers = await self._executor.run(lambda q=queue, m=ours: self._queue.push(q, list(m.values())))  # type: ignore[misc]
            receipts |= {
                index: Duplicate() if number is None else Accepted(f"{queue}/{number}")
                for index, number in zip(ours, numbers, strict=True)
            }
        return [receipts[index] for index in range(len(batch))]

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Look which sends are still in their queue."""
        wanted: dict[str, list[str]] = {}
        for envelope in sends:
            wanted.setdefault(_queue(envelope), []).append(envelope.dedup)
        found = await self._executor.run(lambda: self._queued(wanted))
        return [Probed(RUNNING if (_queue(e), e.dedup) in found else UNKNOWN) for e in sends]

    async def close(self) -> None:
        """Close a file of our own; the store is not ours to close."""
        own, self._own = self._own, None
        if own is not None:
            await self._executor.run(own.close)

    def _queued(self, wanted: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
        return {
            (queue, dedup) for queue, dedups in wanted.items() for dedup in self._queue.queued(queue, dedups)
        }


def _queue(envelope: Envelope) -> str:
    return envelope.queue or envelope.lane


async def open_embedded(options: Options, supplies: Supplies) -> EmbeddedSink:
    """Open the store's own queues, or those of the file `url`; `visibility` is for whoever receives."""
    known_only(options, "url", "visibility")
    writer = supplies.writer("embedded", format=EmbeddedSink.format)
    url, open_queues = text(options, "url"), supplies.open_queues
    if url is not None and open_queues is not None:
        own = await supplies.executor.run(lambda: open_queues(url))
        return EmbeddedSink(own, writer=writer, executor=supplies.executor, own=own)
    if supplies.queue is None:
        raise InvalidSetting("kind", "this process has no store with queues: use another sink")
    return EmbeddedSink(supplies.queue, writer=writer, executor=supplies.executor)
