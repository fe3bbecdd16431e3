"""Operators' verbs: carried out now, left as a request with the holder, or refused with the reason."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from penstock.domain.job import Audit, Live
from penstock.domain.ordering import SENT_OFFSET, Mode, Place, sequence_of
from penstock.domain.pauses import check_until
from penstock.domain.payloads import fingerprint
from penstock.domain.settlement import Landing, key_taken, moved
from penstock.domain.states import (
    CANCEL_STANDS,
    TERMINAL,
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
from penstock.stores.sql.database import Tx
from penstock.stores.sql.enqueue import Key, Owner, whose
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import Ended, arrivals_of, locate
from penstock.stores.sql.reports import REMOVE, wake_groups
from penstock.stores.sql.rows import AUDIT_COLUMNS
from penstock.stores.sql.settle import FORGET, requests_for, write

REQUEST = """
    ON CONFLICT (arrival) DO UPDATE SET verb = excluded.verb, actor = excluded.actor,
       reason = excluded.reason, at = excluded.at"""
UNBURY = "DELETE FROM penstock.dead WHERE arrival = ANY(:arrivals)"
UNWRITE = "DELETE FROM penstock.history WHERE arrival = ANY(:arrivals)"
# Taken in a statement of its own: what the next one sees of the group is then as new as the lock.
LOCK_GROUP = "SELECT 1 FROM penstock.groups WHERE lane = :lane AND grp = :grp FOR UPDATE"
EARLIEST_DEAD = """
    UPDATE penstock.groups SET
      dead_seq = (SELECT d.seq FROM penstock.dead d WHERE d.lane = :lane AND d.grp = :grp AND d.mode <> 0
                   ORDER BY d.seq, d.arrival LIMIT 1),
      dead_arrival = (SELECT d.arrival FROM penstock.dead d
                       WHERE d.lane = :lane AND d.grp = :grp AND d.mode <> 0
                       ORDER BY d.seq, d.arrival LIMIT 1)
     WHERE lane = :lane AND grp = :grp"""
_WENT = "j.lane = :lane AND j.grp = :grp AND (j.ord < 0 OR j.state = 10)"
_STAYS = ", ".join(str(state.value) for state in TERMINAL if not allowed(state, Move.REPLAY))
_MATE = """EXISTS (SELECT 1 FROM penstock.operation_jobs m
      WHERE m.operation = :operation AND m.lane = j.lane AND m.grp = j.grp
        AND m.seq = CASE WHEN j.ord < 0 THEN j.ord + 2147483648 ELSE j.ord END AND m.arrival = j.arrival)"""
WENT = tuple(
    f"SELECT j.ord, j.arrival, j.state FROM penstock.{where} AND {_WENT}{unless}"
    for where, unless in (
        ("jobs j WHERE j.holds", ""),
        ("jobs j WHERE NOT j.holds AND j.grp IS NOT NULL", ""),
        ("dead j WHERE j.mode <> 0", f" AND NOT {_MATE}"),
        ("history j WHERE j.grp IS NOT NULL", f" AND (j.state IN ({_STAYS}) OR NOT {_MATE})"),
    )
)
LANES = "SELECT id FROM penstock.lanes WHERE id = ANY(:lanes) ORDER BY id FOR UPDATE"
LANE = "SELECT id FROM penstock.lanes WHERE id = :lane FOR UPDATE"  # it stays until the job is back
KEY_OF = """
    SELECT id, key, payload FROM penstock.contexts
     WHERE keep = :keep AND arrival = :arrival AND key IS NOT NULL LIMIT 1"""
CLAIM_OF = "SELECT claim FROM penstock.groups WHERE lane = :lane AND grp = :grp AND claim IS NOT NULL"
END = """
    INSERT INTO penstock.pauses (scope, name, until, reason, actor, at)
    VALUES ('group', :name, :until, :reason, :actor, :at)"""
END_OVER = "DELETE FROM penstock.pauses WHERE scope = 'group' AND name = ANY(:names)"
OVER = (
    "SELECT name FROM penstock.pauses WHERE scope = 'group' AND until <= :now ORDER BY until, name LIMIT 1000"
)
PAUSE = "ON CONFLICT (lane, grp) DO UPDATE SET paused = excluded.paused"
assert SENT_OFFSET == 2147483648  # noqa: S101 - the number the hot statements spell out


@dataclass(slots=True)
class Plan:
    """What a verb on a batch of jobs comes to, before anything is written; but for `keys` taken back.

    `doomed` are jobs in flight that somebody asked to cancel.
    """

    doomed: frozenset[int] = frozenset()
    rows: list[Live] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    landings: list[Landing] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    audit: list[Audit] = field(default_factory=list)
    keys: dict[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who wants what, and why.

    `called` are all the jobs it is about; those of `operation` too, which may be very many. `gone` keeps what
    was found of a group: a slice is about a hundred jobs of one, and asks once.
    """

    verb: Verb
    actor: str
    reason: str
    force: bool
    now: datetime
    called: frozenset[int] = frozenset()
    operation: str | None = None
    gone: dict[tuple[int, str | None], list[Place]] = field(default_factory=dict)


