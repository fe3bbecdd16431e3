"""What a sink needs to know of a job: one message, whatever it is written on (domain/bodies.py)."""

from datetime import datetime, timedelta
from typing import NamedTuple


class Unwritable(ValueError):
    """No message can be made of this job as it is; the text says what to change."""


class Envelope(NamedTuple):
    """One message. `payload`, `headers` and `event` are JSON text, as the caller gave it.

    `number` is the send (the same number after a crash, a new one for a retry); `attempt` counts from 1.
    `batch` is the claim it is sent under, as the job's timeline names it.
    `timeout` is how long the call may take: a sink that waits before it, for a connection, waits for less.
    `mode` says whether the group is an order to be kept (None = it may be) or a mere label (`immediate`).
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
    mode: str | None = None
    batch: int | None = None
    timeout: timedelta | None = None

    @property
    def dedup(self) -> str:
        """The name of this send, for whoever tells duplicates apart."""
        return f"{self.id}:{self.number}"

    @property
    def ordered_group(self) -> str | None:
        """The group whose order must be kept; None = this message may overtake and be overtaken."""
        return None if self.mode == "immediate" else self.group
