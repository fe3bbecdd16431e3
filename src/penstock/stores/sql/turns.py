"""Whose turn it is: fair shares over tenants, at a cost that depends on the batch and not on the backlog.

The tenants of a lane that have something pending stand in a circle; jobs without a tenant are one tenant,
at its start. A claim visits at most `VISITS` of them and takes the same quota of the oldest from each that
has something due, as far as it wants jobs; the next claim goes on where this one stopped. What is left of a
batch goes to the oldest of all, so a tenant the walk has not come to yet waits only while the lane is
saturated.
"""

from collections.abc import Callable
from typing import Final

VISITS: Final = 64
Walk = Callable[[str, int], list[tuple[str, bool]]]


class Turns:
    """Where each lane's round goes on; lost with the process, which harms nobody."""

    def __init__(self) -> None:
        self._after: dict[tuple[str, int], str | None] = {}

    def round(
        self, key: tuple[str, int], *, limit: int, walk: Walk, nobody: Callable[[], bool]
    ) -> list[str | None] | None:
        """Return the tenants to serve now, among them None for jobs without one; None = nobody has a tenant.

        `walk(after, n)` returns the next n tenants behind `after` with whether they have something due. Where
        none of those visited has, there is nobody to serve, but others may wait behind them.
        """
        after = self._after.get(key)
        ahead = walk(after or "", VISITS)
        places = VISITS - len(ahead)
        behind = walk("", places) if after is not None and places else []
        wrapped = [entry for entry in behind if entry[0] <= (after or "")]
        if not ahead and not wrapped:
            self._after.pop(key, None)
            return None
        start = [(None, True)] if nobody() else []
        circle = [*start, *ahead] if after is None else [*ahead, *start, *wrapped]
        ready = [tenant for tenant, due in circle if due]
        served = ready[:limit]
        closed = len(wrapped) < places  # it has been all around
        if len(served) < len(ready):
            self._after[key] = served[-1] or ""
        else:
            self._after[key] = None if closed else (wrapped or ahead)[-1][0]
        return served
