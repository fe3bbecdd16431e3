"""Where things stand (`ports/insight.py`) in a SQL database."""

from datetime import timedelta
from typing import Final

from penstock.domain.groups import MOST, Group
from penstock.domain.job import Attempt, Audit, AuditPage, Job, Live
from penstock.domain.ordering import Place, sequence_of
from penstock.domain.pauses import Pause
from penstock.domain.standing import Neighbour, NodeRow, Standing, holder_name, stuck_since
from penstock.domain.states import IN_FLIGHT, LIVE, JobState, Verb
from penstock.ports.insight import LEADER, GroupPage
from penstock.stores.sql import audits, grouplist, pausing
from penstock.stores.sql.database import Database, Tx, one
from penstock.stores.sql.grouplist import LAST_AUDIT, PAUSED_BY, TRIED
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import GROUP, HEAD, Found, arrivals_of, attempt_of, jobs_of, locate

LATELY: Final = timedelta(hours=1)
# Those before it by place; how far into a long group it is, is nobody's business beyond the first thousand.
BEFORE: Final = """
    SELECT count(*) FROM (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_group
      WHERE lane = :lane AND grp = :grp AND holds AND (ord, arrival) < (:ord, :arrival)
      ORDER BY lane, grp, ord, arrival LIMIT :most) q"""
# Those of its lane that are due before it: its place, where nobody has a tenant or an order to keep.
TURN: Final = """
    SELECT count(*) FROM (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_due
      WHERE lane = :lane AND mode = 0 AND state = 1 AND tenant IS NULL
        AND (due_at, arrival) < (:due, :arrival) ORDER BY lane, due_at, arrival LIMIT :most) q"""
SHARING: Final = """
    SELECT (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_tenant
             WHERE lane = :lane AND mode = 0 AND state = 1 AND tenant IS NOT NULL
             ORDER BY lane, tenant, due_at, arrival LIMIT 1),
           (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_group
             WHERE lane = :lane AND holds ORDER BY lane, grp, ord, arrival LIMIT 1)"""
REQUEST: Final = "SELECT verb, actor, at, reason FROM penstock.requests WHERE arrival = :arrival"
NODE: Final = "SELECT name FROM penstock.nodes WHERE id = :node"
NODES: Final = """
    SELECT id, name, version, started_at, seen_at, note FROM penstock.nodes INDEXED BY penstock.nodes_seen
     WHERE seen_at >= :since ORDER BY seen_at DESC LIMIT :most"""
LEADS: Final = "SELECT holder FROM penstock.leases WHERE name = :role AND until > now()"


