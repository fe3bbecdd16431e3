"""What a group is doing, in a word, and which job it waits for: the rules of `ordering.py` to look at."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.cursors import seal_names
from penstock.domain.job import Live
from penstock.domain.ordering import Mode, Place, Standing, waits_for_dead
from penstock.domain.states import IN_FLIGHT, JobState

MOST: Final = 1_000  # how far anybody counts

IDLE, BUSY, BLOCKED, PAUSED, WAITING = "idle", "busy", "blocked", "paused", "waiting"


class GroupRow(NamedTuple):
    """One ordered group as operators see it.

    `state` is `busy` (a job is in flight), `blocked` (it waits for the dead or held job `blocker`), `paused`,
    `waiting` (for its first job to be due, or to be sent) or `idle`; `since` is when that began, if known,
    and `until` when a pause ends by itself. `head` is the id of its first job that has not ended, `next_at`
    when that is due. `behind` is how many jobs wait, capped at 1,000.
    """

    lane: str
    group: str
    state: str
    head: str | None
    blocker: str | None
    since: datetime | None
    behind: int
    next_at: datetime | None = None
    until: datetime | None = None


class Group(NamedTuple):
    """What there is to know of an ordered group.

    `claimed` are its jobs inside a claim and `head` the first of the others that holds its place; `dead` is
    the place of its earliest dead job.
    """

    claimed: Sequence[Live] = ()
    head: Live | None = None
    dead: Place | None = None
    paused: bool = False

    @property
    def known(self) -> bool:
        """Whether there is anything to know."""
        return bool(self.claimed) or self.head is not None or self.dead is not None or self.paused

    @property
    def first(self) -> Live | None:
        """The first job that has not ended."""
        return min(self.claimed, key=lambda job: (job.ord, job.arrival)) if self.claimed else self.head

    @property
    def behind_dead(self) -> bool:
        """Whether its head waits for a dead job."""
        head = self.head
        if self.claimed or head is None or head.state != JobState.PENDING:
            return False
        return waits_for_dead(standing_of(head), self.dead)

    @property
    def blocker(self) -> int | None:
        """The arrival of the dead or held job that it waits for."""
        if self.behind_dead and self.dead is not None:
            return self.dead.arrival
        head = None if self.claimed else self.head
        return head.arrival if head is not None and head.state == JobState.HELD else None

    @property
    def waits_for(self) -> int | None:
        """The arrival of the job that all others wait for: the blocker, one in flight, or the first."""
        if self.blocker is not None:
            return self.blocker
        return None if self.first is None else self.first.arrival

    @property
    def state(self) -> str:
        """What it is doing."""
        first = self.first
        if first is not None and first.state in IN_FLIGHT:
            return BUSY
        if self.blocker is not None:
            return BLOCKED
        if self.paused:
            return PAUSED
        return IDLE if first is None else WAITING


class Told(NamedTuple):
    """What of a page of groups is found elsewhere.

    Ids of jobs by arrival; since when a dead or held job has been that, by arrival; since when a group is
    paused; how many of its jobs wait in all, the blocker too if it is a held one; until when it is paused.
    """

    now: datetime
    ids: Mapping[int, str]
    blocked_at: Mapping[int, datetime | None]
    paused_at: datetime | None
    waiting: int
    paused_until: datetime | None = None

    def name(self, arrival: int) -> str:
        """Return a job's id; one whose context is gone has none, and is named by its arrival."""
        return self.ids.get(arrival, f"#{arrival}")


def group_row(lane: str, name: str, group: Group, told: Told) -> GroupRow:
    """Return the group as operators see it."""
    first, blocker, state = group.first, group.blocker, group.state  # each takes a while to find out
    held = first is not None and blocker == first.arrival
    return GroupRow(
        lane=lane,
        group=name,
        state=state,
        head=None if first is None else told.name(first.arrival),
        blocker=None if blocker is None else told.name(blocker),
        since=_since(first, blocker, state, told),
        behind=min(MOST, told.waiting - held),
        next_at=None if first is None or state != WAITING else first.due_at,
        until=told.paused_until if state == PAUSED else None,
    )


def _since(first: Live | None, blocker: int | None, state: str, told: Told) -> datetime | None:
    if blocker is not None:
        return told.blocked_at.get(blocker)
    if state == PAUSED:
        return told.paused_at
    if first is None:
        return None
    if state == BUSY:
        return first.started_at or first.sent_at or first.claimed_at
    return first.due_at if first.due_at <= told.now else None


def standing_of(job: Live) -> Standing:
    """Return what order needs to know of a row."""
    return Standing(job.ord, job.arrival, Mode(job.mode), JobState(job.state), job.due_at)


def list_of_groups(lane: str | None, group: str | None, *, blocked: bool) -> str:
    """Return which list of groups it is, for its cursors."""
    return repr(("groups", lane, group, blocked))


def behind_name(lane: str, name: str) -> str:
    """Return the cursor from which the groups of a lane go on behind a name, whether there is one like it."""
    return seal_names((lane, name), of=list_of_groups(lane, None, blocked=False))
