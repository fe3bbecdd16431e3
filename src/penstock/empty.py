"""What may be wrong with filters that find nothing: a lane nobody made, a group nobody named."""

from penstock.domain.filter_line import quoted
from penstock.domain.filters import MAX_PAGE, JobQuery
from penstock.domain.names import near, unknown
from penstock.errors import Forbidden
from penstock.ports.store import Store


def why_empty(store: Store, query: JobQuery) -> str | None:
    """Return a sentence for a name that leads nowhere, with those it may be meant for; None = none does."""
    if query.lane is not None:
        lanes = store.lanes()
        if query.lane not in lanes:
            return unknown("lane", query.lane, lanes)
    if query.group is None:
        return None
    groups = _groups(store, query.lane)
    if query.group in groups:
        return None
    close = near(query.group, groups)
    meant = f"; did you mean {', '.join(close)}?" if close else ""
    return (
        f"no ordered job of group {query.group}{meant}; jobs of mode immediate have no place in a group,"
        f" the filter group~{quoted(query.group)} finds those too"
    )


def _groups(store: Store, lane: str | None) -> list[str]:
    """Return groups that have something to be done, as many as a page has, for those who may see them."""
    try:
        return [row.group for row in store.list_groups(lane=lane, limit=MAX_PAGE).groups]
    except Forbidden:
        return []
