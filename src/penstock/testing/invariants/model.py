"""A picture of the store, kept beside it: where every job is, what order says may go, what is parked and why.

The picture is fed from what was committed and asks `domain.ordering` who is next. Checks compare it with what
the store did.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from penstock.domain.job import Live
from penstock.domain.ordering import Gate, Mode, Place, Standing, gate, in_order, run, sequence_of
from penstock.domain.states import IN_FLIGHT, LIVE, JobState
from penstock.testing.invariants.moves import Spot

GroupKey = tuple[int, str]


class Fact(NamedTuple):
    """What was said once, when the job was enqueued."""

    id: str
    lane: int
    key: str | None
    payload: str | None
    max_attempts: int | None
    pool: str | None = None


class Head(NamedTuple):
    """What order says of a group: its holding jobs, first one first, and what stands in their way."""

    rows: tuple[Live, ...]
    dead: Place | None
    busy: bool


@dataclass(slots=True)
class Model:
    """See the module. Lanes are known by number; `freed` are jobs whose key was given up for good."""

    spots: dict[int, Spot] = field(default_factory=dict)
    facts: dict[int, Fact] = field(default_factory=dict)
    arrivals: dict[str, int] = field(default_factory=dict)
    paused: set[GroupKey] = field(default_factory=set)
    tally: Counter[tuple[int, int]] = field(default_factory=Counter)
    changed_at: dict[int | GroupKey, float] = field(default_factory=dict)
    freed: set[str] = field(default_factory=set)
    _members: dict[GroupKey, set[int]] = field(default_factory=lambda: defaultdict(set))
    _loose: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _heads: dict[GroupKey, Head] = field(default_factory=dict)

    def put(self, arrival: int, spot: Spot | None, *, at: float) -> None:
        """Note where a job is now; None = nowhere."""
        old = self.spots.pop(arrival, None)
        for known, sign in ((old, -1), (spot, 1)):
            if known is not None:
                self.tally[known.job.lane, known.job.state] += sign
        self.changed_at[arrival] = at
        job = (spot or old or _nowhere(arrival)).job
        if spot is not None:
            self.spots[arrival] = spot
        if job.grp is None:
            self._keep(self._loose[job.lane], arrival, spot is not None and spot.state in LIVE)
            return
        key = (job.lane, job.grp)
        stays = spot is not None and (spot.state in LIVE or spot.state is JobState.DEAD)
        self._keep(self._members[key], arrival, stays)
        self._heads.pop(key, None)
        self.changed_at[key] = at

    def head(self, key: GroupKey) -> Head:
        """Return what order says of a group."""
        known = self._heads.get(key)
        if known is None:
            known = self._heads[key] = self._look(key)
        return known

    def groups(self, lane: int | None = None) -> Iterator[GroupKey]:
        """Yield the groups that have a live or a dead job."""
        for key, members in self._members.items():
            if members and lane in (None, key[0]):
                yield key

    def members(self, key: GroupKey) -> list[Spot]:
        """Return the live and the dead jobs of a group."""
        return [self.spots[arrival] for arrival in sorted(self._members.get(key, ()))]

    def ready_jobs(self, lane: int, until: datetime) -> set[int]:
        """Return the jobs without order that a claim may take."""
        jobs = (self.spots[arrival].job for arrival in self._loose.get(lane, ()))
        return {job.arrival for job in jobs if job.state == JobState.PENDING and job.due_at <= until}

    def ready_run(self, key: GroupKey, until: datetime, limit: int) -> list[int]:
        """Return the jobs of a group that may go one after the other; none when it is busy or blocked."""
        head = self.head(key)
        if head.busy or key in self.paused:
            return []
        first = head.rows[:limit]
        count = run([standing(row) for row in first], until=until, earliest_dead=head.dead)
        return [row.arrival for row in first[:count]]

    def gate(self, key: GroupKey) -> Gate:
        """Return when a group that nobody holds should be looked at."""
        head = self.head(key)
        return gate(standing(head.rows[0]) if head.rows else None, head.dead)

    def parked(self, spot: Spot, *, horizon: datetime) -> bool:
        """Say whether a live job may stay: held, behind such a job, blocked, paused, or due far off."""
        job = spot.job
        if spot.state is JobState.HELD or (spot.state is JobState.PENDING and job.due_at > horizon):
            return True
        if spot.state in IN_FLIGHT or job.grp is None:
            return False
        head = self.head((job.lane, job.grp))
        if head.busy or head.rows[0].state in IN_FLIGHT:
            return False
        first = head.rows[0]
        waits = first.state != JobState.PENDING or first.due_at > horizon
        return waits or (job.lane, job.grp) in self.paused or gate(standing(first), head.dead).blocked

    def _look(self, key: GroupKey) -> Head:
        spots = self.members(key)
        live = {spot.job.arrival: spot.job for spot in spots if spot.state in LIVE and spot.job.holds}
        rows = tuple(live[s.arrival] for s in in_order(standing(job) for job in live.values()))
        places = [place(spot.job) for spot in spots if spot.state is JobState.DEAD]
        busy = any(spot.state is JobState.CLAIMED for spot in spots)
        return Head(rows, min(places, default=None), busy)

    def _keep(self, among: set[int], arrival: int, stays: bool) -> None:  # noqa: FBT001
        among.add(arrival) if stays else among.discard(arrival)


def standing(job: Live) -> Standing:
    """Return what order needs to know of a row."""
    return Standing(job.ord, job.arrival, Mode(job.mode), JobState(job.state), job.due_at)


def place(job: Live) -> Place:
    """Return where a job stands by sequence and arrival."""
    return Place(sequence_of(job.ord), job.arrival)


def _nowhere(arrival: int) -> Spot:
    raise AssertionError(f"job {arrival} was nowhere and is nowhere")
