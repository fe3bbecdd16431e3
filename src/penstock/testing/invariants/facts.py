"""What an invariant is checked against, and what is raised when it does not hold.

Three witnesses that know nothing of each other: the *ledger* of what producers were promised, the *log* of
what arrived at the sink, and the store. Nothing here depends on how the run was made: a simulation, a
Hypothesis machine and a test that kills real processes all fill the same records.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NamedTuple

from penstock.domain.job import NewJob


class Violation(AssertionError):
    """A promise is broken; `invariant` is its name in the list of promises, the message holds the facts."""

    invariant: ClassVar[str] = ""

    def __init__(self, what: str, **facts: object) -> None:
        told = "".join(f"\n    {name} = {fact}" for name, fact in facts.items())
        title = (type(self).__doc__ or "").strip().rstrip(".")
        super().__init__(f"{self.invariant} ({title}): {what}{told}")
        self.facts = facts


class NotInOnePlace(Violation):
    """Every accepted job is in exactly one place."""

    invariant = "I1"


class Undelivered(Violation):
    """What the store calls succeeded was taken by the receiver."""

    invariant = "I1"


class TwoInFlight(Violation):
    """At most one job of an ordered group is in flight, or one run of one node."""

    invariant = "I2"


class OutOfOrder(Violation):
    """First sends follow (sequence, arrival) among the jobs visible at the claim."""

    invariant = "I3"


class UnexplainedSend(Violation):
    """Every send after the first has a recorded cause and the number that belongs to it."""

    invariant = "I4"


class TerminalChanged(Violation):
    """A job that ended changes only by an audited verb of an operator."""

    invariant = "I5"


class IllegalPath(Violation):
    """What happened to a job is a path of the machine."""

    invariant = "I6"


class StaleWrite(Violation):
    """A write of an old epoch changes nothing."""

    invariant = "I7"


class Untrusted(Violation):
    """A node that is awake sends only what it holds for sure, marked where that has to be."""

    invariant = "I7"


class OldTerm(Violation):
    """Only the leader keeps house: a write of an older term, or of none, changes nothing."""

    invariant = "I8"


class TooMany(Violation):
    """Rates and in-flight limits hold over the whole cluster, for every key, in every window."""

    invariant = "I9"


class StoppedSent(Violation):
    """What is stopped is silent: a lane, a pool, the store, a target that is left alone."""

    invariant = "I10"


class BlockedGroupSent(Violation):
    """A blocked, held or paused group is silent."""

    invariant = "I10"


class TooEarly(Violation):
    """No job goes before it is due."""

    invariant = "I11"


class TooLate(Violation):
    """Nothing goes after its `start_by`, or later than its lane's `misfire` allows."""

    invariant = "deadlines"


class WrongAttempts(Violation):
    """Attempts stay within their limit, wait out the back-off, and end as dead in the same transaction."""

    invariant = "I12"


class WrongBytes(Violation):
    """What is delivered is what was accepted, byte for byte."""

    invariant = "I14"


class MissingFromTimeline(Violation):
    """Every move is in the timeline, written by the same transaction."""

    invariant = "I15"


class WrongCounters(Violation):
    """The counters say what the rows say."""

    invariant = "counters"


class WrongKey(Violation):
    """A key has one owner among the jobs that live or ended within key_ttl."""

    invariant = "keys"


class RequestIgnored(Violation):
    """A cancel or hold that was asked for is honoured before the job could go again."""

    invariant = "requests"


class WrongAnswer(Violation):
    """What a call answers is what it did."""

    invariant = "answers"


class Late(Violation):
    """Once faults stop, a job that is free goes within lease + 2 polls."""

    invariant = "L1"


class Stuck(Violation):
    """Nothing is left where no claim will ever find it."""

    invariant = "L2"


class Leaderless(Violation):
    """Once faults stop, there is a leader within its TTL and a refresh."""

    invariant = "L4"


class NotGraceful(Violation):
    """A node that is asked to stop has left within its grace, and nothing of it is left claimed."""

    invariant = "L6"


class Wedged(Violation):
    """A node serves until it is told to stop, and holds a claim no longer than its work takes."""

    invariant = "L7"


class WordBroken(Violation):
    """What `explain` says is what then happens."""

    invariant = "G10"


class Delivery(NamedTuple):
    """One message as the sink saw it, taken or not.

    `at` only orders deliveries among themselves. `stale` says that the claim it was sent under was over by
    then: a zombie's message, which nobody can call back. `taken` says that the sink accepted it. `clock` is a
    wall clock's reading, as good as the store's; `minted` the seconds that clock has run forward. `limits`
    are those it counts against, and `rested` says that its node was awake all the while it sent it.
    """

    job: str
    send: int
    epoch: int
    lane: str
    group: str | None
    sequence: int
    payload: str | None
    at: float
    node: str = ""
    stale: bool = False
    taken: bool = True
    clock: datetime | None = None
    minted: float = 0.0
    limits: tuple[str, ...] = ()
    rested: bool = True


@dataclass(slots=True)
class Ledger:
    """What producers were promised: the jobs that were acknowledged, by id, in the order of the answers.

    `asked_after[id]` is how many jobs had been acknowledged before this one was first offered: all of those
    were visible to everybody before it was.
    """

    accepted: dict[str, NewJob] = field(default_factory=dict)
    asked_after: dict[str, int] = field(default_factory=dict)

    def accept(self, job_id: str, job: NewJob, *, asked_after: int) -> None:
        """Note a promise; a repeated one changes nothing."""
        if job_id not in self.accepted:
            self.accepted[job_id] = job
            self.asked_after[job_id] = asked_after

    def __len__(self) -> int:
        return len(self.accepted)


@dataclass(slots=True)
class Log:
    """What arrived at the sink, in order."""

    deliveries: list[Delivery] = field(default_factory=list)

    def append(self, delivery: Delivery) -> None:
        """Add what arrived just now."""
        self.deliveries.append(delivery)

    def by_job(self) -> dict[str, Sequence[Delivery]]:
        """Return each job's deliveries, in order."""
        found: dict[str, list[Delivery]] = defaultdict(list)
        for delivery in self.deliveries:
            found[delivery.job].append(delivery)
        return dict(found)
