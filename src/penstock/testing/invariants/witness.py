"""Everything on record about one job, from ledger, log and store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.domain.job import Audit, Job, NewJob
from penstock.domain.lanes import Lane
from penstock.domain.ordering import Place, sequence_of
from penstock.domain.states import RULES, Move, Verb
from penstock.ports.store import Timeline
from penstock.testing.invariants.facts import Delivery
from penstock.testing.invariants.moves import states_of

_BEGINS: Final = frozenset({Verb.RETRY, Verb.EDIT})


def _began(note: Audit) -> bool:
    states = states_of(note)
    return states is not None and states[0] in RULES[Move.REPLAY].leaves


@dataclass(frozen=True, slots=True)
class Witness:
    """One job: what was said when it was accepted, what the store tells, what arrived at the sink.

    `versions` are the payloads it was to send at any time.
    """

    job: Job
    lane: Lane
    said: NewJob
    timeline: Timeline
    deliveries: Sequence[Delivery]
    versions: frozenset[str | None]

    @property
    def replays(self) -> list[Audit]:
        """The operator's verbs that began the job anew."""
        return [n for n in self.timeline.audit if n.action in _BEGINS and _began(n)]

    @property
    def edited(self) -> bool:
        """Whether what it sends, or when, is no longer what the caller said."""
        return any(note.action == Verb.EDIT for note in self.timeline.audit)

    @property
    def by_hand(self) -> bool:
        """Whether an operator said that it is done."""
        return any(note.action == Verb.SETTLE_SUCCEEDED for note in self.timeline.audit)

    @property
    def place(self) -> Place:
        """Where the job stands in its group."""
        return Place(sequence_of(self.job.live.ord), self.job.live.arrival)
