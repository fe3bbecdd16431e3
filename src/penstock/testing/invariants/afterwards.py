"""What must hold once a run is over, seen from outside: ledger, log, and the store through its port alone.

This is all that a test which kills real processes can know. A simulation checks it too, beside what it saw
happen.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.domain.job import Audit, Job, NewJob
from penstock.domain.ordering import Place, sequence_of
from penstock.domain.retry import RetrySchedule
from penstock.domain.states import RULES, TERMINAL, JobState, Move, Reason, Verb
from penstock.ports.store import Store, Timeline
from penstock.testing.invariants.facts import (
    Delivery,
    IllegalPath,
    Ledger,
    Log,
    MissingFromTimeline,
    NotInOnePlace,
    OutOfOrder,
    Stuck,
    UnexplainedSend,
    WrongAttempts,
    WrongBytes,
    WrongCounters,
)
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.moves import Spot

_LAPSES: Final = frozenset({"lapsed", "not_started", Reason.POISON.value, Reason.UNREPORTED.value})
_AGAIN: Final = frozenset({"lapsed", "not_started"})
_REPLAYED: Final = frozenset({JobState.DEAD.label, JobState.EXPIRED.label, JobState.CANCELLED.label})


@dataclass(frozen=True, slots=True)
class Witness:
    """Everything on record about one job."""

    job: Job
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


def check_afterwards(
    ledger: Ledger, log: Log, store: Store, *, ids: Iterable[str] = (), dropped: Container[str] = ()
) -> None:
    """Hold the store against ledger and log.

    `ids` are all jobs there are, where that is known (some were written though nobody was told so); `dropped`
    are those that retention may have taken.
    """
    found = store.find([*ledger.accepted])
    if lost := [job_id for job_id in ledger.accepted if job_id not in found and job_id not in dropped]:
        raise NotInOnePlace("accepted and gone", lost=lost)
    schedules = {name: RetrySchedule.from_text(lane["retry"]) for name, lane in store.lanes().items()}
    deliveries = log.by_job()
    witnesses = {
        job_id: Witness(job, ledger.accepted[job_id], store.timeline(job_id), deliveries.get(job_id, ()))
        for job_id, job in found.items()
    }
    for witness in witnesses.values():
        check_witness(witness, schedules[witness.job.lane])
    check_order(ledger, log, witnesses)
    if everything := list(ids):
        jobs = store.find(everything)
        check_counts(store, jobs)
        check_groups(store, jobs)


def check_witness(witness: Witness, retry: RetrySchedule) -> None:
    """Hold what is on record about one job against itself."""
    _check_bytes(witness)
    _check_sends(witness)
    _check_counters(witness)
    _check_path(witness)
    job = witness.job.live
    limit = retry.attempts_for(job.max_attempts)
    if job.attempt > limit or (job.attempt == limit and job.state not in TERMINAL):
        raise WrongAttempts(f"{job.attempt} of {limit} attempts", witness=witness)


def _check_bytes(witness: Witness) -> None:
    context, said = witness.job.context, witness.said
    for delivery in witness.deliveries:
        if delivery.payload != said.payload:
            raise WrongBytes("delivered otherwise than accepted", delivery=delivery, said=said.payload)
    if context is not None and context.payload != said.payload:
        raise WrongBytes("stored otherwise than accepted", stored=context.payload, said=said.payload)


def _check_sends(witness: Witness) -> None:
    rows, sends = witness.timeline.attempts, witness.deliveries
    epochs = Counter(delivery.epoch for delivery in sends)
    if twice := [epoch for epoch, count in epochs.items() if count > 1]:
        raise UnexplainedSend(f"sent twice under epoch {twice}", witness=witness)
    if len(sends) > 1 + len(rows) + len(witness.replays):
        raise UnexplainedSend(f"{len(sends)} sends, {len(rows)} tries on record", witness=witness)
    again = Counter(row.send for row in rows if row.outcome in _AGAIN)
    for number, count in Counter(delivery.send for delivery in sends).items():
        if count > 1 + again[number]:
            raise UnexplainedSend(f"number {number} was sent {count} times", witness=witness)
        if number > witness.job.live.send + 1:
            raise UnexplainedSend(f"number {number} is not on record", witness=witness)
    numbers = [delivery.send for delivery in sends if not delivery.stale]
    if numbers != sorted(numbers):
        raise UnexplainedSend(f"send numbers go back: {numbers}", witness=witness)


def _check_counters(witness: Witness) -> None:
    """The timeline explains the counters: exactly, or since some replay where there was one."""
    job, rows = witness.job, witness.timeline.attempts
    deferred = sum(row.outcome == "deferred" for row in rows)
    lapsed = sum(row.outcome in _LAPSES for row in rows)
    tried = len(rows) - deferred - lapsed
    by_hand = any(
        note.action == Verb.SETTLE_SUCCEEDED and note.after == JobState.SUCCEEDED.label
        for note in witness.timeline.audit
    )
    tried += job.state is JobState.SUCCEEDED and not by_hand
    told = (tried, lapsed, deferred)
    kept = (job.live.attempt, job.live.recoveries, job.live.deferrals)
    if told != kept and (not witness.replays or told[2] != kept[2] or told < kept):
        raise MissingFromTimeline(f"the timeline tells of {told}, the row of {kept}", witness=witness)


def _check_path(witness: Witness) -> None:
    """From each recorded move to the next there is a way that needs no record of its own."""
    state = JobState.PENDING
    kept = {JobState.PENDING.label: state}
    for note in witness.timeline.audit:
        if note.before is None or note.after is None:
            continue
        before = _state(note.before)
        if before not in _REACHABLE[state]:
            raise IllegalPath(f"from {state.label} to {before.label} without a word", witness=witness)
        state = _state(note.after)
        kept[note.after] = state
    if witness.job.state not in _REACHABLE[state]:
        raise IllegalPath(f"it ends as {witness.job.state.label} after {state.label}", witness=witness)


def check_order(ledger: Ledger, log: Log, witnesses: Mapping[str, Witness]) -> None:
    """Of two jobs of a group, the one that stands first and was there first went first, or ended unsent."""
    first: dict[str, int] = {}
    first_valid: dict[str, int] = {}
    stale: dict[str, bool] = {}
    for number, delivery in enumerate(log.deliveries):
        if delivery.job not in first:
            first[delivery.job], stale[delivery.job] = number, delivery.stale
        if not delivery.stale:
            first_valid.setdefault(delivery.job, number)
    answered = {job_id: number for number, job_id in enumerate(ledger.accepted)}
    groups: dict[tuple[str, str], list[Witness]] = {}
    for witness in witnesses.values():
        if witness.job.live.grp is not None:
            groups.setdefault((witness.job.lane, witness.job.live.grp), []).append(witness)
    for members in groups.values():
        members.sort(key=lambda witness: witness.place)
        for index, later in enumerate(members):
            at = first_valid.get(later.job.id)
            for earlier in members[:index] if at is not None else ():
                if answered[earlier.job.id] >= ledger.asked_after[later.job.id] or earlier.replays:
                    continue
                sent = first.get(earlier.job.id)
                overtaken = earlier.job.state not in TERMINAL if sent is None else sent > (at or 0)
                if overtaken and not stale.get(earlier.job.id, False):
                    raise OutOfOrder("a job was sent before the one before it", earlier=earlier, later=later)


def check_counts(store: Store, jobs: Mapping[str, Job]) -> None:
    """The counters say what the jobs say, once folded."""
    store.fold_counts()
    true = Counter((job.lane, job.state) for job in jobs.values())
    if store.counts() != dict(true):
        raise WrongCounters("the counters differ from the jobs", kept=store.counts(), true=dict(true))


def check_groups(store: Store, jobs: Mapping[str, Job]) -> None:
    """Every group is as its jobs say: free, held by a claim, or blocked by its earliest dead job."""
    model, names = Model(), {job.live.lane: job.lane for job in jobs.values()}
    for job in jobs.values():
        model.put(job.live.arrival, Spot(job.live, job.finished_at), at=0.0)
    for lane, group in model.groups():
        kept, head = store.group(names[lane], group), model.head((lane, group))
        if kept is None and not head.rows and head.dead is None:
            continue  # all it has is out and holds nobody up
        if kept is None:
            raise Stuck(f"group {group} is not known and has jobs", head=head)
        gate = model.gate((lane, group)) if not head.busy else None
        dead = head.dead.arrival if head.dead else None
        true = (gate.due_at if gate else None, gate.blocked if gate else False, dead, head.busy)
        if (kept.next_at, kept.blocked, kept.dead_arrival, kept.claim is not None) != true:
            raise Stuck(f"group {group} is not what its jobs say", kept=kept, true=true)


def _state(label: str) -> JobState:
    return JobState[label.upper()]


def _closure() -> dict[JobState, frozenset[JobState]]:
    """Return where a job may get from each state by moves that write no audit row."""
    silent = set(Move) - {
        Move.RELEASE, Move.RETURN, Move.EXPIRE, Move.CANCEL, Move.SKIP, Move.HOLD, Move.UNHOLD,
        Move.HURRY, Move.REPLAY, Move.SETTLE_SUCCEEDED, Move.SETTLE_DEAD,
    }  # fmt: skip
    reach = {state: {state} for state in JobState}
    for _ in JobState:
        for move in silent:
            for state in JobState:
                if reach[state] & (RULES[move].leaves | RULES[move].while_open):
                    reach[state].add(RULES[move].to)
    return {state: frozenset(states) for state, states in reach.items()}


_REACHABLE: Final = _closure()
