"""Everything on record about one job, from ledger, log and store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.domain.job import Audit, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.ordering import Place, sequence_of
from penstock.domain.states import JobState, Verb
from penstock.ports.store import Timeline
from penstock.testing.invariants.facts import Delivery

_REPLAYED: Final = frozenset({JobState.DEAD.label, JobState.EXPIRED.label, JobState.CANCELLED.label})


@dataclass(frozen=True, slots=True)
class Witness:
    """One job: what was said when it was accepted, what the store tells, what arrived at the sink."""

    job: Job
    lane: Lane
    said: NewJob
    timeline: Timeline
    deliveries: Sequence[Delivery]

    @property
    def replays(self) -> list[Audit]:
        """The operator's verbs that began the job anew."""
        return [n for n in self.timeline.audit if n.action == Verb.RETRY and n.before in _REPLAYED]

    @property
    def place(self) -> Place:
        """Where the job stands in its group."""
        return Place(sequence_of(self.job.live.ord), self.job.live.arrival)
