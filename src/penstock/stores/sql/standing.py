"""Why a job is where it is: the job itself, all that is known about it, and those around it in its group.

However much is asked, it is a few statements: the job, the facts, its group's claim, the names of the others.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from penstock.domain.groups import MOST, Group
from penstock.domain.job import Attempt, Audit, Job, Live
from penstock.domain.ordering import Place, sequence_of
from penstock.domain.standing import AROUND, Neighbour, Standing, holder_name, nearest, stuck_since
from penstock.domain.states import IN_FLIGHT, JobState, Verb
from penstock.domain.states import LIVE as LIVE_STATES
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.grouplist import LAST_AUDIT, PAUSED_BY, TRIED
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import find
from penstock.stores.sql.rows import LIVE, LIVE_COLUMNS
from penstock.stores.sql.timelines import attempt_of, audit_of

# Those before it by place; how far into a long group it is, is nobody's business beyond the first thousand.
_BEFORE: Final = """
    SELECT count(*) FROM (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_group
      WHERE lane = :lane AND grp = :grp AND holds AND (ord, arrival) < (:ord, :arrival)
      ORDER BY lane, grp, ord, arrival LIMIT :before) q"""
# Those of its lane that are due before it: its place, where nobody has a tenant or an order to keep. Before a
# job that is not due yet come those of its own moment: what is due sooner will have gone by then.
_TURN: Final = """
    SELECT count(*) FROM (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_due
      WHERE lane = :lane AND mode = 0 AND state = 1 AND tenant IS NULL
        AND due_at >= :herd AND (due_at, arrival) < (:due, :arrival)
      ORDER BY lane, due_at, arrival LIMIT :turn) q"""
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TENANTS: Final = """
    SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_tenant
     WHERE lane = :lane AND mode = 0 AND state = 1 AND tenant IS NOT NULL
     ORDER BY lane, tenant, due_at, arrival LIMIT 1"""
_ORDERED: Final = """
    SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_group
     WHERE lane = :lane AND holds ORDER BY lane, grp, ord, arrival LIMIT 1"""
# Of its group: the first job, the dead one in the way, those next to it that were not sent or are dead.
_NEVER: Final = "CAST(NULL AS timestamptz)"
_LIVE_MATE: Final = f"SELECT {LIVE}, {_NEVER} AS finished_at, NULL AS error FROM penstock.jobs"
_GONE: Final = {"open": "false", "since": _NEVER, "holds": "false", "deadline": _NEVER, "slot": "NULL"}
_AS_LIVE: Final = ", ".join(f"{_GONE.get(column, column)} AS {column}" for column in LIVE_COLUMNS)
_DEAD_MATE: Final = f"SELECT {_AS_LIVE}, finished_at, error FROM penstock.dead"
_NEXT_LIVE: Final = """INDEXED BY penstock.jobs_group
    WHERE lane = :lane AND grp = :grp AND holds AND ord >= 0 AND (ord, arrival) {side} (:seq, :arrival)
    ORDER BY lane {way}, grp {way}, ord {way}, arrival {way} LIMIT :around"""
_NEXT_DEAD: Final = """INDEXED BY penstock.dead_group
    WHERE lane = :lane AND grp = :grp AND mode <> 0 AND (seq, arrival) {side} (:seq, :arrival)
    ORDER BY lane {way}, grp {way}, seq {way}, arrival {way} LIMIT :around"""
_HEAD: Final = """INDEXED BY penstock.jobs_group
    WHERE lane = :lane AND grp = :grp AND holds ORDER BY lane, grp, ord, arrival LIMIT 1"""
_IN_THE_WAY: Final = """
    WHERE arrival = (SELECT dead_arrival FROM penstock.groups WHERE lane = :lane AND grp = :grp) LIMIT 1"""
_BEHIND, _AHEAD = {"side": ">", "way": "ASC"}, {"side": "<", "way": "DESC"}
_MATES: Final = " UNION ALL ".join(
    f"SELECT {number} AS kind, m{number}.* FROM ({mate} {which}) m{number}"
    for number, (mate, which) in enumerate(
        (
            (_LIVE_MATE, _HEAD),
            (_DEAD_MATE, _IN_THE_WAY),
            (_LIVE_MATE, _NEXT_LIVE.format(**_AHEAD)),
            (_LIVE_MATE, _NEXT_LIVE.format(**_BEHIND)),
            (_DEAD_MATE, _NEXT_DEAD.format(**_AHEAD)),
            (_DEAD_MATE, _NEXT_DEAD.format(**_BEHIND)),
        )
    )
)
FACTS: Final = f"""
    SELECT n.name, q.verb, q.actor, q.at, q.reason, g.claim, g.paused, g.dead_seq, g.dead_arrival,
           ({_BEFORE}), CASE WHEN ({_TENANTS}) IS NULL AND ({_ORDERED}) IS NULL THEN ({_TURN}) END,
           e.until, a.*, p.*, t.*, m.*
      FROM (SELECT 1 AS one) o
      LEFT JOIN penstock.nodes n ON n.id = :node
      LEFT JOIN penstock.requests q ON q.arrival = :arrival
      LEFT JOIN penstock.groups g ON g.lane = :lane AND g.grp = :grp
      LEFT JOIN penstock.pauses e ON e.scope = 'group' AND e.name = :paused
      LEFT JOIN ({LAST_AUDIT}) a ON true
      LEFT JOIN ({PAUSED_BY}) p ON true
      LEFT JOIN ({TRIED}) t ON true
      LEFT JOIN ({_MATES}) m ON true"""
_HEAD_KIND: Final = 0
_PAUSE_ENDS: Final = 11
_NAMED: Final = _PAUSE_ENDS + 1
_LAST: Final = slice(_NAMED, _NAMED + len(Audit._fields))
_PAUSED: Final = slice(_LAST.stop, _LAST.stop + len(Audit._fields))
_TRIED: Final = slice(_PAUSED.stop, _PAUSED.stop + len(Attempt._fields))
_KIND: Final = _TRIED.stop
_MATE: Final = slice(_KIND + 1, _KIND + 1 + len(LIVE_COLUMNS))
# Who one of the others is, and since when it is what it is.
NAMES: Final = f"""
    SELECT :arrival, (SELECT c.id FROM penstock.contexts c WHERE c.keep = :keep AND c.arrival = :arrival),
           a.*, t.*
      FROM (SELECT 1 AS one) o LEFT JOIN ({LAST_AUDIT}) a ON true LEFT JOIN ({TRIED}) t ON true LIMIT 1"""


class Mate(NamedTuple):
    """Another job of the group; a dead one ended."""

    live: Live
    ended_at: datetime | None = None
    error: str | None = None


def standing(tx: Tx, hot: HotPath, id_: str) -> Standing | None:
    """Return what is known of why a job is where it is; all of it must be read on one snapshot."""
    job = find(tx, hot, [id_]).get(id_)
    if job is None:
        return None
    row = job.live
    facts = _facts(tx, job)
    first = facts[0]
    found = Standing(
        tx.now,
        job,
        last=audit_of(tx, first[_LAST]),
        tried=_tried(tx, first[_TRIED]),
        lease_until=row.deadline if job.state is JobState.CLAIMED else None,
        holder=None if row.node is None else holder_name(row.node, first[0]),
    )
    if job.state in LIVE_STATES:
        found = _in_turn(_asked(tx, found, first), first[10])
    return found if row.grp is None else _in_group(tx, hot, found, facts)


def _facts(tx: Tx, job: Job) -> list[Row]:
    """Return what is known of a job; what is not about its group is the same in every row."""
    row = job.live
    waits = job.state in LIVE_STATES - IN_FLIGHT and row.grp is not None and row.holds
    loose = job.state is JobState.PENDING and not row.mode and row.tenant is None
    return tx.fetch(
        FACTS,
        arrival=row.arrival,
        keep=row.keep,
        lane=row.lane,
        grp=row.grp,
        paused=f"{row.lane}/{row.grp}",
        node=row.node,
        ord=row.ord,
        seq=sequence_of(row.ord),
        due=row.due_at,
        herd=row.due_at if row.due_at > tx.now else LONG_AGO,
        before=MOST if waits else 0,
        turn=MOST + 1 if loose else 0,
        around=AROUND,
    )


def _tried(tx: Tx, row: Row) -> Attempt | None:
    return None if row[0] is None else attempt_of(tx, row)


def _asked(tx: Tx, found: Standing, facts: Row) -> Standing:
    """Add what an operator asked of the job's holder."""
    verb, actor, at, why = facts[1:5]
    if verb is None:
        return found
    return found._replace(request=Verb(verb), asked_by=actor, asked_at=tx.time(at), asked_why=why)


