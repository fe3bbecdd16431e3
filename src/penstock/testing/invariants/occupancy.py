"""Who occupies the slots of an in-flight limit: calls that are being made, and jobs that are out.

A slot is a lease of its node. One that was not renewed in time, by the store's clock, is given to others
while its job may still be out, and what a dead node left is found out later: such jobs are not counted. Of
all the others there are never more than the limit says, and nobody sends who has not asked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from penstock.domain.states import JobState
from penstock.ports.sink import Envelope
from penstock.testing.invariants.facts import TooMany
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.picture import Call
from penstock.testing.invariants.settings import HEEDED_WITHIN_S, Allowed, Settings

_OUT: Final = frozenset({JobState.DISPATCHED, JobState.RUNNING})


class Occupant(NamedTuple):
    """A job that takes slots of these limits for its node."""

    node: int
    limits: tuple[str, ...]


@dataclass(slots=True)
class Occupancy:
    """See the module. Jobs are known by arrival; `calling` are being sent, `out` were taken by the sink."""

    settings: Settings
    model: Model
    clock: Callable[[], datetime]
    time: Callable[[], float]
    alive: Callable[[int], bool] = lambda _: True
    calling: dict[int, Occupant] = field(default_factory=dict)
    out: dict[int, Occupant] = field(default_factory=dict)
    _leases: dict[tuple[int, str], datetime] = field(default_factory=dict)
    _trusted: dict[tuple[int, str], float] = field(default_factory=dict)
    _lost: set[tuple[int, str]] = field(default_factory=set)
    _sent_by: dict[int, Occupant] = field(default_factory=dict)

    def begins(self, node: int, envelope: Envelope, *, sound: bool) -> None:
        """A node begins to send a job; one that is not `sound` may have slept over its leases."""
        arrival = self.model.arrivals[envelope.id]
        self._sent_by.pop(arrival, None)
        if not sound:
            return
        # What begins while there is no limit is in nobody's books, and its node may sleep when one is set.
        limits = [limit for limit in self.settings.limits_of(envelope) if self._allowed(limit).slots]
        for limit in limits:
            if self.time() >= self._trusted.get((node, limit), 0.0):
                raise TooMany(f"node {node} has no slots of {limit}", job=arrival)
        held = (limit for limit in limits if self._leased(node, limit) and (node, limit) not in self._lost)
        occupant = Occupant(node, tuple(held))
        self._sent_by[arrival] = self.calling[arrival] = occupant
        for limit in occupant.limits:
            self._check(limit)

    def ends(self, envelope: Envelope) -> None:
        """A node has done with a call."""
        self.calling.pop(self.model.arrivals[envelope.id], None)

    def heard(self, call: Call) -> None:
        """Take in what the store did."""
        if call.name == "permit":
            node, needs = call.args
            for need in needs:
                self._renewed(node, need.limit.id, call)
        for arrival, change in call.changes.items():
            state = None if change.after is None else change.after.state
            taken_over = call.name in ("takeover", "lapse")
            if state not in _OUT or taken_over:
                self.out.pop(arrival, None)
            if state is JobState.PENDING or taken_over:
                self._sent_by.pop(arrival, None)
            elif state in _OUT and arrival in self._sent_by and arrival not in self.out:
                node, limits = self._sent_by[arrival]
                self.out[arrival] = Occupant(node, tuple(name for name in limits if self._leased(node, name)))

    def _renewed(self, node: int, limit: str, call: Call) -> None:
        """A node has asked; what it did with slots that others may have had since is not counted.

        Nor what it does until it has the answer, if it trusts a lease that a step of the clock has ended.
        """
        leased, trusted = self._leased(node, limit), self.time() < self._trusted.get((node, limit), 0.0)
        (self._lost.add if trusted and not leased else self._lost.discard)((node, limit))
        if not leased:
            for occupants in (self.calling, self.out, self._sent_by):
                for arrival, (other, limits) in occupants.items():
                    if other == node and limit in limits:
                        occupants[arrival] = Occupant(node, tuple(name for name in limits if name != limit))
        self._leases[node, limit] = call.now + call.options["ttl"]
        self._trusted[node, limit] = self.time() + call.options["ttl"].total_seconds()

    def _check(self, limit: str) -> None:
        allowed, taken = self._allowed(limit), sorted(set(self._taking(limit)))
        if len(taken) > (allowed.slots or 0):
            raise TooMany(f"{len(taken)} in flight of {limit}", jobs=taken, allowed=allowed)

    def _allowed(self, limit: str) -> Allowed:
        now = self.time()
        return self.settings.allowed(limit, since=now - HEEDED_WITHIN_S, until=now)

    def _taking(self, limit: str) -> Iterator[int]:
        for arrival, occupant in self.calling.items():
            if limit in occupant.limits and self._leased(occupant.node, limit) and self.alive(occupant.node):
                yield arrival
        for arrival, occupant in self.out.items():
            # An executor may speak before its node has told which slot of a pool the job takes.
            on_record = limit.startswith("lane/") or self.model.spots[arrival].job.slot is not None
            if limit in occupant.limits and on_record:
                yield arrival

    def _leased(self, node: int, limit: str) -> bool:
        until = self._leases.get((node, limit))
        return until is not None and self.clock() < until
