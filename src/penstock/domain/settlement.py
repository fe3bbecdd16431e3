"""Where a job lands: the one place that says what an outcome does to a job's row.

Stores read a row under a lock, ask `land()` (or `moved()` for an operator's verb), and write what it returns;
they decide nothing themselves, so memory, SQLite and PostgreSQL cannot come to disagree. The returned row's
state says which table it goes to: a live state back to `jobs`, DEAD to `dead`, any other terminal state to
`history`.

Send numbers: a row carries the last number on record and whether its fate is still open. An outcome that
comes from a send fixes the number; one that means "it never went out" leaves the row as it was, so the number
is used again; one that means "nobody knows" leaves it open, so a re-send repeats it and brokers may dedup it.
"""

from datetime import datetime
from typing import NamedTuple, assert_never

from penstock.domain.job import ON_REQUEST, Attempt, Audit, Live
from penstock.domain.ordering import Mode, sent_ord, sequence_of
from penstock.domain.outcomes import (
    Dead,
    Deferred,
    Dispatched,
    Expired,
    Failed,
    Held,
    Lapsed,
    LapsedTooOften,
    Outcome,
    Returned,
    Running,
    Succeeded,
)
from penstock.domain.states import LIVE, TERMINAL, JobState, Move, Reason, Verb, after
from penstock.domain.times import shifted
from penstock.errors import IllegalTransition

NODE_ACTOR = "penstock"
BY_HAND = "operator"
NOTES_KEPT = 5  # in a timeline, of those below: a job may be put back every minute for weeks
REPEATED = (Move.RETURN, Move.HURRY)
OUT = frozenset({JobState.DISPATCHED, JobState.RUNNING})


class Landing(NamedTuple):
    """The row after an outcome and what goes into the timeline with it."""

    job: Live
    error: str | None = None
    result: str | None = None
    attempt: Attempt | None = None
    audit: Audit | None = None


def land(job: Live, outcome: Outcome, *, now: datetime, request: Verb | None = None) -> Landing:
    """Return where a job in flight (or reported late on its open send) lands.

    `job` carries the epoch, node and claim time under which it was in flight. `request` is an operator's
    cancel or hold that waited for the holder: it is honoured whenever the job would otherwise be pending.
    """
    if job.state == JobState.PENDING:  # what it was put back for is over
        job = job._replace(reason=None)
    if request is not None and isinstance(outcome, Returned):  # who lets it go later does not wait for a pool
        outcome = Returned(outcome.why)
    landing = _land(job, outcome, now)
    if landing.job.slot is not None and landing.job.state not in OUT:
        landing = landing._replace(job=landing.job._replace(slot=None))
    if landing.job.state != JobState.PENDING:
        return landing
    if request is not None:
        return _honour(landing, request, now)
    if job.state == JobState.HELD and job.reason == BY_HAND:  # an executor's late word does not release it
        landing = landing._replace(job=landing.job._replace(state=JobState.HELD, reason=BY_HAND))
    return landing


def occupied(row: Live, epoch: int, outcome: Outcome) -> Live | None:
    """Return the row with the slot that its sender names after the executor's word came first.

    A report may overtake the sender's own settle, which then changes nothing else: the job is out already,
    and nobody but its sender knows which pool that is to count for. None = it is not, or the slot is known.
    """
    slot = outcome.slot if isinstance(outcome, Dispatched | Running) else None
    if slot is None or row.slot is not None or row.state not in OUT or row.epoch != epoch:
        return None
    return row._replace(slot=slot)


def still_asked(request: Verb, row: Live) -> bool:
    """Say whether a request outlives this landing: it is over once the job has ended, or is held as asked."""
    return row.state not in TERMINAL and not (request is Verb.HOLD and row.state == JobState.HELD)


