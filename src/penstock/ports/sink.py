"""Where jobs are sent.

A sink takes a batch and answers per message, in order: it never raises for one message and never retries,
the machine does. A message whose answer was lost is `Unknown`. What a sink raises concerns the whole batch:
`SinkUnavailable` when nothing was sent, anything else means that nobody knows what became of any of it.
`probe` is asked before work is repeated.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TextIO, runtime_checkable

from penstock.domain.bodies import DEFAULT_POOL, Writer, unsigned
from penstock.domain.envelopes import Envelope
from penstock.domain.headers import EVENT_PREFIX
from penstock.domain.outcomes import Receipt
from penstock.errors import PenstockError
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.queue import OpenQueues, Queue
from penstock.ports.secrets import Secrets

__all__ = [
    "FAILED", "NOT_STARTED", "RUNNING", "SUCCEEDED", "UNKNOWN", "Envelope", "OpenKind", "OpenSink", "Options",
    "Probed", "Sink", "SinkUnavailable", "Supplies",
]  # fmt: skip


class SinkUnavailable(PenstockError):
    """The sink cannot be opened or reached, and nothing was sent; the same call may succeed later."""

    retryable = True


class Probed(NamedTuple):
    """What a sink knows of one send: `fate` is one of the constants below.

    For `failed`, `retryable` says whether another attempt may help.
    """

    fate: str
    result: str | None = None
    error: str | None = None
    retryable: bool = True


RUNNING, SUCCEEDED, FAILED, NOT_STARTED, UNKNOWN = "running", "succeeded", "failed", "not_started", "unknown"


class Sink(Protocol):
    """A connection of some kind.

    `max_batch` is how many messages one call may carry, `keeps_order` that it delivers a group's messages in
    the order they were sent. `format` and `complete_on` are what its lanes use unless they say otherwise.
    """

    max_batch: int
    keeps_order: bool
    format: str
    complete_on: str

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Send the messages and return one receipt each, in order; the caller limits the time."""

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Say what became of earlier sends, as far as it is known here."""

    async def close(self) -> None:
        """Give up connections."""


@runtime_checkable
class Divided(Protocol):
    """A sink with limits of its own that the nodes keep together, each a part."""

    def divide(self, nodes: int) -> None:
        """Learn how many nodes send."""


class OpenSink(Protocol):
    """Opens sinks by name: a named connection of the configuration, or a kind's default connection."""

    async def __call__(self, name: str) -> Sink:
        """Return the sink; raise SinkUnavailable with the reason when it cannot be opened."""


Options = Mapping[str, str | int | float | bool | tuple[str, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """What a node gives its sinks to work with.

    `allow_networks` and `own_listeners` (host and port each) are for whoever connects to targets: addresses
    that are allowed although they are not global, and those that never are. Pointers lead to `endpoint` and
    carry what `sign` returns. `stream` is where a console writes. `open_queues` opens embedded queues that
    are not the store's.
    """

    executor: Executor
    clock: Clock
    stream: TextIO
    queue: Queue | None = None
    open_queues: OpenQueues | None = None
    secrets: Secrets | None = None
    allow_networks: Sequence[str] = ()
    own_listeners: Collection[tuple[str, int]] = ()
    endpoint: str = ""
    default_pool: str = DEFAULT_POOL
    sign: Callable[[Envelope], str] = unsigned

    def writer(self, kind: str, *, format: str, prefix: str = EVENT_PREFIX) -> Writer:  # noqa: A002
        """Return what writes the bodies of a sink of this kind, in this format unless a lane says another."""
        return Writer(
            format=format,
            kind=kind,
            prefix=prefix,
            endpoint=self.endpoint,
            default_pool=self.default_pool,
            sign=self.sign,
        )


OpenKind = Callable[[Options, Supplies], Awaitable[Sink]]
"""Opens a connection of one kind; what the entry points of the group `penstock.sinks` lead to."""
