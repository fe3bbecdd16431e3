"""Edits: a revision is added, the row names it, what the caller said stays as it is."""

from typing import Final

from penstock.domain.edits import Edit, Version, edited, facts, move_of, refusal, version
from penstock.domain.job import Audit, Context, Live
from penstock.domain.settlement import Landing
from penstock.domain.states import Effect, JobState, Move, Verb
from penstock.ports.store import Done
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import arrivals_of, contexts_of, known, locate
from penstock.stores.sql.verbs import Order, Plan, carry_out, replay_refusal

VERSIONS: Final = """
    SELECT revision, at, actor, payload, headers, target FROM penstock.revisions
     WHERE arrival = (SELECT arrival FROM penstock.contexts WHERE id = :id)
     UNION ALL
    SELECT 0, created_at, NULL, payload, headers, target FROM penstock.contexts WHERE id = :id"""
REVISED: Final = "SELECT DISTINCT arrival FROM penstock.revisions WHERE arrival >= :low AND arrival < :high"
FORGET: Final = "DELETE FROM penstock.revisions WHERE arrival = ANY(:arrivals)"


def edit(tx: Tx, hot: HotPath, id_: str, wanted: Edit, order: Order, *, replay: bool) -> Done:
    """Edit one job, or say why not."""
    arrival = arrivals_of(tx, [id_]).get(id_)
    found = locate(tx, hot, [] if arrival is None else [arrival], lock=True)
    row = None if arrival is None else found.row(arrival)
    if row is None:
        return Done(Effect.REFUSED, None, "no such job")
    state, context = JobState(row.state), contexts_of(tx, [row]).get(row.arrival)
    why = refusal(state, wanted, context, replay=replay)
    if why is None and move_of(state) is Move.REPLAY:
        why = replay_refusal(tx, hot, row, order, {})
    if why is not None:
        return Done(Effect.REFUSED, state, why)
    ended = found.ended(row.arrival)
    after = edited(row, wanted, now=order.now)
    texts = facts(row, context, wanted), facts(after, _revise(tx, row, context, wanted, order), wanted)
    plan = Plan(
        rows=[] if ended else [row],
        ended=[ended] if ended else [],
        landings=[Landing(after, error=ended.error if ended else None)],
        audit=[Audit(order.now, row.arrival, row.lane, order.actor, Verb.EDIT, *texts, order.reason)],
    )
    carry_out(tx, hot, plan, order)
    return Done(Effect.NOW, JobState(after.state))


def payload_versions(tx: Tx, id_: str) -> list[Version]:
    """Return what the caller said, and every edit."""
    rows = sorted(tx.fetch(VERSIONS, id=id_), key=lambda row: int(row[0]))
    return [Version._make([row[0], tx.time(row[1]), *row[2:]]) for row in rows]


def forget_revisions(tx: Tx, low: int, high: int) -> None:
    """Drop the revisions of jobs between two arrivals that are not known any more."""
    arrivals = [row[0] for row in tx.fetch(REVISED, low=low, high=high)]
    tx.execute(FORGET, arrivals=sorted(set(arrivals) - set(known(tx, arrivals))))


def _revise(tx: Tx, row: Live, context: Context | None, wanted: Edit, order: Order) -> Context | None:
    """Add a revision if the message changes; return what the job sends from now on."""
    if context is None or not wanted.content:
        return context
    made = version(row, context, wanted, at=order.now, actor=order.actor)
    tx.insert("revisions", ("arrival", *Version._fields), [(row.arrival, *made)])
    return context._replace(payload=made.payload, headers=made.headers, target=made.target)
