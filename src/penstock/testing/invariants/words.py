"""What `explain` said, held against the picture of the store at that moment, and what then happened.

An estimate is a promise: in quiet times the job goes, expires or moves on by then. When it did not, it is
asked once more, for a limit may have been reached just as it spoke: if it names the same gate and gives an
estimate again, its word is broken. Whoever was told of another gate meanwhile knows better since then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from penstock.domain.durations import parse_duration
from penstock.domain.gates import Explanation, Gate
from penstock.domain.job import Live
from penstock.domain.rates import parse_rate
from penstock.domain.states import IN_FLIGHT, TERMINAL, JobState
from penstock.testing.invariants.facts import WordBroken
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.moves import Spot
from penstock.testing.invariants.picture import Call
from penstock.testing.invariants.settings import Settings

_OPEN: Final = frozenset({Gate.DUE, Gate.BREAKER, Gate.LANE, Gate.POOL, Gate.KEY, Gate.SINK})
"""Where nothing else is in the way: it goes now, or a limit, a breaker or the nodes themselves keep it."""
SLACK: Final = timedelta(seconds=3)
ZERO: Final = timedelta(0)
Ask = Callable[[str], Explanation | None]
_NOT_SERVED: Final = "no running node"
_LIMIT: Final = "lets no more jobs go"


class Word(NamedTuple):
    """What was said of a job at that second, and who was the first of its group to go."""

    at: float
    found: Explanation
    first: int | None = None


@dataclass(slots=True)
class Words:
    """See the module."""

    model: Model
    settings: Settings
    words: dict[int, Word] = field(default_factory=dict)
    promises: dict[int, Word] = field(default_factory=dict)

    def said(self, job_id: str, found: Explanation | None, *, clock: datetime, at: float) -> None:
        """Judge an explanation given this very moment, and remember it."""
        arrival = self.model.arrivals[job_id]
        spot = self.model.spots.get(arrival)
        if found is None or spot is None:
            if (found is None) != (spot is None):
                raise WordBroken(f"job {arrival} is {spot}", found=found)
            return
        self._check_eta(spot.job, found, clock)
        expected = self._gates(spot, clock)
        if found.state is not spot.state or (found.gate not in expected and _NOT_SERVED not in found.text):
            raise WordBroken(f"job {arrival} waits for {sorted(expected)}", found=found, spot=spot, now=clock)
        if found.gate is Gate.GROUP:
            self._check_neighbour(spot.job, found)
        if found.gate is Gate.DUE and found.until not in (None, spot.job.due_at):
            raise WordBroken(f"job {arrival} is due at {spot.job.due_at}", found=found)
        self.words[arrival] = Word(at, found, self._first(spot.job))
        known = self.promises.get(arrival)
        if known is None or _kind(known.found) != _kind(found) or self._changed_since(spot.job, known.at):
            self.promises[arrival] = self.words[arrival]

    def check_kept(self, ask: Ask, *, quiet_since: float, clock: datetime) -> None:
        """Hold the estimates that were given in quiet times against what has become of the jobs."""
        for arrival, word in list(self.promises.items()):
            spot, eta = self.model.spots.get(arrival), word.found.eta
            moved = spot is None or spot.finished_at is not None or self._changed_since(spot.job, word.at)
            if spot is None or eta is None or moved or word.at <= quiet_since:
                del self.promises[arrival]
            elif clock > eta + self._slack(spot.job):
                del self.promises[arrival]
                again = ask(self.model.facts[arrival].id)
                if again is not None and _kind(again) == _kind(word.found) and again.eta is not None:
                    raise WordBroken(
                        f"job {arrival} did not go as was said", word=word, again=again, now=clock
                    )

    def _check_eta(self, job: Live, found: Explanation, clock: datetime) -> None:
        """An estimate is to come, and the job is not to expire before."""
        if found.eta is None:
            return
        after = self.settings.lanes[self.settings.name_of(job.lane)].skip_after
        latest = None if after is None or job.attempt else job.due_since + after
        if found.eta < clock or found.eta > min(filter(None, (job.start_by, latest)), default=found.eta):
            raise WordBroken(
                f"job {job.arrival} cannot go then", found=found, job=job, latest=latest, now=clock
            )

    def _changed_since(self, job: Live, at: float) -> bool:
        changed = self.model.changed_at
        return changed[job.arrival] >= at or (job.grp is not None and changed[job.lane, job.grp] >= at)

    def _slack(self, job: Live) -> timedelta:
        """Return how much later than said a job may go: a look, a pass, a note, two tokens of its lane."""
        lane = self.settings.lanes[self.settings.name_of(job.lane)]
        rate = None if lane["rate"] is None else parse_rate(lane["rate"])
        return (
            SLACK + 2 * parse_duration(lane["poll_interval"]) + (2 * rate.per / rate.count if rate else ZERO)
        )

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
        # A job that would pass a dead one stands behind one that would not, and which may expire.
        behind = {other, word.first} - {None, arrival}
        return any(one not in self.model.spots or self.model.changed_at[one] >= word.at for one in behind)

    def _first(self, job: Live) -> int | None:
        rows = self.model.head((job.lane, job.grp)).rows if job.grp is not None else ()
        return rows[0].arrival if rows else None

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
        first = self._first(job) in (None, job.arrival)
        return (
            key in self.model.paused or self.model.head(key).busy or not first or self.model.gate(key).blocked
        )

    def _check_neighbour(self, job: Live, found: Explanation) -> None:
        if found.job is None:
            if (job.lane, job.grp or "") not in self.model.paused:
                raise WordBroken("the group is not paused", found=found, job=job)
            return
        other = self.model.spots[self.model.arrivals[found.job]]
        in_the_way = other.finished_at is None or other.state is JobState.DEAD
        if (other.job.lane, other.job.grp) != (job.lane, job.grp) or not in_the_way:
            raise WordBroken("the other job is not in its way", found=found, other=other, job=job)


def _kind(found: Explanation) -> tuple[Gate, bool]:
    """Return what keeps a job: also of a claimed one a limit may be named that was reached meanwhile."""
    return found.gate, _LIMIT in found.text
