"""What `explain` said, held against the picture of the store at that moment, and what then happened."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.gates import Explanation, Gate
from penstock.domain.job import Live
from penstock.domain.states import IN_FLIGHT, TERMINAL, JobState
from penstock.testing.invariants.facts import WordBroken
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.moves import Spot
from penstock.testing.invariants.picture import Call
from penstock.testing.invariants.settings import Settings

_OPEN: Final = frozenset({Gate.DUE, Gate.BREAKER, Gate.LANE, Gate.POOL, Gate.KEY, Gate.SINK})
"""Where nothing else is in the way: it goes now, or a limit, a breaker or the nodes themselves keep it."""
_NOT_SERVED: Final = "no running node"


class Word(NamedTuple):
    """What was said of a job at that second."""

    at: float
    found: Explanation


@dataclass(slots=True)
class Words:
    """See the module."""

    model: Model
    settings: Settings
    words: dict[int, Word] = field(default_factory=dict)

    def said(self, job_id: str, found: Explanation | None, *, clock: datetime, at: float) -> None:
        """Judge an explanation given this very moment, and remember it."""
        arrival = self.model.arrivals[job_id]
        spot = self.model.spots.get(arrival)
        if found is None or spot is None:
            if (found is None) != (spot is None):
                raise WordBroken(f"job {arrival} is {spot}", found=found)
            return
        expected = self._gates(spot, clock)
        if found.state is not spot.state or (found.gate not in expected and _NOT_SERVED not in found.text):
            raise WordBroken(f"job {arrival} waits for {sorted(expected)}", found=found, spot=spot, now=clock)
        if found.gate is Gate.GROUP:
            self._check_neighbour(spot.job, found)
        if found.gate is Gate.DUE and found.until not in (None, spot.job.due_at):
            raise WordBroken(f"job {arrival} is due at {spot.job.due_at}", found=found)
        self.words[arrival] = Word(at, found)

    def heard(self, call: Call) -> None:
        """Hold what happens against what was said."""
        if call.name not in ("claim", "claim_groups"):
            return
        for arrival in call.changes:
            word = self.words.pop(arrival, None)
            if word is not None and word.found.gate is Gate.GROUP and not self._moved(arrival, word):
                raise WordBroken("claimed, and nothing it waited for has changed", word=word, job=arrival)

    def _moved(self, arrival: int, word: Word) -> bool:
        job = self.model.spots[arrival].job
        other = self.model.arrivals.get(word.found.job or "")
        if other is None:  # the group was paused
            return (job.lane, job.grp or "") not in self.model.paused
        return other not in self.model.spots or self.model.changed_at[other] >= word.at

    def _gates(self, spot: Spot, clock: datetime) -> frozenset[Gate]:
        """Return what a job may wait for, first things first."""
        if spot.state in TERMINAL:
            return frozenset({Gate.FINAL})
        if spot.state is JobState.HELD:
            return frozenset({Gate.HELD})
        if spot.state in IN_FLIGHT:
            return frozenset({Gate.LEASE})
        job = spot.job
        if job.start_by is not None and clock > job.start_by:
            return frozenset({Gate.DUE})
        stops = list(self._stops(job, clock))
        if stops:
            return frozenset(stops)
        if job.grp is not None and self._stands_behind(job):
            return frozenset({Gate.GROUP})
        return _OPEN

    def _stops(self, job: Live, clock: datetime) -> Iterator[Gate]:
        lane = self.settings.name_of(job.lane)
        named = self.model.facts[job.arrival].pool
        own = named if named in self.settings.pools else self.settings.lanes[lane]["pool"]
        places = {
            "store": Gate.STORE,
            f"enabled of lane/{lane}": Gate.LANE,
            f"lane/{lane}": Gate.LANE,
            f"pool/{own}": Gate.POOL,
        }
        for place, gate in places.items():
            stop = self.settings.stops.get(place)
            if stop is not None and stop.in_force(clock):
                yield gate
                return

    def _stands_behind(self, job: Live) -> bool:
        key = (job.lane, job.grp or "")
        head = self.model.head(key)
        first = head.rows[0].arrival if head.rows else job.arrival
        return key in self.model.paused or head.busy or first != job.arrival or self.model.gate(key).blocked

    def _check_neighbour(self, job: Live, found: Explanation) -> None:
        if found.job is None:
            if (job.lane, job.grp or "") not in self.model.paused:
                raise WordBroken("the group is not paused", found=found, job=job)
            return
        other = self.model.spots[self.model.arrivals[found.job]]
        in_the_way = other.finished_at is None or other.state is JobState.DEAD
        if (other.job.lane, other.job.grp) != (job.lane, job.grp) or not in_the_way:
            raise WordBroken("the other job is not in its way", found=found, other=other, job=job)
