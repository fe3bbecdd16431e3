"""The part of a store that tells people where things stand: why a job waits, which groups are stuck.

A part of `Store` (ports/store.py). Nothing here scans: counts are capped, lists go by keyset.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from penstock.domain.groups import GroupRow
from penstock.domain.pauses import Pause
from penstock.domain.standing import Neighbour, NodeRow, Standing

__all__ = ["LEADER", "GroupPage", "GroupRow", "Insight", "Neighbour", "NodeRow", "Standing"]

LEADER: Final = "leader"  # the role whose holder leads


class GroupPage(NamedTuple):
    """Some groups; `next` is where the following page begins, None = that was the last."""

    groups: Sequence[GroupRow]
    next: str | None


class Insight(Protocol):
    """Where things stand."""

    def standing(self, id: str) -> Standing | None:  # noqa: A002
        """Return what is known of why a job is where it is; None = no such job."""

    def list_groups(
        self,
        *,
        lane: str | None = None,
        group: str | None = None,
        blocked: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> GroupPage:
        """Return groups by lane and name: all, those of a name, those that are blocked. Raise InvalidCursor.

        A page may be short, even empty, and still have a next one: each looks at a bounded number of groups.
        """

    def nodes(self) -> list[NodeRow]:
        """Return the nodes seen within the last hour, newest first, a thousand at most."""

    def drain_node(self, node: int, *, draining: bool, actor: str, reason: str) -> Pause | None:
        """Tell a node to claim nothing more and to finish what it has, or to go on; audited. Raise NotFound.

        Return the drain in force. It is about this run of the process: started anew, it claims.
        """

    def draining(self, node: int) -> Pause | None:
        """Return who told the node to claim nothing more; None = nobody."""

    def leader(self) -> int | None:
        """Return the node that leads now."""
