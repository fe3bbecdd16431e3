"""What a node is doing with the jobs it has claimed: whose call is under way, who waits for a limit.

Only nodes know, so they leave it in the store with their note; `explain` reads it there. Most calls are over
before anybody could ask: only those that take a while are told, the oldest first, and never many.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Final

from penstock.domain.job import Claimed

A_WHILE_S: Final = 0.5
MOST: Final = 50


@dataclass(slots=True)
class Air:
    """Since when, in monotonic seconds: calls by job, and what of each claim waits for its limits."""

    calls: dict[str, float] = field(default_factory=dict)
    waits: dict[int, dict[str, float]] = field(default_factory=dict)

    @contextmanager
    def calling(self, batch: Sequence[Claimed], now: float) -> Iterator[None]:
        """Note that a call for these jobs is under way as long as the block lasts."""
        ids = [claimed.context.id for claimed in batch if claimed.context is not None]
        self.calls.update(dict.fromkeys(ids, now))
        try:
            yield
        finally:
            for id_ in ids:
                self.calls.pop(id_, None)

    def wait(self, epoch: int, jobs: Iterable[Claimed], now: float) -> None:
        """Note which jobs of a claim wait for their limits; none = it waits no more."""
        before = self.waits.pop(epoch, {})
        ids = [claimed.context.id for claimed in jobs if claimed.context is not None]
        if ids:
            self.waits[epoch] = {id_: before.get(id_, now) for id_ in ids}

    def told(self, now: float, here: datetime) -> dict[str, dict[str, str]]:
        """Return what is worth telling, as it is written into the node's note."""
        calls = {id_: since for id_, since in self.calls.items() if now - since >= A_WHILE_S}
        waits = {id_: since for claim in self.waits.values() for id_, since in claim.items()}
        return {"calls": _oldest(calls, now, here), "waits": _oldest(waits, now, here)}


def _oldest(found: Mapping[str, float], now: float, here: datetime) -> dict[str, str]:
    oldest = nsmallest(MOST, found, key=lambda id_: (found[id_], id_))
    return {id_: (here - timedelta(seconds=now - found[id_])).isoformat(timespec="seconds") for id_ in oldest}
