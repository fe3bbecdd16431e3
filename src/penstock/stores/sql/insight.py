"""Where things stand (`ports/insight.py`) in a SQL database."""

from datetime import timedelta
from typing import Final

from penstock.domain.groups import MOST
from penstock.domain.job import AuditPage
from penstock.domain.pauses import Pause
from penstock.domain.standing import NodeRow, Standing
from penstock.ports.insight import LEADER, GroupPage
from penstock.stores.sql import audits, grouplist, pausing, standing
from penstock.stores.sql.database import Database, Tx, one
from penstock.stores.sql.hotpath import HotPath

LATELY: Final = timedelta(hours=1)
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
        return self.db.snapshot(lambda tx: standing.standing(tx, self.hot, id))

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


def _nodes(tx: Tx) -> list[NodeRow]:
    rows = tx.fetch(NODES, since=tx.now - LATELY, most=MOST)
    drains = pausing.pauses(tx, pausing.NODE)
    return [
        NodeRow._make([*row[:3], tx.time(row[3]), tx.time(row[4]), row[5], drains.get(str(row[0]))])
        for row in rows
    ]
