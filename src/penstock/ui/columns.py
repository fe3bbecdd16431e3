"""Which columns a list of jobs shows: those that somebody chose, in the address of the page."""

from collections.abc import Mapping, Sequence
from typing import Final

COLUMNS: Final[Mapping[str, str]] = {
    "state": "State", "lane": "Lane", "group": "Group", "sequence": "Sequence", "due": "Due",
    "attempt": "Attempts", "why": "Reason, error", "created_at": "Enqueued", "tenant": "Tenant",
    "key": "Key", "mode": "Mode", "target": "Target", "pool": "Pool", "entity": "Entity",
    "correlation": "Correlation", "receipt": "Message", "node": "Node",
}  # fmt: skip
USUAL: Final = ("state", "lane", "group", "sequence", "due", "attempt", "why")
NUMBERS: Final = frozenset({"sequence", "attempt", "node"})


def chosen(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that were asked for, in their order on the page; of none, the usual ones."""
    wanted = {name for name in asked if name in COLUMNS}
    return tuple(name for name in COLUMNS if name in wanted) or USUAL


def said(columns: Sequence[str]) -> tuple[str, ...]:
    """Return what the address says of them: nothing of the usual ones."""
    return () if tuple(columns) == USUAL else tuple(columns)


def rare(columns: Sequence[str]) -> bool:
    """Say whether some of them are not usual: they show facts of a job that take a while to gather."""
    return not set(columns) <= set(USUAL)
