"""What each dialect writes by hand: the statements that run once per batch on every pass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from penstock.domain.job import Claim, Live, NewJob
from penstock.domain.ordering import Mode
from penstock.ports.store import Ask

Fence = Callable[[Any], None]


def no_fence(tx: Any) -> None:
    """Let everybody pass."""


class LaneRow(NamedTuple):
    """What of a lane the hot path needs."""

    id: int
    name: str
    mode: Mode
    keep: int
    keep_payload: bool = True


class Entry(NamedTuple):
    """One job on its way in: checked, with its lane and its id."""

    job: NewJob
    lane: LaneRow
    id: str


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A row of `claims`, read under a lock; `mask` has a bit for every settled position."""

    epoch: int
    lane: int
    node: int
    claimed_at: datetime
    lease_until: datetime
    takeovers: int
    groups: bool
    sending: bool
    mask: int
    jobs: tuple[Live, ...]

    def shown(self, job: Live) -> Live:
        """Return a job of it as people see it: its deadline is the lease's end."""
        return job._replace(deadline=self.lease_until)

    def open_jobs(self) -> list[Live]:
        """Return those that are not settled yet."""
        return [job for position, job in enumerate(self.jobs) if not self.mask >> position & 1]


class HotPath(Protocol):
    """The hand-written statements; `tx` is the dialect's own transaction."""

    def append_contexts(self, tx: Any, columns: Any) -> None:
        """Append contexts under ids that nobody has (triggers do the rest); `columns` as sql.said has them."""

    def insert_contexts(self, tx: Any, columns: Any) -> set[str]:
        """Append contexts whose ids were chosen by the caller; return the ids that were new."""

    def claim(self, db: Any, ask: Ask, lane: LaneRow) -> Claim | None:
        """Move due unordered jobs into a claim."""

    def claim_groups(self, db: Any, ask: Ask, lane: LaneRow) -> Claim | None:
        """Lease ready groups and move their heads or runs into a claim."""

    def settle_succeeded(
        self, db: Any, claim: Claim, lane: int, *, then: Callable[[Any], None] | None = None
    ) -> bool:
        """Move a whole untouched claim to history; False = it is not untouched, or gone.

        `then` is called in the same transaction if it was moved.
        """

    def forget(self, tx: Any, keep: int, arrivals: Sequence[int]) -> None:
        """Empty the payload and headers of contexts of one retention class."""

    def claim_row(self, tx: Any, epoch: int, *, lock: bool) -> ClaimRow | None:
        """Read one claim."""

    def claim_rows(self, tx: Any, epochs: Sequence[int]) -> list[ClaimRow]:
        """Read those of these claims that are there, without a lock."""

    def claims_with(self, tx: Any, arrivals: Sequence[int]) -> list[ClaimRow]:
        """Read every claim that has one of these jobs, settled or not, without a lock."""

    def claims_of(self, tx: Any, arrivals: Sequence[int]) -> list[tuple[int, int]]:
        """Return these arrivals with the epoch of every claim they are in: one they were settled in, too."""

    def lapsed_claims(self, tx: Any, limit: int) -> list[int]:
        """Lock claims whose lease ran out, oldest first, passing over those somebody else has locked."""

    def next_epoch(self, tx: Any) -> int:
        """Return a number no claim had before."""

    def lock_groups(self, tx: Any, lane: int, groups: Sequence[str], epoch: int) -> None:
        """Lock groups held by this claim, in their order, before anything is written to one of them."""

    def release_groups(self, tx: Any, lane: int, groups: Sequence[str], epoch: int) -> None:
        """Let go groups held by this claim: each gets its next head's time, an empty one goes."""

    def hand_over_groups(self, tx: Any, lane: int, groups: Sequence[str], *, old: int, new: int) -> None:
        """Give groups held by one claim to the claim it became."""

    def wake(self, tx: Any, lane: int, groups: Sequence[str]) -> None:
        """Have these groups looked at again by somebody who does not hold them."""

    def count(self, tx: Any, deltas: Mapping[tuple[int, int], int]) -> None:
        """Add to the counters per lane and state."""

    def fold_counts(self, db: Any, fence: Fence) -> int:
        """Fold what `count` appended; every transaction that writes begins with the fence."""

    def retire(self, db: Any, slice_rows: int, fence: Fence) -> int:
        """Drop what retention no longer keeps; every transaction that writes begins with the fence."""
