"""Where a job stands: what a store knows about why it is where it is. `explaining.py` puts it into words."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.job import Attempt, Audit, Job, Live
from penstock.domain.ordering import sequence_of
from penstock.domain.pauses import Pause
from penstock.domain.states import IN_FLIGHT, JobState, Verb

OUTCOME_UNKNOWN: Final = "outcome_unknown"
AROUND: Final = 3


class Neighbour(NamedTuple):
    """Another job of the same group; no id = it is none of the reader's business which."""

    id: str
    state: JobState
    sequence: int
    due_at: datetime
    reason: str | None = None
    error: str | None = None
    since: datetime | None = None
    tenant: str | None = None


class Standing(NamedTuple):
    """What a store knows about why a job is where it is.

    `ahead` is the job its group waits for (in flight, held, dead, or simply first), None when it is its turn;
    `before` is how many stand ahead of it in the group, capped at 1,000. `turn` is how many of its lane go
    before a job that keeps no order (if it is not due yet, of those of its own moment); None = nobody can
    say: there are tenants who share, ordered jobs, or more than 1,000.
    `around` are the job and those next to it in its group that hold a place there
    or are dead, by sequence: at most three before it, and three behind it. `group_pause` is the audit row of
    a group that is paused, `group_until` when that ends by itself.
    `last` is the last audit row about the job: who moved it off its normal path, or
    who asked for it where Penstock did what was asked. `tried` is its last attempt that did not succeed.
    `holder` is the node that has it or sent it. `request` is what an operator asked of a job in flight.
    """

    now: datetime
    job: Job
    ahead: Neighbour | None = None
    before: int = 0
    group_paused: bool = False
    group_pause: Audit | None = None
    group_until: datetime | None = None
    last: Audit | None = None
    tried: Attempt | None = None
    lease_until: datetime | None = None
    holder: str | None = None
    turn: int | None = None
    around: tuple[Neighbour, ...] = ()
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


def stuck_since(
    live: Live, ended_at: datetime | None, last: Audit | None, tried: Attempt | None
) -> datetime | None:
    """Return since when a job has been in the way of others: dead, held, or in flight; None = it is not."""
    match JobState(live.state):
        case JobState.DEAD:
            return ended_at
        case JobState.HELD if live.reason == OUTCOME_UNKNOWN and tried is not None:  # no audit row says so
            return tried.ended_at
        case JobState.HELD:
            return None if last is None else last.at
        case state if state in IN_FLIGHT:
            return live.started_at or live.sent_at or live.claimed_at
        case _:
            return None


def nearest(live: Live, mates: Iterable[Live]) -> list[Live]:
    """Return a job with those of its group that are next to it, on both sides."""

    def place(mate: Live) -> tuple[int, int]:
        return sequence_of(mate.ord), mate.arrival

    in_place = sorted({mate.arrival: mate for mate in mates}.values(), key=place)
    before = [mate for mate in in_place if place(mate) < place(live)]
    behind = [mate for mate in in_place if place(mate) > place(live)]
    return [*before[-AROUND:], live, *behind[:AROUND]]


def holder_name(number: int, name: str | None) -> str:
    """Return what people call a node; None = its row is gone."""
    return f"node {number}" if name is None else f"{name} (node {number})"
