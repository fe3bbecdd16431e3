"""Order inside a group: who is first, and may it go now.

A group is the ordered jobs (mode other than `immediate`) of one lane that share a name. Their order is
`(sequence, arrival)`, with one addition: a job that was sent at least once keeps its group to its end, so it
stands before every job that was not, whatever their sequences. Both facts live in one integer, `ord`:
the sequence while unsent, the sequence minus 2^31 from the first send on. Sorting by `(ord, arrival)` is the
order, in Python and in an index.

Model of one group, seen by a claim:
- the *head* is the first live job that holds its place (pending, held, waiting, or in flight);
- a head that is not pending holds everybody behind it; so does one that is due later;
- a `block_on_error` job also waits for every unresolved dead job that stands before it in `(sequence,
  arrival)`. The mode is read from the job that waits: dead jobs do not stop a `next_on_error` job.
- `immediate` jobs are in no group's order at all.

What fails here fails silently as a reordering, so stores do not repeat these rules: they hand the first
rows of a group to `run()` or use a statement that the conformance suite holds against it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Final, NamedTuple

from penstock.domain.states import JobState

SENT_OFFSET: Final = 1 << 31
MAX_SEQUENCE: Final = SENT_OFFSET - 1
DEFAULT_SEQUENCE: Final = 99
DEFAULT_GROUP: Final = "default"


class Mode(IntEnum):
    """How a job waits for the others of its group."""

    IMMEDIATE = 0
    NEXT_ON_ERROR = 1
    BLOCK_ON_ERROR = 2

    @property
    def label(self) -> str:
        """The name users see."""
        return self.name.lower()

    @property
    def ordered(self) -> bool:
        """Whether jobs of this mode have a place in a group."""
        return self is not Mode.IMMEDIATE


def unkept(mode: Mode, group: str | None, sequence: int | None) -> str | None:
    """Return what a caller said about order that this mode does not keep; None = nothing is lost."""
    if mode.ordered:
        return None
    if group is not None:
        return "group"
    return None if sequence in (None, DEFAULT_SEQUENCE) else "sequence"


class Place(NamedTuple):
    """Where a job stands among those of its group that were not sent: compare with `<`."""

    sequence: int
    arrival: int


class Standing(NamedTuple):
    """What order needs to know of one live job that holds its place in a group."""

    ord: int
    arrival: int
    mode: Mode
    state: JobState
    due_at: datetime


class Gate(NamedTuple):
    """When a group should be looked at again; `due_at` None = only after something else happens to it."""

    due_at: datetime | None
    blocked: bool


def sequence_of(order: int) -> int:
    """Return the sequence behind an `ord`, sent or not."""
    return order if order >= 0 else order + SENT_OFFSET


def sent_ord(order: int) -> int:
    """Return the `ord` of the same job once it was sent."""
    return order if order < 0 else order - SENT_OFFSET


def place_of(standing: Standing) -> Place:
    """Return the job's place by sequence and arrival."""
    return Place(sequence_of(standing.ord), standing.arrival)


def waits_for_dead(standing: Standing, earliest_dead: Place | None) -> bool:
    """Say whether an unresolved dead job stands in this job's way."""
    return (
        standing.mode is Mode.BLOCK_ON_ERROR
        and earliest_dead is not None
        and earliest_dead < place_of(standing)
    )


def gate(head: Standing | None, earliest_dead: Place | None) -> Gate:
    """Return when a group whose first job is `head` has something to send."""
    if head is None or head.state is not JobState.PENDING:
        return Gate(None, blocked=False)
    return Gate(head.due_at, blocked=waits_for_dead(head, earliest_dead))


def run(first: Sequence[Standing], *, until: datetime, earliest_dead: Place | None) -> int:
    """Return how many of a group's first jobs, in order, may be sent one after the other now."""
    count = 0
    for standing in first:
        if standing.state is not JobState.PENDING or standing.due_at > until:
            break
        if waits_for_dead(standing, earliest_dead):
            break
        count += 1
    return count


def in_order(standings: Iterable[Standing]) -> list[Standing]:
    """Sort the jobs of one group as they must be sent."""
    return sorted(standings, key=lambda s: (s.ord, s.arrival))
