"""What may hold a job, what an explanation says of it and what it is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from penstock.domain.breakers import Target
from penstock.domain.job import Attempt, AuditEntry
from penstock.domain.lanes import Lane
from penstock.domain.notes import Said
from penstock.domain.pauses import Pause
from penstock.domain.pools import Pool
from penstock.domain.standing import Standing
from penstock.domain.states import JobState
from penstock.domain.targets import groups_limit, lane_limit, pool_limit

LONGEST_ERROR: Final = 200


class Gate(StrEnum):
    """What a job may wait for."""

    DUE = "due"
    GROUP = "group"
    LANE = "lane"
    STORE = "store"
    POOL = "pool"
    KEY = "key"
    BREAKER = "breaker"
    SINK = "sink"
    LEASE = "lease"
    PARENT = "parent"
    HELD = "held"
    FINAL = "final"


class Explanation(NamedTuple):
    """The gate that holds a job.

    `by` is the person or node behind it, `job` the other job; `since` and `until` are when it closed and when
    it opens by itself; `eta` is when the job probably goes.
    """

    state: JobState
    gate: Gate
    text: str
    since: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    job: str | None = None
    eta: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What an explanation is made of.

    `lane` None = it was deleted. `changed` is the audit entry of whoever paused or disabled the lane, if it
    was found, `pool_changed` of whoever paused the pool; `lost_pool` a pool of its own that was deleted;
    `target` what is known of where the job's calls go, if that is in trouble; `nodes` what
    the nodes that are alive say of themselves.
    """

    standing: Standing
    lane: Lane | None = None
    pool: Pool | None = None
    lost_pool: str | None = None
    store_pause: Pause | None = None
    changed: AuditEntry | None = None
    pool_changed: AuditEntry | None = None
    target: Target | None = None
    nodes: Sequence[Said] = ()

    @property
    def now(self) -> datetime:
        """The store's time."""
        return self.standing.now

    @property
    def serving(self) -> list[Said]:
        """What the nodes say that serve the job's lane."""
        return [said for said in self.nodes if said.serves(self.standing.job.lane)]

    @property
    def holder(self) -> Said | None:
        """What the node says that has the job, if it is alive."""
        return next((said for said in self.nodes if said.who == self.standing.holder), None)

    @property
    def put_back(self) -> str | None:
        """Why a node that had the job gave it back, if that is the last thing that happened to it."""
        last, tried = self.standing.last, self.standing.tried
        if last is None or last.action != "return" or (tried is not None and tried.ended_at > last.at):
            return None
        return last.reason or ""

    @property
    def limits(self) -> dict[str, Gate]:
        """The limits that the job counts against, by name."""
        job, lane, pool = self.standing.job, self.lane, self.pool
        if lane is None:
            return {}
        found = {lane_limit(lane).id: Gate.LANE}
        if job.live.mode and lane["max_groups"]:
            found[groups_limit(lane).id] = Gate.LANE
        if pool is not None:
            limit = pool_limit(job, lane, pool)
            found[limit.id] = Gate.KEY if limit.key else Gate.POOL
        return found


def why(reason: str | None, error: str | None) -> str:
    """Return what went wrong, in brackets and not for pages."""
    said = ": ".join(text for text in (reason, None if error == reason else error) if text)
    short = said if len(said) <= LONGEST_ERROR else f"{said[: LONGEST_ERROR - 1]}…"
    return f" ({short})" if short else ""


def because(reason: str | None) -> str:
    """Return what somebody gave as his reason, in brackets."""
    return f" ({reason})" if reason else ""


def once_sent(tried: Attempt | None) -> str:
    """Return what is known of the send of a job that expired before it could go again."""
    if tried is None or tried.outcome in ("deferred", "not_started"):
        return ""
    if tried.outcome == "lapsed":
        return f"; what became of send {tried.send} before that nobody knows"
    return f"; send {tried.send} before that failed{why(None, tried.error)}"


def until_then(at: datetime | None) -> str:
    """Return until when, if that is known."""
    return "" if at is None else f" until {stamp(at)}"


def stamp(at: datetime) -> str:
    """Return a time as people are told it: UTC, whole seconds."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
