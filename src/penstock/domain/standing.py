"""Where a job stands: what a store knows about why it is where it is. `explaining.py` puts it into words."""

from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.job import Attempt, Audit, Job
from penstock.domain.pauses import Pause
from penstock.domain.states import IN_FLIGHT, JobState, Verb

OUTCOME_UNKNOWN: Final = "outcome_unknown"


class Neighbour(NamedTuple):
    """Another job of the same group; no id = it is none of the reader's business which."""

    id: str
    state: JobState
    sequence: int
    due_at: datetime
    reason: str | None = None
    error: str | None = None
    since: datetime | None = None


class Standing(NamedTuple):
    """What a store knows about why a job is where it is.

    `ahead` is the job its group waits for (in flight, held, dead, or simply first), None when it is its turn;
    `before` is how many stand ahead of it in the group, capped at 1,000. `turn` is how many of its lane go
    before a job that is due and keeps no order; None = nobody can say: there are tenants who share, ordered
    jobs, or more than 1,000. `group_pause` is the audit row of a group that is paused. `last` is the last
    audit row about the job: who moved it off its normal path, or who asked for it where Penstock did what was
    asked. `tried` is its last attempt that did not succeed. `holder` is the node that has it or sent it.
    `request` is what an operator asked of a job in flight.
    """

    now: datetime
    job: Job
    ahead: Neighbour | None = None
    before: int = 0
    group_paused: bool = False
    group_pause: Audit | None = None
    last: Audit | None = None
    tried: Attempt | None = None
    lease_until: datetime | None = None
    holder: str | None = None
    turn: int | None = None
    request: Verb | None = None
    asked_by: str | None = None
    asked_at: datetime | None = None
    asked_why: str | None = None


class NodeRow(NamedTuple):
    """A process that was alive lately.

    `note` is the JSON it gave with its last beat; `drain` says who told it to claim nothing more, and why.
    """

    id: int
    name: str
    version: str
    started_at: datetime
    seen_at: datetime
    note: str | None = None
    drain: Pause | None = None


def stuck_since(job: Job, last: Audit | None, tried: Attempt | None) -> datetime | None:
    """Return since when a job has been in the way of others: dead, held, or in flight; None = it is not."""
    live = job.live
    match job.state:
        case JobState.DEAD:
            return job.finished_at
        case JobState.HELD if live.reason == OUTCOME_UNKNOWN and tried is not None:  # no audit row says so
            return tried.ended_at
        case JobState.HELD:
            return None if last is None else last.at
        case state if state in IN_FLIGHT:
            return live.started_at or live.sent_at or live.claimed_at
        case _:
            return None


def holder_name(number: int, name: str | None) -> str:
    """Return what people call a node; None = its row is gone."""
    return f"node {number}" if name is None else f"{name} (node {number})"
