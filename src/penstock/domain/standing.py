"""Where a job stands: what a store knows about why it is where it is. `explaining.py` puts it into words."""

from datetime import datetime
from typing import NamedTuple

from penstock.domain.job import Attempt, Audit, Job
from penstock.domain.states import JobState, Verb


class Neighbour(NamedTuple):
    """Another job of the same group; no id = it is none of the reader's business which."""

    id: str
    state: JobState
    sequence: int
    due_at: datetime
    reason: str | None = None
    error: str | None = None


class Standing(NamedTuple):
    """What a store knows about why a job is where it is.

    `ahead` is the job its group waits for (in flight, held, dead, or simply first), None when it is its turn;
    `before` is how many stand ahead of it in the group, capped at 1,000; `group_pause` is the audit row of a
    group that is paused. `last` is the last audit row about the job, who moved it off its normal path, and
    `tried` its last attempt that did not succeed. `holder` is the node that has it or sent it. `request` is
    what an operator asked of a job in flight.
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
    request: Verb | None = None
    asked_by: str | None = None
    asked_at: datetime | None = None


class NodeRow(NamedTuple):
    """A process that was alive lately; `note` is the JSON it gave with its last beat."""

    id: int
    name: str
    version: str
    started_at: datetime
    seen_at: datetime
    note: str | None = None


def holder_name(number: int, name: str | None) -> str:
    """Return what people call a node; None = its row is gone."""
    return f"node {number}" if name is None else f"{name} (node {number})"
