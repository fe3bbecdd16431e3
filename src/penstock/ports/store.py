"""What the engine, the client and housekeeping need from a database.

Every method is one transaction (or a constant number of short ones), takes and returns batches, and is safe
to call from several threads. Methods are synchronous: asyncio code reaches them through an `Executor`, which
is a thread pool in production and runs them inline in simulation. A call that could not be carried out
raises StoreUnavailable; its effect is then unknown and every write is safe to repeat or to leave.

Fencing: every write for a claim names its epoch. A write that finds the claim gone changes nothing, and says
so. What a leader does may name the term it does it `under`: once that is over, nothing is written and
TermOver is raised; nobody begins the next term while such a write is on its way.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from penstock.domain.edits import Changed, Version
from penstock.domain.filters import JobQuery, Order, Page, Span
from penstock.domain.job import Attempt, Audit, AuditEntry, AuditPage, Claim, Claimed, Enqueued, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.leases import Term
from penstock.domain.outcomes import Outcome
from penstock.domain.pools import Pool
from penstock.domain.states import Effect, JobState, Verb
from penstock.errors import PenstockError
from penstock.ports.access import Access
from penstock.ports.flow import Flow
from penstock.ports.insight import Insight
from penstock.ports.operations import Operations
from penstock.ports.queue import Queue
from penstock.ports.secrets import Secrets
from penstock.ports.vitals import VitalSigns

__all__ = [
    "Ask", "AuditEntry", "AuditPage", "Done", "GroupState", "JobQuery", "Lapse", "Order", "Page", "Report",
    "Reported", "Settled", "Span", "Store", "Tick", "Timeline",
]  # fmt: skip

DEFAULT_LEASE = timedelta(seconds=30)
NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """How much of a lane a node wants to claim.

    `limit` counts jobs, or groups when groups are claimed; `run` is how many consecutive jobs of each group.
    `ahead` also takes what is due within that time.
    """

    lane: str
    node: int
    limit: int = 500
    run: int = 1
    lease: timedelta = DEFAULT_LEASE
    ahead: timedelta = NO_TIME


class Settled(NamedTuple):
    """What of a settle took effect: arrivals written, and those no longer ours (fenced or settled before)."""

    applied: frozenset[int]
    refused: frozenset[int]


@dataclass(frozen=True, slots=True)
class Lapse:
    """Jobs whose executor fell silent, leased for probing under a new epoch; their lanes by number.

    The rows say dispatched or running, since when, and which send that was.
    """

    epoch: int
    jobs: tuple[Claimed, ...]
    lanes: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an executor's word on one send of a job means."""

    id: str
    send: int
    outcome: Outcome


class Reported(NamedTuple):
    """`late` = not the current, open send: recorded, nothing changed."""

    applied: bool
    late: bool
    cancel_requested: bool = False


class Done(NamedTuple):
    """What an operator's verb did to one job; `state` is the job's state afterwards (None = no such job).

    `effect` is `now`, `requested` (of whoever has the job) or `refused`, and then `text` says why.
    """

    effect: Effect
    state: JobState | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything on record about one job, oldest first."""

    attempts: Sequence[Attempt]
    audit: Sequence[Audit]


class GroupState(NamedTuple):
    """One group as a claim sees it."""

    lane: str
    group: str
    next_at: datetime | None
    claim: int | None
    blocked: bool
    paused: bool
    dead_arrival: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One pass of a node over a lane: what it did and how long each phase took, in seconds."""

    node: int
    lane: str | None
    claimed: int = 0
    settled: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)


