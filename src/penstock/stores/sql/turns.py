"""Whose turn it is: fair shares over tenants, at a cost that depends on the batch and not on the backlog.

The tenants of a lane that have something pending stand in a circle; jobs without a tenant are one tenant,
at its start. A claim visits at most `VISITS` of them, and no more than it wants jobs, and takes the same
quota of the oldest from each; the next claim goes on where this one stopped. What is left of a batch goes
to the oldest of all, so a tenant the walk has not come to yet waits only while the lane is saturated.
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
    ) -> list[str | None]:
        """Return the tenants to serve now (None = jobs without one); empty when nobody has a tenant.

        `walk(after, n)` returns the next n tenants behind `after` with whether they have something due.
        """
        after = self._after.get(key)
        ahead = walk(after or "", VISITS)
        behind = walk("", VISITS - len(ahead)) if after is not None and len(ahead) < VISITS else []
        wrapped = [entry for entry in behind if entry[0] <= (after or "")]
        if not ahead and not wrapped:
            self._after.pop(key, None)
            return []
        start = [(None, True)] if nobody() else []
        circle = [*start, *ahead] if after is None else [*ahead, *start, *wrapped]
        ready = [tenant for tenant, due in circle if due]
        served = ready[:limit]
        closed = len(served) == len(ready) and len(ahead) < VISITS
        self._after[key] = None if closed or not served else served[-1] or ""
        return served
