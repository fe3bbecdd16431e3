"""Where jobs are sent.

A sink takes a batch and answers per message, in order: it never raises for one message and never retries,
the machine does. What it raises concerns the whole batch: `SinkUnavailable` when nothing was sent, anything
else means that nobody knows what became of it. `probe` is asked before work is repeated.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from penstock.domain.envelopes import Envelope
from penstock.domain.outcomes import Receipt
from penstock.errors import PenstockError

__all__ = [
    "FAILED", "NOT_STARTED", "RUNNING", "SUCCEEDED", "UNKNOWN", "Envelope", "OpenSink", "Options", "Probed",
    "Sink", "SinkUnavailable",
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


class OpenSink(Protocol):
    """Opens sinks by name: a named connection of the configuration, or a kind's default connection."""

    async def __call__(self, name: str) -> Sink:
        """Return the sink; raise SinkUnavailable with the reason when it cannot be opened."""


Options = Mapping[str, str | int | float | bool | tuple[str, ...] | None]
