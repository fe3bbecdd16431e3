"""Edits: a version is added, the row names it."""

from penstock.domain.edits import Edit, Version, edited, facts, move_of, refusal, version
from penstock.domain.job import Audit
from penstock.domain.states import Effect, JobState, Move, Verb
from penstock.ports.store import Done
from penstock.stores.memory.operating import Order, replay_refusal
from penstock.stores.memory.tables import Tables


def edit(
    tables: Tables,
    job_id: str,
    wanted: Edit,
    order: Order,
    *,
    replay: bool,
) -> Done:
    """Edit one job, or say why not."""
    row = tables.row(tables.by_id.get(job_id, 0))
    if row is None:
        return Done(Effect.REFUSED, None, "no such job")
    state, context = JobState(row.state), tables.context(row)
    why = refusal(state, wanted, context, replay=replay)
    if why is None and move_of(state) is Move.REPLAY:
        why = replay_refusal(tables, row, order)
    if why is not None:
        return Done(Effect.REFUSED, state, why)
    now, actor, reason = order.now, order.actor, order.reason
    after = edited(row, wanted, now=now)
    if wanted.content and context is not None:
        made = version(row, context, wanted, at=now, actor=actor)
        tables.revisions.setdefault(row.arrival, []).append(made)
    ended = tables.dead.get(row.arrival)
    tables.put(after, now, ended.error if ended else None)
    texts = facts(row, context, wanted), facts(after, tables.context(after), wanted)
    tables.audit.append(Audit(now, row.arrival, row.lane, actor, Verb.EDIT, *texts, reason))
    return Done(Effect.NOW, JobState(after.state))


def payload_versions(tables: Tables, job_id: str) -> list[Version]:
    """Return what the caller said, and every edit."""
    arrival = tables.by_id.get(job_id, 0)
    context = tables.contexts.get(arrival)
    if context is None:
        return []
    said = Version(0, context.created_at, None, context.payload, context.headers, context.target)
    return [said, *tables.revisions.get(arrival, [])]