def _in_turn(found: Standing, turn: int | None) -> Standing:
    """Add how many of its lane go before a job that is due and keeps no order."""
    row = found.job.live
    loose = found.job.state is JobState.PENDING and not row.mode
    shares = row.tenant is not None or turn is None or turn > MOST
    return found if shares or not loose else found._replace(turn=turn)


def _in_group(tx: Tx, hot: HotPath, found: Standing, facts: list[Row]) -> Standing:
    """Add how a job stands in its group, and who is next to it."""
    job, row = found.job, found.job.live
    epoch, paused, dead_seq, dead_arrival, before = facts[0][5:10]
    claims = hot.claim_rows(tx, [] if epoch is None else [epoch])
    claimed = [each for claim in claims for each in claim.open_jobs() if each.grp == row.grp]
    mates = {each.arrival: Mate(each) for each in claimed}
    mates |= {each[_KIND + 1]: _mate(tx, each) for each in facts if each[_KIND] is not None}
    mates[row.arrival] = Mate(row, job.finished_at, job.error)
    heads = [tx.live(each[_MATE]) for each in facts if each[_KIND] == _HEAD_KIND]
    dead = None if dead_arrival is None else Place(dead_seq, dead_arrival)
    group = Group(claimed, heads[0] if heads else None, dead, paused=bool(paused))
    around = [each.arrival for each in nearest(row, [mate.live for mate in mates.values()])]
    waits_for = None if group.waits_for == row.arrival else group.waits_for
    known = _named(tx, [mates[arrival] for arrival in {*around, waits_for} if arrival in mates])
    found = found._replace(around=tuple(known[arrival] for arrival in around))
    if job.state not in LIVE_STATES or not row.holds:
        return found
    if group.paused:
        until = tx.time(facts[0][_PAUSE_ENDS])
        found = found._replace(
            group_paused=True, group_pause=audit_of(tx, facts[0][_PAUSED]), group_until=until
        )
    if job.state in IN_FLIGHT:
        return found
    return found._replace(
        ahead=None if waits_for is None else known.get(waits_for), before=min(MOST, before + len(claimed))
    )


def _mate(tx: Tx, facts: Row) -> Mate:
    ended_at, error = facts[_MATE.stop :]
    return Mate(tx.live(facts[_MATE]), tx.time(ended_at), error)


def _named(tx: Tx, mates: Sequence[Mate]) -> dict[int, Neighbour]:
    """Return other jobs as neighbours, by arrival."""
    each = {"keep": [mate.live.keep for mate in mates], "arrival": [mate.live.arrival for mate in mates]}
    named = {row[0]: row[1:] for row in tx.fetch_each(NAMES, each)}
    found = {}
    for live, ended_at, error in mates:
        id_, *rest = named[live.arrival]
        last = audit_of(tx, tuple(rest[: len(Audit._fields)]))
        tried = _tried(tx, tuple(rest[len(Audit._fields) :]))
        found[live.arrival] = Neighbour(
            id=f"#{live.arrival}" if id_ is None else id_,
            state=JobState(live.state),
            sequence=sequence_of(live.ord),
            due_at=live.due_at,
            reason=live.reason,
            error=error if ended_at is not None or tried is None else tried.error,
            since=stuck_since(live, ended_at, last, tried),
            tenant=live.tenant,
        )
    return found
