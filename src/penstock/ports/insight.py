"""The part of a store that tells people where things stand: why a job waits, which groups are stuck.

A part of `Store` (ports/store.py). Nothing here scans: counts are capped, lists go by keyset.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from penstock.domain.job import Job
from penstock.domain.states import JobState, Verb


class Neighbour(NamedTuple):
    """Another job of the same group."""

    id: str
    state: JobState
    sequence: int
    due_at: datetime
    reason: str | None = None
    error: str | None = None


class Standing(NamedTuple):
    """What a store knows about why a job is where it is.

    `ahead` is the job its group waits for (in flight, held, dead, or simply first), None when it is its turn;
    `before` is how many wait ahead of it in the group, capped at 1,000. `request` is what an operator asked
    of a job in flight, by whom.
    """

    now: datetime
    job: Job
    ahead: Neighbour | None = None
    before: int = 0
    group_paused: bool = False
    lease_until: datetime | None = None
    holder: str | None = None
    request: Verb | None = None
    asked_by: str | None = None
    asked_at: datetime | None = None


class GroupRow(NamedTuple):
    """One ordered group as operators see it: `state` is idle, busy, blocked, waiting or paused.

    `head` is the id of its first job that has not ended, `blocker` of the dead or held job it waits for.
    `behind` is how many jobs wait, capped at 1,000.
    """

    lane: str
    group: str
    state: str
    head: str | None
    blocker: str | None
    since: datetime | None
    behind: int
    next_at: datetime | None = None


class GroupPage(NamedTuple):
    """Some groups; `next` is where the following page begins, None = that was the last."""

    groups: Sequence[GroupRow]
    next: str | None


class NodeRow(NamedTuple):
    """A process that was alive lately; `note` is the JSON it gave with its last beat."""

    id: int
    name: str
    version: str
    started_at: datetime
    seen_at: datetime
    note: str | None = None


class Insight(Protocol):
    """Where things stand."""

    def standing(self, id: str) -> Standing | None:  # noqa: A002
        """Return what is known of why a job is where it is; None = no such job."""

    def list_groups(
        self, *, lane: str | None = None, blocked: bool = False, limit: int = 50, after: str | None = None
    ) -> GroupPage:
        """Return groups by lane and name, or only those that are blocked. Raise InvalidCursor."""

    def nodes(self) -> list[NodeRow]:
        """Return the nodes seen within the last hour, newest first."""

    def leader(self) -> int | None:
        """Return the node that leads now."""
