"""Operators' verbs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.domain.job import Audit, Live
from penstock.domain.ordering import Mode
from penstock.domain.payloads import fingerprint
from penstock.domain.settlement import key_taken, moved, went
from penstock.domain.states import (
    CANCEL_STANDS,
    Effect,
    JobState,
    Move,
    Verb,
    allowed,
    answer,
    does_nothing,
    overtaken,
)
from penstock.ports.store import Done
from penstock.stores.memory.intake import owner
from penstock.stores.memory.tables import Key, Request, Tables, place


@dataclass(frozen=True, slots=True)
class Order:
    """Who wants what, when and why; `called` are all the jobs it is about."""

    verb: Verb
    actor: str
    reason: str
    now: datetime
    called: frozenset[int]
    force: bool


def operate(
    tables: Tables, verb: Verb, ids: Sequence[str], *, actor: str, reason: str, force: bool, now: datetime
) -> list[Done]:
    """Carry out a verb on each job, one after the other."""
    called = frozenset(tables.by_id.get(job_id, 0) for job_id in ids)
    order = Order(verb, actor, reason, now, called, force=force)
    return [operate_one(tables, order, job_id) for job_id in ids]


def operate_one(tables: Tables, order: Order, job_id: str) -> Done:
    """Carry out a verb on one job, leave a request with its holder, or say why not."""
    verb, now = order.verb, order.now
    row = tables.row(tables.by_id.get(job_id, 0))
    if row is None:
        return Done(Effect.REFUSED, None, "no such job")
    state = JobState(row.state)
    if verb is Verb.EDIT:
        return Done(Effect.REFUSED, state, "edits need the new values")
    what = answer(verb, state, force=order.force)
    if what.effect is Effect.REFUSED:
        return Done(Effect.REFUSED, state, does_nothing(verb, state))
    if what.effect is Effect.REQUESTED or what.move is None:
        asked = tables.requests.get(row.arrival)
        if verb is Verb.HOLD and asked is not None and asked.verb is Verb.CANCEL:
            return Done(Effect.REFUSED, state, CANCEL_STANDS)
        tables.requests[row.arrival] = Request(verb, order.actor, order.reason, order.now)
        _note(tables, row, row, order)
        return Done(Effect.REQUESTED, state, "its holder is asked")
    if what.move is Move.REPLAY and (why := replay_refusal(tables, row, order)):
        return Done(Effect.REFUSED, state, why)
    after = moved(row, verb, what.move, now=now)
    ended = tables.dead.get(row.arrival)
    tables.put(after, now, ended.error if ended else None)
    tables.requests.pop(row.arrival, None)
    _note(tables, row, after, order)
    return Done(Effect.NOW, JobState(after.state))


def replay_refusal(tables: Tables, row: Live, order: Order) -> str | None:
    """Return why an ended job does not go again; None = it does. Force lets it go out of order.

    One that goes has its idempotency key back.
    """
    if tables.lane_names[row.lane] not in tables.lanes:
        return "its lane was deleted"
    gone = 0 if order.force else _gone_behind(tables, row, order.called)
    if gone:
        return overtaken(gone)
    return _take_key_back(tables, row, order.now)


def _take_key_back(tables: Tables, row: Live, now: datetime) -> str | None:
    context, lane = tables.contexts.get(row.arrival), tables.lanes[tables.lane_names[row.lane]]
    if context is None or context.key is None:
        return None
    owned = owner(tables, lane, context.key, now)
    if owned is not None and owned.arrival != row.arrival:
        return key_taken(context.key, owned.job_id)
    tables.keys[lane.id, context.key] = Key(context.id, row.arrival, fingerprint(context.payload))
    return None


def _gone_behind(tables: Tables, row: Live, called: frozenset[int]) -> int:
    """Return how many jobs that stand behind this one in its group have been sent or are being sent.

    Every job on record counts, finished ones too; one that ended unsent (cancelled, expired) does not, nor
    does one that the same call replays: they go again in order.
    """
    if not Mode(row.mode).ordered:
        return 0
    ended = [e.job for table in (tables.dead, tables.history) for e in table.values()]
    others = (r for r in [*tables.live.values(), *ended] if r.lane == row.lane and r.grp == row.grp)
    gone = [r for r in others if place(r) > place(row) and went(r)]
    return sum(1 for r in gone if r.arrival not in called or not allowed(JobState(r.state), Move.REPLAY))


def _note(tables: Tables, before: Live, after: Live, order: Order) -> None:
    states = JobState(before.state).label, JobState(after.state).label
    row = Audit(order.now, after.arrival, after.lane, order.actor, order.verb, *states, order.reason)
    tables.audit.append(row)
