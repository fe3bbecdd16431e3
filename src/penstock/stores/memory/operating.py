"""Operators' verbs."""

from datetime import datetime

from penstock.domain.job import Audit, Live
from penstock.domain.ordering import Mode
from penstock.domain.settlement import moved, went
from penstock.domain.states import Effect, JobState, Move, Verb, answer
from penstock.ports.store import Done
from penstock.stores.memory.tables import Request, Tables, place


def operate(
    tables: Tables, verb: Verb, job_id: str, *, actor: str, reason: str, force: bool, now: datetime
) -> Done:
    """Carry out a verb on one job, leave a request with its holder, or say why not."""
    row = tables.row(tables.by_id.get(job_id, 0))
    if row is None:
        return Done(Effect.REFUSED, None, "no such job")
    state = JobState(row.state)
    if verb is Verb.EDIT:
        return Done(Effect.REFUSED, state, "edits need the new values")
    what = answer(verb, state, force=force)
    if what.effect is Effect.REFUSED:
        return Done(Effect.REFUSED, state, f"{verb} does nothing to a job that is {state.label}")
    if what.effect is Effect.REQUESTED or what.move is None:
        tables.requests[row.arrival] = Request(verb, actor, reason)
        _note(tables, row, row, verb, actor=actor, reason=reason, now=now)
        return Done(Effect.REQUESTED, state, "its holder is asked")
    if what.move is Move.REPLAY and not force and (gone := _gone_behind(tables, row)):
        jobs = "job" if gone == 1 else "jobs"
        return Done(Effect.REFUSED, state, f"{gone} {jobs} behind it in its group went already")
    after = moved(row, verb, what.move, now=now)
    ended = tables.dead.get(row.arrival)
    tables.put(after, now, ended.error if ended else None)
    tables.requests.pop(row.arrival, None)
    _note(tables, row, after, verb, actor=actor, reason=reason, now=now)
    return Done(Effect.NOW, JobState(after.state))


def _gone_behind(tables: Tables, row: Live) -> int:
    """Return how many jobs that stand behind this one in its group have been sent or are being sent.

    Every job on record counts, finished ones too; one that ended unsent (cancelled, expired) does not.
    """
    if not Mode(row.mode).ordered:
        return 0
    ended = [e.job for table in (tables.dead, tables.history) for e in table.values()]
    others = (r for r in [*tables.live.values(), *ended] if r.lane == row.lane and r.grp == row.grp)
    return sum(1 for r in others if place(r) > place(row) and went(r))


def _note(
    tables: Tables, before: Live, after: Live, verb: Verb, *, actor: str, reason: str, now: datetime
) -> None:
    states = JobState(before.state).label, JobState(after.state).label
    tables.audit.append(Audit(now, after.arrival, after.lane, actor, verb, *states, reason))
