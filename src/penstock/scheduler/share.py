"""What one node holds of one limit: tokens and slots, who waits for them, and how they are divided."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.domain.shares import divide
from penstock.ports.flow import Limit

TTL: Final = timedelta(seconds=5)
IDLE_S: Final = 1.0
USELESS_S: Final = 0.3
UNLIMITED: Final = 2**31 - 1


class Name(NamedTuple):
    """What tells limits apart whatever their settings are now."""

    scope: str
    name: str
    key: str


@dataclass(slots=True)
class Share:
    """What this node holds of one limit."""

    limit: Limit
    tokens: int = 0
    spent: int = 0
    slots: int = 0
    busy: int = 0
    handed: int = 0
    until: float = 0.0
    wants: dict[tuple[str, int], int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    allowed: dict[str, int] = field(default_factory=dict)
    owed: dict[str, float] = field(default_factory=dict)
    next_token: float = 0.0
    asked: int = 0
    void: bool = False
    quiet_since: float | None = None
    useless_since: float | None = None

    def free(self, now: float) -> int:
        """Return how many jobs may go now."""
        if now >= self.until:
            return 0
        tokens = self.tokens if self.limit.rate is not None else UNLIMITED
        slots = self.slots - self.busy if self.limit.max_in_flight is not None else UNLIMITED
        return max(0, min(tokens, slots))

    def wanted(self) -> int:
        """Return how many jobs wait for this limit."""
        return sum(self.wants.values())

    def stale(self, now: float) -> bool:
        """Say whether a lease that is in use should be renewed."""
        return self.busy > 0 and now > self.until - TTL.total_seconds() / 2

    def idle(self, now: float) -> bool:
        """Say whether nobody has used or wanted it for a while."""
        if self.busy or self.wants:
            self.quiet_since = None
        elif self.quiet_since is None:
            self.quiet_since = now
        return self.quiet_since is not None and now - self.quiet_since >= IDLE_S

    def useless(self, now: float) -> bool:
        """Say whether jobs want it, and it was there for a while without being enough for any of them."""
        if not self.wants or not (self.tokens or self.slots > self.busy):
            self.useless_since = None
        elif self.useless_since is None:
            self.useless_since = now
        return self.useless_since is not None and now - self.useless_since >= USELESS_S

    def share_out(self, now: float) -> None:
        """Divide what there is among the lanes that wait."""
        lanes: dict[str, int] = {}
        for (lane, _), number in self.wants.items():
            lanes[lane] = lanes.get(lane, 0) + number
        free = self.free(now)
        several = len(lanes) > 1
        self.allowed = divide(free, lanes, self.weights, self.owed) if several else {}

    def allows(self, lane: str, now: float) -> int:
        """Return how many more jobs of the lane may go now."""
        free = self.free(now)
        return min(free, self.allowed.get(lane, 0)) if self.allowed else free

    def take(self, lane: str, jobs: int) -> None:
        """Take what so many jobs need."""
        if self.limit.rate is not None:
            self.tokens -= jobs
            self.spent += jobs
        self.busy += jobs
        self.useless_since = None
        if self.allowed:
            self.allowed[lane] = self.allowed.get(lane, 0) - jobs