class InsightPart:
    """Where things stand; `SqlStore` brings the database and the hot path."""

    __slots__ = ()
    db: Database
    hot: HotPath

    def standing(self, id: str) -> Standing | None:  # noqa: A002
        """Return what is known of why a job is where it is."""
        return self.db.snapshot(lambda tx: _standing(tx, self.hot, id))

    def list_groups(
        self,
        *,
        lane: str | None = None,
        group: str | None = None,
        blocked: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> GroupPage:
        """Return groups by lane and name."""
        wanted = grouplist.Wanted(lane=lane, group=group, blocked=blocked, limit=limit, after=after)
        return self.db.snapshot(lambda tx: grouplist.list_groups(tx, self.hot, wanted))

    def audit_log(
        self, *, lane: str | None = None, people: bool = False, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return audit rows, newest first."""
        return self.db.snapshot(lambda tx: audits.audit_log(tx, lane, limit, after, people=people))

    def nodes(self) -> list[NodeRow]:
        """Return the nodes seen within the last hour, newest first."""
        return sorted(self.db.read(_nodes), key=lambda node: node.id, reverse=True)

    def drain_node(self, node: int, *, draining: bool, actor: str, reason: str) -> Pause | None:
        """Tell a node to claim nothing more, or to go on."""

        def work(tx: Tx) -> Pause | None:
            wanted = Pause(actor, reason, tx.now) if draining else None
            return pausing.drain(tx, node, wanted, actor=actor, reason=reason)

        return self.db.write(work)

    def draining(self, node: int) -> Pause | None:
        """Return who told the node to claim nothing more."""
        return self.db.read(lambda tx: pausing.pauses(tx, pausing.NODE)).get(str(node))

    def leader(self) -> int | None:
        """Return the node that leads now."""
        row = one(self.db.look(lambda tx: tx.fetch(LEADS, role=LEADER)))
        return None if row is None else row[0]


def _standing(tx: Tx, hot: HotPath, id_: str) -> Standing | None:
    found = locate(tx, hot, arrivals_of(tx, [id_]).values(), lock=False)
    for job in _jobs(tx, found):
        row = job.live
        held = found.claimed.get(row.arrival)
        standing = Standing(
            tx.now,
            job,
            last=_last(tx, LAST_AUDIT, arrival=row.arrival),
            tried=_tried(tx, row),
            lease_until=None if held is None else held.claim.lease_until,
            holder=None if row.node is None else _holder(tx, row.node),
        )
        if job.state not in LIVE:
            return standing
        standing = _in_turn(tx, _asked(tx, standing))
        return _in_group(tx, hot, standing) if row.grp is not None and row.holds else standing
    return None


def _asked(tx: Tx, standing: Standing) -> Standing:
    """Add what an operator asked of the job's holder."""
    for verb, actor, at, why in tx.fetch(REQUEST, arrival=standing.job.live.arrival):
        return standing._replace(request=Verb(verb), asked_by=actor, asked_at=tx.time(at), asked_why=why)
    return standing


def _in_turn(tx: Tx, standing: Standing) -> Standing:
    """Add how many of its lane go before a job that keeps no order."""
    row = standing.job.live
    due = standing.job.state is JobState.PENDING and row.due_at <= tx.now
    if not due or row.mode or row.tenant is not None or any(tx.fetch(SHARING, lane=row.lane)[0]):
        return standing
    where = {"lane": row.lane, "due": row.due_at, "arrival": row.arrival}
    turn: int = tx.fetch(TURN, **where, most=MOST + 1)[0][0]
    return standing if turn > MOST else standing._replace(turn=turn)


def _tried(tx: Tx, row: Live) -> Attempt | None:
    """Return the last attempt that did not succeed."""
    for found in tx.fetch_each(TRIED, {"keep": [row.keep], "arrival": [row.arrival]}):
        return attempt_of(tx, found)
    return None


def _in_group(tx: Tx, hot: HotPath, standing: Standing) -> Standing:
    """Add how a live job that keeps its place in a group stands there."""
    row = standing.job.live
    where = {"lane": row.lane, "grp": row.grp}
    epoch, paused, dead_seq, dead_arrival = one(tx.fetch(GROUP, **where)) or (None, False, None, None)
    claim = None if epoch is None else hot.claim_row(tx, epoch, lock=False)
    claimed = [job for job in claim.open_jobs() if job.grp == row.grp] if claim is not None else []
    heads = [tx.live(head) for head in tx.fetch(HEAD, **where)]
    dead = None if dead_arrival is None else Place(dead_seq, dead_arrival)
    group = Group(claimed, heads[0] if heads else None, dead, paused=bool(paused))
    standing = standing._replace(
        group_paused=group.paused, group_pause=_last(tx, PAUSED_BY, **where) if group.paused else None
    )
    if standing.job.state in IN_FLIGHT:
        return standing
    before: int = tx.fetch(BEFORE, **where, ord=row.ord, arrival=row.arrival, most=MOST)[0][0]
    return standing._replace(
        ahead=None if group.waits_for in (None, row.arrival) else _neighbour(tx, hot, group.waits_for or 0),
        before=min(MOST, before + len(claimed)),
    )


def _neighbour(tx: Tx, hot: HotPath, arrival: int) -> Neighbour | None:
    for job in _jobs(tx, locate(tx, hot, [arrival], lock=False)):
        row = job.live
        since = stuck_since(job, _last(tx, LAST_AUDIT, arrival=row.arrival), _tried(tx, row))
        return Neighbour(job.id, job.state, sequence_of(row.ord), row.due_at, row.reason, job.error, since)
    return None


def _jobs(tx: Tx, found: Found) -> list[Job]:
    ended = found.dead | found.history
    rows = [*found.live.values(), *(claim.shown(job) for job, claim in found.claimed.values())]
    return jobs_of(tx, [*rows, *(end.job for end in ended.values())], ended)


def _last(tx: Tx, sql: str, **where: object) -> Audit | None:
    """Return the last audit row about something."""
    rows = tx.fetch_each(sql, {name: [value] for name, value in where.items()})
    return Audit._make([tx.time(rows[0][0]), *rows[0][1:]]) if rows else None


def _holder(tx: Tx, node: int) -> str:
    row = one(tx.fetch(NODE, node=node))
    return holder_name(node, None if row is None else row[0])


def _nodes(tx: Tx) -> list[NodeRow]:
    rows = tx.fetch(NODES, since=tx.now - LATELY, most=MOST)
    drains = pausing.pauses(tx, pausing.NODE)
    return [
        NodeRow._make([*row[:3], tx.time(row[3]), tx.time(row[4]), row[5], drains.get(str(row[0]))])
        for row in rows
    ]
