"""Where jobs are sent.

A sink takes a batch and answers per message, in order: it never raises for one message and never retries,
the machine does. What it raises concerns the whole batch: `SinkUnavailable` when nothing was sent, anything
else means that nobody knows what became of it. `probe` is asked before work is repeated.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from penstock.domain.outcomes import Receipt
from penstock.errors import PenstockError


class SinkUnavailable(PenstockError):
    """The sink cannot be opened or reached, and nothing was sent; the same call may succeed later."""

    retryable = True


class Envelope(NamedTuple):
    """One message: what a sink needs to know of a job. `payload`, `headers` and `event` are JSON text.

    `number` is the send (the same number after a crash, a new one for a retry); `attempt` counts from 1.
    """

    id: str
    number: int
    lane: str
    attempt: int
    payload: str | None = None
    target: str | None = None
    group: str | None = None
    sequence: int = 99
    tenant: str | None = None
    key: str | None = None
    pool: str | None = None
    headers: str | None = None
    event: str | None = None
    entity: str | None = None
    version: str | None = None
    correlation: str | None = None
    queue: str | None = None
    format: str | None = None
    run_at: datetime | None = None
    finish_by: datetime | None = None
    created_at: datetime | None = None

    @property
    def dedup(self) -> str:
        """The name of this send, for whoever tells duplicates apart."""
        return f"{self.id}:{self.number}"


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
