"""What must hold once a run is over, seen from outside: ledger, log, and the store through its port alone.

This is all that a test which kills real processes can know. A simulation checks it too, beside what it saw
happen.
"""

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from penstock.domain.durations import parse_duration
from penstock.domain.job import Job
from penstock.domain.retry import RetrySchedule
from penstock.domain.states import RULES, TERMINAL, JobState, Move, Reason, Verb
from penstock.ports.store import Store
from penstock.testing.invariants.facts import (
    IllegalPath,
    Ledger,
    Log,
    MissingFromTimeline,
    NotInOnePlace,
    Stuck,
    WrongAttempts,
    WrongCounters,
    WrongKey,
)
from penstock.testing.invariants.model import Model
from penstock.testing.invariants.moves import Spot, states_of
from penstock.testing.invariants.sends import (
    check_bytes,
    check_causes,
    check_not_early,
    check_numbers,
    check_order,
    check_taken,
)
from penstock.testing.invariants.witness import Witness

_LAPSES: Final = frozenset({"lapsed", "not_started", Reason.POISON.value, Reason.UNREPORTED.value})


def check_afterwards(
    ledger: Ledger,
    log: Log,
    store: Store,
    *,
    ids: Iterable[str] = (),
    dropped: Container[str] = (),
    slack: timedelta = timedelta(0),
    retries: Mapping[str, Sequence[RetrySchedule]] = MappingProxyType({}),
) -> None:
    """Hold the store against ledger and log.

    `ids` are all jobs there are, where that is known (some were written though nobody was told so); `dropped`
    are those that retention may have taken; `slack` is what the clocks of store and sink may be off by;
    `retries` are all schedules that lanes had, where they were changed.
    """
    found = store.find([*ledger.accepted])
    if lost := [job_id for job_id in ledger.accepted if job_id not in found and job_id not in dropped]:
        raise NotInOnePlace("accepted and gone", lost=lost)
    lanes, deliveries = store.lanes(), log.by_job()
    witnesses = {
        id_: Witness(
            job,
            lanes[job.lane],
            ledger.accepted[id_],
            store.timeline(id_),
            deliveries.get(id_, ()),
            _versions(store, job),
        )
        for id_, job in found.items()
    }
    for witness in witnesses.values():
        own = RetrySchedule.from_text(witness.lane["retry"])
        check_witness(witness, slack=slack, retries=retries.get(witness.job.lane, [own]))
    check_order(ledger, log, witnesses)
    check_keys(witnesses.values(), slack=slack)
    if everything := list(ids):
        jobs = store.find(everything)
        check_counts(store, jobs)
        check_groups(store, jobs)


def _versions(store: Store, job: Job) -> frozenset[str | None]:
    if job.live.revision:
        return frozenset(version.payload for version in store.payload_versions(job.id))
    return frozenset() if job.context is None else frozenset({job.context.payload})


def check_witness(witness: Witness, *, slack: timedelta, retries: Sequence[RetrySchedule]) -> None:
    """Hold what is on record about one job against itself."""
    check_bytes(witness)
    check_taken(witness)
    check_causes(witness)
    check_numbers(witness)
    check_not_early(witness, slack=slack)
    _check_counters(witness)
    _check_path(witness)
    job = witness.job.live
    limit = max(retry.attempts_for(job.max_attempts) for retry in retries)
    if job.attempt > limit or (job.attempt == limit and job.state not in TERMINAL):
        raise WrongAttempts(f"{job.attempt} of {limit} attempts", witness=witness)


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
    for note in witness.timeline.audit:
        before, after = states_of(note) or (state, state)
        if before not in _REACHABLE[state]:
            raise IllegalPath(f"from {state.label} to {before.label} without a word", witness=witness)
        state = after
    if witness.job.state not in _REACHABLE[state]:
        raise IllegalPath(f"it ends as {witness.job.state.label} after {state.label}", witness=witness)


def check_keys(witnesses: Iterable[Witness], *, slack: timedelta) -> None:
    """Of two jobs with one key, the second came when the first had been finished for `key_ttl`."""
    by_key: dict[tuple[str, str], list[Witness]] = {}
    for witness in witnesses:
        if witness.said.key is not None:
            by_key.setdefault((witness.job.lane, witness.said.key), []).append(witness)
    for owners in by_key.values():
        owners.sort(key=lambda witness: witness.job.live.arrival)
        for before, after in itertools.pairwise(owners):
            end, context = before.job.finished_at, after.job.context
            finished = end is not None and before.job.state is not JobState.DEAD
            ttl = parse_duration(before.lane["key_ttl"])
            if before.replays or (finished and end and context and end + ttl <= context.created_at + slack):
                continue
            raise WrongKey("two jobs with one key", before=before, after=after)


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
