"""What a job is made of: what the caller said, the narrow live row, and how it is shown.

A job's facts live in two places on purpose. `Context` is what the caller said: written once, never
rewritten, found by the claim. `Live` is everything that changes, as narrow as it can be: it is what a claim
moves and a settle moves back. They meet in `Claimed` (what a sender needs) and `Job` (what a person sees).
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.ordering import DEFAULT_SEQUENCE, Mode
from penstock.domain.states import JobState


class NewJob(NamedTuple):
    """An enqueue object: only `lane` is required; None means the lane's default.

    `payload`, `headers` and `event` are JSON text. A tuple, because a bulk load makes very many of them.
    """

    lane: str
    payload: str | None = None
    group: str | None = None
    sequence: int = DEFAULT_SEQUENCE
    mode: Mode | None = None
    run_at: datetime | None = None
    start_by: datetime | None = None
    finish_by: datetime | None = None
    key: str | None = None
    tenant: str | None = None
    target: str | None = None
    headers: str | None = None
    pool: str | None = None
    max_attempts: int | None = None
    id: str | None = None
    entity: str | None = None
    version: str | None = None
    event: str | None = None
    correlation: str | None = None


class Enqueued(NamedTuple):
    """The job an enqueue object became; `duplicate` when its key had already made it."""

    id: str
    duplicate: bool = False


class Context(NamedTuple):
    """What the caller said, as stored; `payload`, `headers` and `event` are the exact text received.

    `unchecked`: plain SQL wrote it, and does not see all that is wrong with JSON (`intake.json_problem`).
    """

    id: str
    message_group: str | None
    sequence: int
    run_at: datetime
    created_at: datetime
    payload: str | None
    headers: str | None
    target: str | None
    pool: str | None
    key: str | None
    finish_by: datetime | None
    entity: str | None
    version: str | None
    event: str | None
    correlation: str | None
    unchecked: bool = False


class Live(NamedTuple):
    """The row of a job that has not ended; field names are the column names.

    `send` is the number of the last send that is on record and `open` says that nobody knows yet what became
    of it. A claim therefore sends number `send` again when it is open and `send + 1` when it is not.
    `ord` is the place in the group (domain/ordering.py); `holds` says the job stands in the way of the jobs
    behind it. `deadline` is when silence of the executor counts as a lapse (of a claimed job that is shown to
    people: when its lease ends), `slot` the pool (or key of one) that a job occupies while it is out. `since`
    is when a job that was put back had come due, None where `due_at` says so.
    """

    arrival: int
    lane: int
    keep: int
    mode: int
    state: int
    ord: int
    grp: str | None
    tenant: str | None
    due_at: datetime
    start_by: datetime | None = None
    attempt: int = 0
    max_attempts: int | None = None
    send: int = 0
    open: bool = False
    recoveries: int = 0
    deferrals: int = 0
    revision: int = 0
    since: datetime | None = None
    holds: bool = True
    epoch: int | None = None
    node: int | None = None
    claimed_at: datetime | None = None
    sent_at: datetime | None = None
    started_at: datetime | None = None
    deadline: datetime | None = None
    reason: str | None = None
    receipt: str | None = None
    slot: str | None = None

    @property
    def current_send(self) -> int:
        """The number a message sent under the present claim carries."""
        return self.send if self.open else self.send + 1

    @property
    def due_since(self) -> datetime:
        """When it came due, however often it was put back since: what `misfire` counts from."""
        return self.since or self.due_at


class Claimed(NamedTuple):
    """One job of a claim: its row, and its context (None = missing, hold the job).

    The row says claimed, by whom, when and under which epoch; all else is as it was before the claim.
    """

    job: Live
    context: Context | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch leased by one node. `epoch` fences every write made for it.

    `settled` are the arrivals whose outcome is already written; `groups` says the jobs are heads or runs;
    `taken_from` is the node that had it before, if it was taken over.
    """

    epoch: int
    lane: str
    node: int
    claimed_at: datetime
    lease_until: datetime
    jobs: tuple[Claimed, ...]
    groups: bool = False
    sending: bool = False
    takeovers: int = 0
    settled: frozenset[int] = frozenset()
    taken_from: int | None = None


class Attempt(NamedTuple):
    """A try that did not succeed at once."""

    arrival: int
    keep: int
    attempt: int
    send: int
    epoch: int | None
    node: int | None
    claimed_at: datetime | None
    ended_at: datetime
    outcome: str
    error: str | None
    due_at: datetime | None


ON_REQUEST: Final = "requested while in flight"  # why Penstock did it; who asked has a row of his own


class Audit(NamedTuple):
    """A move off the normal path, or something an operator did."""

    at: datetime
    arrival: int | None
    lane: int | None
    actor: str
    action: str
    before: str | None
    after: str | None
    reason: str | None


class AuditEntry(NamedTuple):
    """One audit row as a person reads it: lane by name, job by id (None = not about one, or gone)."""

    number: int
    at: datetime
    lane: str | None
    job: str | None
    actor: str
    action: str
    before: str | None
    after: str | None
    reason: str | None


class AuditPage(NamedTuple):
    """Some audit rows, newest first; `next` is where the following page begins, None = that was the last."""

    entries: list[AuditEntry]
    next: str | None


class Job(NamedTuple):
    """A job as a person sees it, live or finished; `hidden`: what it carries is kept from this one."""

    id: str
    lane: str
    state: JobState
    mode: Mode
    live: Live
    context: Context | None
    finished_at: datetime | None = None
    error: str | None = None
    result: str | None = None
    request: str | None = None
    hidden: bool = False

    @property
    def group(self) -> str | None:
        """The group its caller named (of an ordered job that named none: `default`).

        Only ordered jobs have a place in it: `mode` says whether this one has.
        """
        return self.live.grp or (self.context and self.context.message_group)

    @property
    def payload(self) -> object:
        """The payload as a Python value; None = there is none, or it was not asked for.

        `context.payload` is its exact text.
        """
        text = self.context and self.context.payload
        return None if text is None else json.loads(text)