def operate(tx: Tx, hot: HotPath, ids: Sequence[str], order: Order) -> list[Done]:
    """Carry out the verb on each job; one that is named twice is taken in turn."""
    answers: dict[int, Done] = {}
    order = replace(order, called=order.called | frozenset(arrivals_of(tx, ids).values()))
    waiting = list(enumerate(ids))
    while waiting:
        turn: dict[str, int] = {}
        for index, id_ in waiting:
            turn.setdefault(id_, index)
        done = _operate(tx, hot, list(turn), order)
        answers |= {turn[id_]: answer for id_, answer in done.items()}
        waiting = [entry for entry in waiting if entry[0] not in answers]
    return [answers[index] for index in range(len(ids))]


def _operate(tx: Tx, hot: HotPath, ids: Sequence[str], order: Order) -> dict[str, Done]:
    arrivals = arrivals_of(tx, ids)
    found = locate(tx, hot, arrivals.values(), lock=True)
    asked = requests_for(tx, list(arrivals.values())) if order.verb is Verb.HOLD else {}
    doomed = frozenset(arrival for arrival, verb in asked.items() if verb is Verb.CANCEL)
    plan, done = Plan(doomed), dict[str, Done]()
    for id_ in ids:
        arrival = arrivals.get(id_)
        row = None if arrival is None else found.row(arrival)
        if row is None:
            done[id_] = Done(Effect.REFUSED, None, "no such job")
        else:
            done[id_] = _decide(tx, hot, row, found.ended(row.arrival), order=order, plan=plan)
    carry_out(tx, hot, plan, order)
    return done


def pause_group(
    tx: Tx, hot: HotPath, *, lane: int, group: str, paused: bool, note: Audit, until: datetime | None = None
) -> None:
    """Stop or let go one group; a pause that ends by itself is noted for whoever leads."""
    check_until(until, tx.now)
    name = f"{lane}/{group}"
    tx.execute(END_OVER, names=[name])
    if until is not None:
        tx.execute(END, name=name, until=until, reason=note.reason, actor=note.actor, at=note.at)
    tx.insert("groups", ("lane", "grp", "paused"), [(lane, group, paused)], on_conflict=PAUSE)
    tx.insert("audit", AUDIT_COLUMNS, [note])
    hot.wake(tx, lane, [group])


def resume_over(tx: Tx, hot: HotPath) -> None:
    """Let groups go whose pause is over, a thousand at a time; their lane may be gone."""
    names = [name for (name,) in tx.fetch(OVER, now=tx.now)]
    if not names:
        return
    tx.execute(END_OVER, names=names)
    over = dict[int, list[str]]()
    for lane, _, group in sorted(name.partition("/") for name in names):
        over.setdefault(int(lane), []).append(group)
    for (lane,) in tx.fetch(LANES, lanes=list(over)):
        groups, why = over[lane], "its time is over"
        notes = [Audit(tx.now, None, lane, "leader", "resume_group", None, group, why) for group in groups]
        rows = [(lane, group, False) for group in groups]
        tx.insert("groups", ("lane", "grp", "paused"), rows, on_conflict=PAUSE)
        tx.insert("audit", AUDIT_COLUMNS, notes)
        hot.wake(tx, lane, groups)


def _decide(tx: Tx, hot: HotPath, row: Live, ended: Ended | None, *, order: Order, plan: Plan) -> Done:
    state, verb = JobState(row.state), order.verb
    if verb is Verb.EDIT:
        return Done(Effect.REFUSED, state, "edits need the new values")
    what = answer(verb, state, force=order.force)
    if what.effect is Effect.REFUSED:
        return Done(Effect.REFUSED, state, does_nothing(verb, state))
    if what.effect is Effect.REQUESTED or what.move is None:
        if row.arrival in plan.doomed:
            return Done(Effect.REFUSED, state, CANCEL_STANDS)
        plan.requests.append(row.arrival)
        plan.audit.append(_note(row, row, order))
        return Done(Effect.REQUESTED, state, "its holder is asked")
    if what.move is Move.REPLAY and (why := replay_refusal(tx, hot, row, order, plan.keys)):
        return Done(Effect.REFUSED, state, why)
    after = moved(row, verb, what.move, now=order.now)
    (plan.rows.append(row) if ended is None else plan.ended.append(ended))
    plan.landings.append(Landing(after, error=ended.error if ended else None))
    plan.audit.append(_note(row, after, order))
    return Done(Effect.NOW, JobState(after.state))