def moved(job: Live, verb: Verb, move: Move, *, now: datetime) -> Live:
    """Return the row after an operator's verb that acts now.

    A replayed job is as unsent in the eyes of its group, but its send number goes on: what is still out there
    from before must not pass for the new send. Its `start_by` is gone, or it would expire again at once.
    """
    row = job._replace(state=after(JobState(job.state), move), reason=None, slot=None)
    match move:
        case Move.HOLD:
            waits = job.state == JobState.PENDING and job.reason is not None  # for a pool, not for its time
            row = row._replace(due_at=row.due_since, since=None) if waits else row
            return row._replace(reason=BY_HAND)
        case Move.HURRY:
            return row._replace(due_at=min(row.due_at, now), since=None)
        case Move.UNHOLD:
            return row if verb is Verb.RELEASE else row._replace(due_at=min(row.due_at, now), since=None)
        case Move.REPLAY:
            row = _again(row, now)._replace(attempt=0, recoveries=0, open=False, start_by=None)
            return row._replace(ord=sequence_of(row.ord) if Mode(row.mode).ordered else row.ord)
        case Move.SETTLE_DEAD:
            return row._replace(open=False, reason=Reason.STOPPED)
        case Move.SETTLE_SUCCEEDED:
            return row._replace(open=False)
        case _:
            return row


def recalled(job: Live, now: datetime) -> Landing:
    """Return where a job lands that need not wait any longer for the pool that put it back."""
    row = job._replace(due_at=min(job.due_at, max(now, job.due_since)), reason=None)
    return Landing(row, audit=_audit(job, row, Move.HURRY, "the pool that put it back is set otherwise", now))


def key_taken(key: str, owner: str) -> str:
    """Say why a job does not go again whose key another one has by now: a key names one job at a time."""
    return f'its key "{key}" belongs to job {owner} now: enqueue it anew, under another key'


def went(job: Live) -> bool:
    """Say whether a job was sent, is being sent, or is done: a replay of one before it would break order."""
    return job.ord < 0 or job.state in (JobState.CLAIMED, JobState.SUCCEEDED)


def late(job: Live, send: int, outcome: Outcome, *, now: datetime) -> Audit:
    """Return what is kept of an executor's word that no longer matters."""
    state = JobState(job.state).label
    reason = f"send {send}: {type(outcome).__name__.lower()}"
    return Audit(now, job.arrival, job.lane, NODE_ACTOR, "late", before=state, after=state, reason=reason)


def _land(job: Live, outcome: Outcome, now: datetime) -> Landing:
    match outcome:
        case Succeeded(result=result, receipt=receipt):
            row = _sent(job, Move.SUCCEED)._replace(attempt=job.attempt + 1, open=False)
            return Landing(row._replace(receipt=receipt or job.receipt), result=result)
        case Dispatched(ack=ack, receipt=receipt, passes=passes, slot=slot):
            deadline = shifted(now, ack)
            row = _sent(job, Move.SENT)._replace(open=True, sent_at=now, deadline=deadline, receipt=receipt)
            return Landing(row._replace(holds=row.holds and not passes, slot=slot))
        case Running():
            return _started(job, outcome, now)
        case Failed(error=error, delay=delay, known=known):
            row = _again(_sent(job, Move.RETRY), now + delay)
            row = row._replace(attempt=job.attempt + 1, open=not known)
            word = "failed" if known else "unanswered"
            return Landing(row, error, attempt=_attempt(job, row, now, word, error))
        case Dead(reason=reason, error=error):
            row = _sent(job, Move.FAIL)._replace(attempt=job.attempt + 1, open=False, reason=reason)
            return Landing(row, error, attempt=_attempt(job, row, now, reason, error))
        case Deferred(delay=delay, error=error):
            row = _again(_sent(job, Move.DEFER), now + delay)
            row = row._replace(deferrals=job.deferrals + 1, open=False)
            return Landing(row, error, attempt=_attempt(job, row, now, "deferred", error))
        case Returned(why=why, after=wait, mark=mark):
            due_at = job.due_at if wait is None else max(job.due_at, now + wait)
            row = _put_back(job._replace(state=_next(job, Move.RETURN)), due_at)._replace(reason=mark)
            return Landing(row, audit=_audit(job, row, Move.RETURN, why, now))
        case Expired(why=why):
            row = job._replace(state=_next(job, Move.EXPIRE))
            return Landing(row, audit=_audit(job, row, Move.EXPIRE, why, now))
        case Held(reason=reason):
            row = _put_back(job._replace(state=_next(job, Move.HOLD)), job.due_at)._replace(reason=reason)
            return Landing(row, audit=_audit(job, row, Move.HOLD, reason, now))
        case Lapsed():
            return _lapsed(job, now, outcome)
        case LapsedTooOften(reason=reason):
            row = _sent(job, Move.LAPSE_DEAD)._replace(recoveries=job.recoveries + 1, reason=reason)
            return Landing(row, reason, attempt=_attempt(job, row, now, reason, None))
        case _:  # pragma: no cover
            assert_never(outcome)


