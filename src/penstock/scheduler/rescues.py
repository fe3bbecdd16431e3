"""What a node recovered lately: it stays in its note for a while, so that people notice."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from penstock.ports.sink import RUNNING

LATELY_S: Final = 900.0
MOST: Final = 1000  # that are summed up
LANES: Final = 5  # that are named


class Rescue(NamedTuple):
    """Jobs of a lane that a node or an executor had left, by fate; when, in monotonic seconds."""

    at: float
    lane: str
    fates: Mapping[str, int]


@dataclass(slots=True)
class Rescues:
    """The last ones of this node."""

    found: deque[Rescue] = field(default_factory=lambda: deque(maxlen=MOST))

    def note(self, lane: str, fates: Mapping[str, int], now: float) -> None:
        """Remember what was recovered; an executor that is still at work was only asked."""
        left = {fate: jobs for fate, jobs in fates.items() if fate != RUNNING}
        if left:
            self.found.append(Rescue(now, lane, left))

    def told(self, now: float, here: datetime) -> dict[str, object]:
        """Return what the node's note says of it, at this time of ours and of the store."""
        while self.found and self.found[0].at <= now - LATELY_S:
            self.found.popleft()
        if not self.found:
            return {}
        fates: Counter[str] = Counter()
        for rescue in self.found:
            fates.update(rescue.fates)
        lanes = list(dict.fromkeys(rescue.lane for rescue in reversed(self.found)))[:LANES]
        at = (here - timedelta(seconds=now - self.found[-1].at)).isoformat(timespec="seconds")
        return {"recovered": {"at": at, "lanes": lanes, "fates": fates}}