class Store(Flow, Insight, Operations, Queue, Secrets, Access, VitalSigns, Protocol):
    """A database of jobs; flow.py, insight.py and their neighbours describe parts of it."""

    # -- schema and clock
    def migrate(self) -> list[str]:
        """Bring the tables up to date; return the names of the migrations applied now."""

    def check_schema(self) -> None:
        """Raise SchemaMismatch unless the tables are exactly those this version knows."""

    def now(self) -> datetime:
        """Return the store's time: the only clock whose readings are stored."""

    def close(self) -> None:
        """Give up connections and threads."""

    # -- lanes and pools
    def put_lane(
        self, lane: Lane, *, actor: str, expect: int | None = None, reason: str | None = None
    ) -> Lane:
        """Create the lane or change its settings; audited; the version goes up when anything changed.

        A pause is left as it is. `expect` is the version that the caller saw (0 = none): raise VersionChanged
        when it is another one by now. `reason` is kept in the audit.
        """

    def lanes(self) -> dict[str, Lane]:
        """Return every lane by name."""

    def pause_lane(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Lane:
        """Stop a lane, for a time or until told otherwise, or let it go; audited.

        Raise UnknownLane; InvalidSetting when `until` is past already, or has no time zone.
        """

    def delete_lane(self, name: str, *, actor: str, reason: str | None = None) -> None:
        """Delete a lane; audited; its history stays until it is old.

        Raise UnknownLane, or InUse while it has live or dead jobs.
        """

    def put_pool(self, pool: Pool, *, actor: str, expect: int | None = None) -> Pool:
        """Create the pool or change its settings, as `put_lane` does."""

    def pools(self) -> dict[str, Pool]:
        """Return every pool by name."""

    def pause_pool(
        self, name: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> Pool:
        """Stop a pool or let it go, as `pause_lane` does; raise NotFound."""

    def delete_pool(self, name: str, *, actor: str, reason: str | None = None) -> None:
        """Delete a pool; audited. Raise NotFound, or InUse while a lane names it."""

    # -- the way in
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | PenstockError]:
        """Write the jobs; one answer each, in order. A refused one leaves the others unhurt."""

    # -- dispatch
    def claim(self, ask: Ask) -> Claim | None:
        """Lease due jobs that keep no order: fair over tenants, then oldest first."""

    def claim_groups(self, ask: Ask) -> Claim | None:
        """Lease the heads (or runs) of groups that are free, due and not blocked."""

    def mark_sending(self, epoch: int) -> bool:
        """Note that a send is about to happen; False = the claim is no longer ours."""

    def renew(self, epochs: Sequence[int], lease: timedelta) -> frozenset[int]:
        """Prolong claims; return those still ours."""

    def settle(self, claim: Claim, outcomes: Mapping[int, Outcome] | None = None) -> Settled:
        """Write what came of the claim's jobs, by arrival; None = all succeeded.

        Jobs not named stay claimed. One transaction: rows move, groups are promoted, timelines written.
        """

    # -- recovery
    def takeover(self, node: int, lease: timedelta, limit: int, *, under: Term | None = None) -> list[Claim]:
        """Take over claims whose lease has run out, each under a new epoch: the old holder is fenced."""

    def lapse(self, node: int, lease: timedelta, limit: int, *, under: Term | None = None) -> Lapse | None:
        """Lease dispatched and running jobs whose deadline has passed, to be probed and resolved.

        Those who waited longest, at most `limit`, of each lane at most its `max_recoveries_per_pass`.
        """

    def resolve(self, lapse: Lapse, outcomes: Mapping[int, Outcome]) -> Settled:
        """Write what the probe found for jobs that are still under this lapse's epoch."""

    # -- executors and operators
    def report(self, reports: Sequence[Report]) -> list[Reported]:
        """Apply what executors say; matched by send number, whatever state the job is in."""

    def operate(
        self, verb: Verb, ids: Sequence[str], *, actor: str, reason: str, force: bool = False
    ) -> list[Done]:
        """Carry out an operator's verb on each job, or leave a request with its holder; audited.

        `force` cancels what is already out, and replays out of order.
        """

    def edit(
        self,
        id: str,  # noqa: A002
        *,
        actor: str,
        reason: str,
        payload: Changed = ...,
        headers: Changed = ...,
        target: Changed = ...,
        run_at: datetime | None = None,
        replay: bool = False,
        force: bool = False,
    ) -> Done:
        """Change what a job sends or when it is due; what it was before is kept; audited, without payloads.

        `...` leaves a field as it is, None takes its value away. Refused while the job is in flight. A dead,
        expired or cancelled job is edited only together with its `replay`, which `force` does out of order.
        """

    def pause_group(
        self, lane: str, group: str, *, paused: bool, actor: str, reason: str, until: datetime | None = None
    ) -> None:
        """Stop one ordered group, or let it go, as `pause_lane` does."""

    # -- reading
    def frozen(self) -> AbstractContextManager["Store"]:
        """Return the store as it is at this moment, for several looks that belong together; not to write.

        It is held for no longer than a page is gathered. A store in memory moves on.
        """

    def find(self, ids: Sequence[str]) -> dict[str, Job]:
        """Return the jobs of these ids, live, dead or finished; unknown ids are missing."""

    def list_jobs(self, query: JobQuery) -> Page:
        """Return one page of a list of jobs, at a cost that does not grow with their number.

        Raise InvalidCursor when `after` is not the `next` of a page of the same list.
        """

    def timeline(self, id: str) -> Timeline:  # noqa: A002
        """Return the recorded attempts and moves of one job."""

    def payload_versions(self, id: str) -> list[Version]:  # noqa: A002
        """Return what a job was to send at any time, what the caller said first; empty for an unknown id."""

    def audit_log(
        self, *, lane: str | None = None, people: bool = False, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return audit rows, newest first: of one lane and its jobs, or all. Raise InvalidCursor.

        With `people` what nodes did by themselves is left out.
        """

    def group(self, lane: str, group: str) -> GroupState | None:
        """Return one group as the next claim would see it; None = nothing to know about it."""

    def counts(self) -> dict[tuple[str, JobState], int]:
        """Return jobs per lane and state, from the counters."""

    def depth(self, lane: str) -> int:
        """Return how many jobs of a lane are not ended, from the counters; raise UnknownLane."""

    # -- housekeeping
    def expire(self, limit: int, *, under: Term | None = None) -> int:
        """End pending jobs whose `start_by` has passed, and pauses of groups; return how many jobs."""

    def recall(self, limit: int, *, under: Term | None = None) -> dict[str, int]:
        """Let jobs come now that a pool put back which is set otherwise by now, or is not theirs any more.

        Return how many came, by lane; there may be more when it is as many as asked for.
        """

    def fold_counts(self, *, under: Term | None = None) -> int:
        """Fold counter deltas into the counters; return how many deltas there were."""

    def retire(self, *, slice_rows: int, under: Term | None = None) -> int:
        """Drop a bounded slice of what retention no longer keeps, and prepare for the days ahead."""

    def record_ticks(self, ticks: Sequence[Tick]) -> None:
        """Keep the figures of passes."""

    # -- nodes and the leader
    def register_node(self, name: str, again: int | None = None) -> int:
        """Return a number nobody had before, for one run of one process.

        `again`: enter under the number one had, after `beat` did not find it.
        """

    def beat(self, node: int, note: str | None = None) -> None:
        """Note that the node is alive, and what it says of itself (JSON; None = what it said before).

        Raise NotFound when it was silent for so long that it is forgotten.
        """

    def elect(self, role: str, node: int, ttl: timedelta) -> Term | None:
        """Become holder of a role whose term has run out; None = somebody else holds it."""

    def extend_term(self, role: str, term: Term, ttl: timedelta) -> Term | None:
        """Prolong exactly this term; None = it is over."""

    def resign(self, role: str, term: Term) -> bool:
        """End exactly this term now."""
