"""The embedded broker: queues in the store itself, for those who have no other. A part of `Store`."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

# For so long after an acknowledgement a dedup name is known still: a re-send after a crash is absorbed.
REMEMBERED: Final = timedelta(minutes=10)


class Message(NamedTuple):
    """A message to be queued; `dedup` makes the second one of the same name a duplicate."""

    body: str
    group: str | None = None
    dedup: str | None = None


class Delivery(NamedTuple):
    """A message that was received; `receives` fences what is said about it."""

    id: int
    body: str
    group: str | None
    receives: int
    created_at: datetime


class Queue(Protocol):
    """Queues with visibility timeouts; messages of one group are received in order, one at a time."""

    def push(self, queue: str, messages: Sequence[Message]) -> list[int | None]:
        """Append messages; the number of each, None for one whose dedup name is known already.

        A name is known while its message is in the queue, and for `REMEMBERED` after it was acknowledged.
        """

    def receive(self, queue: str, limit: int, *, visibility: timedelta) -> list[Delivery]:
        """Return messages that are visible, oldest first, and hide them for that long.

        Of each group only its first, and none while that one is hidden.
        """

    def ack(self, deliveries: Sequence[Delivery]) -> int:
        """Delete messages that were not received again since; return how many."""

    def nack(self, deliveries: Sequence[Delivery], *, delay: timedelta) -> int:
        """Make them visible again after the delay (or, for those at work, hide them that much longer)."""

    def queued(self, queue: str, dedups: Sequence[str]) -> frozenset[str]:
        """Return which of these dedup names are still in the queue."""


class QueueFile(Queue, Protocol):
    """Queues in a file of their own, apart from any store."""

    def close(self) -> None:
        """Give the file up."""


OpenQueues = Callable[[str], QueueFile]
"""Opens the queues in the file of a URL, made on first use; raises InvalidSetting."""