def _lapsed(job: Live, now: datetime, lapsed: Lapsed) -> Landing:
    started, hold = lapsed.started, lapsed.hold
    if started is False:
        row = job._replace(state=_next(job, Move.LAPSE))
        # Out of a claim the number was never used; from `dispatched` on it was, and its fate is now known.
        row = row._replace(open=row.open if job.state == JobState.CLAIMED else False)
    else:
        row = _sent(job, Move.LAPSE_HOLD if hold else Move.LAPSE)._replace(open=True)
    due_at = max(job.due_at, now)  # it may have been claimed ahead of its time
    row = _put_back(row, due_at) if started is False else _again(row, due_at)
    row = row._replace(recoveries=job.recoveries + 1)
    if hold and started is not False:
        row = row._replace(reason="outcome_unknown")
    outcome = "lapsed" if started is not False else "not_started"
    held = job if lapsed.node is None else job._replace(node=lapsed.node)
    return Landing(row, lapsed.error, attempt=_attempt(held, row, now, outcome, lapsed.error))


def _started(job: Live, outcome: Running, now: datetime) -> Landing:
    begun = job.started_at if job.state == JobState.RUNNING else None
    if outcome.alone and begun is not None and now < shifted(begun, outcome.within):
        raise IllegalTransition(JobState.RUNNING.label, Move.START)
    row = _sent(job, Move.START)._replace(open=True, deadline=shifted(now, outcome.within))
    started_at = now if outcome.alone else job.started_at or now
    return Landing(row._replace(started_at=started_at, slot=job.slot or outcome.slot))


def _honour(landing: Landing, request: Verb, now: datetime) -> Landing:
    move = Move.CANCEL if request is Verb.CANCEL else Move.HOLD
    reason = BY_HAND if move is Move.HOLD else None
    row = landing.job._replace(state=after(JobState.PENDING, move), reason=reason)
    audit = _audit(landing.job, row, move, ON_REQUEST, now)
    if landing.audit is not None:  # returned unsent: one move instead of two
        audit = audit._replace(before=landing.audit.before)
    return landing._replace(job=row, audit=audit)


def _next(job: Live, move: Move) -> JobState:
    return after(JobState(job.state), move, send_open=job.open)


def _sent(job: Live, move: Move) -> Live:
    """The row once its current send is on record: from now on it keeps its group to the end."""
    order = sent_ord(job.ord) if Mode(job.mode).ordered else job.ord
    return job._replace(state=_next(job, move), send=job.current_send, ord=order)


def _again(row: Live, due_at: datetime) -> Live:
    """The row back among the pending ones: what belonged to the claim is gone from it."""
    return row._replace(
        due_at=due_at,
        since=None,
        holds=Mode(row.mode).ordered,
        epoch=None,
        node=None,
        claimed_at=None,
        sent_at=None,
        started_at=None,
        deadline=None,
        receipt=None,
        reason=None,
    )


def _put_back(row: Live, due_at: datetime) -> Live:
    """The same for one that never went out: since when it is due is not forgotten when it comes later."""
    since = row.since if due_at == row.due_at else row.due_since
    return _again(row, due_at)._replace(since=since)


def _attempt(before: Live, row: Live, now: datetime, outcome: str, error: str | None) -> Attempt:
    live = row.state in LIVE
    return Attempt(
        arrival=row.arrival,
        keep=row.keep,
        attempt=row.attempt,
        send=before.current_send,
        epoch=before.epoch,
        node=before.node,
        claimed_at=before.claimed_at,
        ended_at=now,
        outcome=outcome,
        error=error,
        due_at=row.due_at if live else None,
    )


def _audit(before: Live, row: Live, move: Move, reason: str, now: datetime) -> Audit:
    return Audit(
        at=now,
        arrival=row.arrival,
        lane=row.lane,
        actor=NODE_ACTOR,
        action=move,
        before=JobState(before.state).label,
        after=JobState(row.state).label,
        reason=reason,
    )
