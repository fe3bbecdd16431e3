"""Where queued messages come from: the receiving end of a broker.

A received message is hidden from everybody else for the source's `visibility`; whoever received it says what
is to become of it before that, or has it hidden for longer. What is said too late counts for nothing: the
message has come again, and whoever handles it must bear that.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from penstock.errors import PenstockError
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.queue import OpenQueues, Queue
from penstock.ports.sink import Options

__all__ = ["Incoming", "OpenKind", "Options", "Source", "SourceUnavailable", "Supplies"]


class SourceUnavailable(PenstockError):
    """The source cannot be opened or reached; the same call may succeed later."""

    retryable = True


class Incoming(NamedTuple):
    """A message that was received; `handle` is what its source knows it by.

    `receives` counts how often it was received, this time included; at least 1, as far as the source knows.
    """

    queue: str
    body: str
    receives: int
    handle: object


class Source(Protocol):
    """Messages of some queues.

    `name` is what logs and metrics call it. Every method may raise SourceUnavailable or StoreUnavailable;
    then nobody knows whether it took effect, and it may be repeated.
    """

    name: str

    @property
    def visibility(self) -> timedelta:
        """How long a received message stays hidden."""

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return at most so many messages, in the order of their queues; after a second at the latest."""

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Delete messages that are done with."""

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Have messages come again after the delay, as far as the broker can tell the time.

        Of a group, what is behind goes back before what is in front: while its first message is out a broker
        that keeps order gives none of the others to anybody.
        """

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Hide messages for another `visibility` from now; return those that are still ours."""

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Put messages aside that nobody will ever be able to deliver, where a person can find them."""

    async def close(self) -> None:
        """Give up connections; what was not acknowledged comes again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """What a router gives a source to work with.

    `name` is the sink whose lanes send to it, and `queues` returns the queues of those lanes as they are now.
    """

    name: str
    queues: Callable[[], Sequence[str]]
    executor: Executor
    clock: Clock
    queue: Queue | None = None
    open_queues: OpenQueues | None = None


OpenKind = Callable[[Options, Supplies], Awaitable[Source]]
"""Opens a source of one kind; what the entry points of the group `penstock.sources` lead to."""
