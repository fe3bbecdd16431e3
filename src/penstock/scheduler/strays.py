"""Jobs that name another pool than their lane's: they must not wait for it.

Of a lane whose pool lets few go no more is claimed than goes soon; the rest keeps its place in the store and
costs nothing. Jobs of other pools may stand among that. So now and then a whole batch is looked at, and goes
back to its place. Where strays were seen, or where there are pools that only jobs can name, all is claimed as
fast as it comes, and what cannot go comes again after what stands behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.domain.job import Claimed
from penstock.scheduler.plans import Plan

FIRST_SEARCH_S: Final = 5.0
LAST_SEARCH_S: Final = 60.0
REMEMBERED_S: Final = 600.0


@dataclass(slots=True)
class Strays:
    """What one node knows of those of one lane."""

    seen_at: float = float("-inf")
    searched_at: float = float("-inf")
    every: float = FIRST_SEARCH_S

    def about(self, now: float) -> bool:
        """Say whether some were seen lately."""
        return now - self.seen_at < REMEMBERED_S

    def due(self, now: float) -> bool:
        """Say whether it is time to look at a whole batch."""
        return now - self.searched_at >= self.every

    def learn(self, plan: Plan, jobs: Sequence[Claimed], now: float, *, line: int) -> None:
        """Look at what was claimed; `line` is how many of a lane without strays would have been."""
        if any(map(plan.strays, jobs)):
            self.seen_at, self.every = now, FIRST_SEARCH_S
        if len(jobs) > line:
            self.searched_at, self.every = now, min(2 * self.every, LAST_SEARCH_S)
