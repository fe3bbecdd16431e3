"""The rows, and the one way to put a row where its state belongs."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import NamedTuple

from penstock.domain.breakers import Target
from penstock.domain.edits import Version
from penstock.domain.job import Attempt, Audit, Claim, Claimed, Context, Live
from penstock.domain.lanes import Lane
from penstock.domain.leases import Term
from penstock.domain.limits import Account
from penstock.domain.operations import Meant, Operation
from penstock.domain.ordering import Mode, Place, sequence_of
from penstock.domain.pauses import Pause
from penstock.domain.pools import Pool
from penstock.domain.standing import NodeRow
from penstock.domain.states import LIVE, JobState, Verb
from penstock.ports.access import ApiKey, User
from penstock.ports.secrets import Secret
from penstock.ports.store import Tick
from penstock.stores.memory.wakeups import MemoryWakeups

TICKS_KEPT = 1_000


class Ended(NamedTuple):
    """A dead or finished job."""

    job: Live
    at: datetime
    error: str | None = None
    result: str | None = None


class Request(NamedTuple):
    """What an operator asked of a job's holder."""

    verb: Verb
    actor: str
    reason: str
    at: datetime


@dataclass(slots=True, kw_only=True)
class Queued:
    """A message of the embedded broker."""

    queue: str
    group: str | None
    dedup: str | None
    body: str
    created_at: datetime
    visible_at: datetime
    receives: int = 0


@dataclass(slots=True)
class Key:
    """Whose an idempotency key is; `ended_at` None = of a job that is live or dead."""

    job_id: str
    arrival: int
    hash: bytes
    ended_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Lease:
    """A claim as kept: what of it is settled grows, all else changes only by renewal and takeover."""

    epoch: int
    lane: str
    node: int
    claimed_at: datetime
    lease_until: datetime
    jobs: tuple[Claimed, ...]
    groups: bool
    sending: bool = False
    takeovers: int = 0
    settled: set[int] = field(default_factory=set)

    def as_claim(self) -> Claim:
        """Return it as its holder sees it."""
        return Claim(
            self.epoch,
            self.lane,
            self.node,
            self.claimed_at,
            self.lease_until,
            self.jobs,
            groups=self.groups,
            sending=self.sending,
            takeovers=self.takeovers,
            settled=frozenset(self.settled),
        )


@dataclass(slots=True)
class Tables:
    """Everything a store knows. A job is in exactly one of `live`, `dead` and `history`, by arrival.

    `lane_names` also knows the lanes that were deleted: their history stays.
    """

    lanes: dict[str, Lane] = field(default_factory=dict)
    lane_names: dict[int, str] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    live: dict[int, Live] = field(default_factory=dict)
    dead: dict[int, Ended] = field(default_factory=dict)
    history: dict[int, Ended] = field(default_factory=dict)
    contexts: dict[int, Context] = field(default_factory=dict)
    revisions: dict[int, list[Version]] = field(default_factory=dict)
    by_id: dict[str, int] = field(default_factory=dict)
    keys: dict[tuple[int, str], Key] = field(default_factory=dict)
    claims: dict[int, Lease] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)
    paused: set[tuple[int, str]] = field(default_factory=set)
    pause_ends: dict[tuple[int, str], datetime] = field(default_factory=dict)
    store_pause: Pause | None = None
    limits: dict[str, Account] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    target_pauses: dict[str, Pause] = field(default_factory=dict)
    listeners: list[MemoryWakeups] = field(default_factory=list)
    served: dict[tuple[str, bool], str | None] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    audit: list[Audit] = field(default_factory=list)
    terms: dict[str, Term] = field(default_factory=dict)
    nodes: dict[int, NodeRow] = field(default_factory=dict)
    secrets: list[Secret] = field(default_factory=list)
    operations: dict[str, Operation] = field(default_factory=dict)
    operation_jobs: dict[str, set[Meant]] = field(default_factory=dict)
    api_keys: dict[str, ApiKey] = field(default_factory=dict)  # by hash
    users: dict[str, User] = field(default_factory=dict)
    sessions: dict[str, tuple[str, datetime, datetime]] = field(default_factory=dict)  # user, begun, seen
    queue: dict[int, Queued] = field(default_factory=dict)
    queue_dedups: dict[tuple[str, str], datetime] = field(default_factory=dict)
    ticks: deque[Tick] = field(default_factory=lambda: deque(maxlen=TICKS_KEPT))
    arrivals: Iterator[int] = field(default_factory=lambda: count(1))
    pool_numbers: Iterator[int] = field(default_factory=lambda: count(1))
    epochs: Iterator[int] = field(default_factory=lambda: count(1))
    queue_numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def row(self, arrival: int) -> Live | None:
        """Return a job's row wherever it is."""
        if arrival in self.live:
            return self.live[arrival]
        ended = self.dead.get(arrival) or self.history.get(arrival)
        return ended.job if ended else None

    def put(self, row: Live, now: datetime, error: str | None = None, result: str | None = None) -> None:
        """Put a row where its state belongs, and nowhere else."""
        for table in (self.live, self.dead, self.history):
            table.pop(row.arrival, None)
        if row.state in LIVE:
            self.live[row.arrival] = row
        elif row.state == JobState.DEAD:
            self.dead[row.arrival] = Ended(row, now, error, result)
        else:
            self.history[row.arrival] = Ended(row, now, error, result)
        if row.state == JobState.SUCCEEDED and not self.lanes[self.lane_names[row.lane]]["keep_payload"]:
            self._forget(row.arrival)
        key = self.key_of(row)
        if key is not None:
            key.ended_at = now if row.arrival in self.history else None

    def _forget(self, arrival: int) -> None:
        """Drop what a job said and what it was edited to, but for where it went."""
        if arrival in self.contexts:
            self.contexts[arrival] = self.contexts[arrival]._replace(payload=None, headers=None)
        if arrival in self.revisions:
            edits = self.revisions[arrival]
            self.revisions[arrival] = [edit._replace(payload=None, headers=None) for edit in edits]

    def context(self, row: Live) -> Context | None:
        """Return what the caller said, as last edited."""
        context = self.contexts.get(row.arrival)
        if context is None or not row.revision:
            return context
        edit = self.revisions[row.arrival][row.revision - 1]
        return context._replace(payload=edit.payload, headers=edit.headers, target=edit.target)

    def key_of(self, row: Live) -> Key | None:
        """Return the idempotency key a job still owns."""
        context = self.contexts.get(row.arrival)
        if context is None or context.key is None:
            return None
        key = self.keys.get((row.lane, context.key))
        return key if key is not None and key.arrival == row.arrival else None

    def group_rows(self, lane: int, group: str) -> list[Live]:
        """Return the live jobs of a group that stand in the way of those behind them, first one first."""
        rows = [r for r in self.live.values() if r.lane == lane and r.grp == group and r.holds]
        return sorted(rows, key=lambda r: (r.ord, r.arrival))

    def earliest_dead(self, lane: int, group: str) -> Place | None:
        """Return the place of a group's first unresolved dead job."""
        rows = (ended.job for ended in self.dead.values())
        places = [place(r) for r in rows if r.lane == lane and r.grp == group and Mode(r.mode).ordered]
        return min(places, default=None)


def place(row: Live) -> Place:
    """Return where a job of a group stands by sequence and arrival."""
    return Place(sequence_of(row.ord), row.arrival)