def carry_out(tx: Tx, hot: HotPath, plan: Plan, order: Order) -> None:
    """Write a plan."""
    before = Counter((job.lane, int(job.state)) for job in [*plan.rows, *(end.job for end in plan.ended)])
    touched = [*plan.rows, *(end.job for end in plan.ended)]
    if plan.rows:
        tx.execute(REMOVE, arrivals=[row.arrival for row in plan.rows])
    if plan.ended:
        arrivals = [end.job.arrival for end in plan.ended]
        tx.execute(UNBURY, arrivals=arrivals)
        tx.execute(UNWRITE, arrivals=arrivals)
    if plan.landings:
        write(tx, hot, plan.landings, before=before, requests={}, now=order.now)
        tx.execute(FORGET, arrivals=[job.arrival for job in touched])
        freed = {(end.job.lane, end.job.grp) for end in plan.ended if end.job.grp is not None}
        for lane, group in sorted(freed):
            tx.fetch(LOCK_GROUP, lane=lane, grp=group)
            tx.execute(EARLIEST_DEAD, lane=lane, grp=group)
        wake_groups(tx, hot, touched)
    rows = [(arrival, order.verb, order.actor, order.reason, order.now) for arrival in plan.requests]
    tx.insert("requests", ("arrival", "verb", "actor", "reason", "at"), rows, on_conflict=REQUEST)
    tx.insert("audit", AUDIT_COLUMNS, plan.audit)


def replay_refusal(tx: Tx, hot: HotPath, row: Live, order: Order, keys: dict[Key, str]) -> str | None:
    """Return why an ended job does not go again; None = it does. Force lets it go out of order.

    One that goes has its idempotency key back; `keys` are those that this call gave back before.
    """
    if not tx.fetch(LANE, lane=row.lane):
        return "its lane was deleted"
    gone = 0 if order.force else gone_behind(tx, hot, row, order)
    if gone:
        return overtaken(gone)
    return _take_key_back(tx, row, keys)


def _take_key_back(tx: Tx, row: Live, keys: dict[Key, str]) -> str | None:
    for id_, name, payload in tx.fetch(KEY_OF, keep=row.keep, arrival=row.arrival):
        key = (row.lane, name)
        owner = keys[key] if key in keys else whose(tx, {key: Owner(id_, fingerprint(payload))})[key].id
        if owner != id_:
            return key_taken(name, owner)
        keys[key] = id_
    return None


def gone_behind(tx: Tx, hot: HotPath, row: Live, order: Order) -> int:
    """Return how many jobs behind this one in its group were sent, or are being sent.

    One that the same call or operation replays does not count: they go again in order.
    """
    if not Mode(row.mode).ordered:
        return 0
    group = (row.lane, row.grp)
    if group not in order.gone:
        order.gone[group] = sorted(_went(tx, hot, row, order))
    places = order.gone[group]
    return len(places) - bisect_right(places, Place(sequence_of(row.ord), row.arrival))


def _went(tx: Tx, hot: HotPath, row: Live, order: Order) -> set[Place]:
    """Return the jobs of a group that were sent and do not go again, wherever they stand."""
    params = {"lane": row.lane, "grp": row.grp, "operation": order.operation or ""}
    tx.fetch(LOCK_GROUP, **params)  # nobody claims of it until the replay is written or refused
    went = {
        Place(sequence_of(ord_), arrival)
        for sql in WENT
        for ord_, arrival, state in tx.fetch(sql, **params)
        if arrival not in order.called or not allowed(JobState(state), Move.REPLAY)
    }
    for (epoch,) in tx.fetch(CLAIM_OF, **params):
        claim = hot.claim_row(tx, epoch, lock=False)
        jobs = claim.open_jobs() if claim is not None else []
        went |= {Place(sequence_of(job.ord), job.arrival) for job in jobs if job.grp == row.grp}
    return went


def _note(before: Live, after: Live, order: Order) -> Audit:
    return Audit(
        order.now,
        after.arrival,
        after.lane,
        order.actor,
        order.verb,
        JobState(before.state).label,
        JobState(after.state).label,
        order.reason,
    )
