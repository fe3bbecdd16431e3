"""What one node holds of one limit: tokens and slots, who waits for them, and how they are divided.

**The whole bucket.** Of a bucket with room for one token whoever holds that token holds all there is: while
it is out nothing is minted. So a node need not bring back what it spent. The token *grows* again here, as it
would in the store, and is spent again; no round trip comes between two calls. A node that has had its turn
gives the token back once it has grown.

**Slots.** A node holds some that are free, so that the next job need not wait for the store, and more as it
uses them. What is in use is never taken from it, even if that is too many (`surplus`): such a slot ends with
its job. Of slots that are `gone` the books have to hear, for they count them as this node's until then.
"""

import math
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

from penstock.domain.leases import trusted_until
from penstock.domain.rates import slice_size
from penstock.domain.shares import divide
from penstock.ports.flow import Grant, Limit, Need

TTL: Final = timedelta(seconds=5)
IDLE_S: Final = 1.0
USELESS_S: Final = 0.3
SOME: Final = 4  # a part of the slots that nobody misses
TURN_S: Final = 3.0  # of all nodes together
REST_S: Final = 0.03
LATEST_S: Final = 0.25
OTHERS_S: Final = 0.025
INSTANT_S: Final = 0.000_001  # what a clock does not tell apart
LATE_S: Final = 0.001  # by so much a timer fires too late; it is not lost
KEYED: Final = 4
QUICK_S: Final = 0.02  # a call of which nothing is known
UNLIMITED: Final = 2**31 - 1
NOBODY: Final = 0


class Name(NamedTuple):
    """What tells limits apart whatever their settings are now."""

    scope: str
    name: str
    key: str


class Reached(NamedTuple):
    """A limit that lets nobody go, and how many claimed jobs wait for it here.

    Its next token comes at that monotonic second, 0.0 = that depends on others; None = slots are missing.
    """

    next_token: float | None
    queue: int


@dataclass(slots=True)
class Share:
    """What this node holds of one limit."""

    limit: Limit
    tokens: int = 0
    spent: int = 0
    slots: int = 0
    busy: int = 0
    surplus: int = 0
    gone: int = 0
    lacks: int = 0
    short: bool = False
    short_since: float = 0.0
    used: int = 0
    used_at: float = 0.0
    until: float = 0.0
    wants: dict[tuple[str, int], int] = field(default_factory=dict)
    line: dict[tuple[str, int], int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    allowed: dict[str, int] = field(default_factory=dict)
    owed: dict[str, float] = field(default_factory=dict)
    next_token: float = 0.0
    asked: int = 0
    asked_at: float = 0.0
    took: int = 0
    void: bool = False
    quiet_since: float | None = None
    useless_since: float | None = None
    here: bool = False
    ripe: float = 0.0
    grows_at: float = 0.0
    came_at: float = 0.0
    nodes: int = 1
    rests_until: float = 0.0
    booked: float = 0.0
    freed_at: float = 0.0
    pace: float = 0.0

    @property
    def whole(self) -> float:
        """How many seconds the one token of the bucket takes to grow again; 0 = it does not grow here."""
        rate = self.limit.rate
        pace = 0.0 if rate is None or self.limit.burst > 1 else rate.per.total_seconds() / rate.count
        return pace if pace <= 1.0 else 0.0

    def grows(self, now: float) -> bool:
        """Say whether a token that was spent is growing again, as far as this node is trusted."""
        return self.here and self.grows_at > 0.0 and now < self.until and not self.void

    def has_all(self, now: float) -> bool:
        """Say whether the one token of the bucket is here, grown or growing."""
        return self.here and now < self.until and (self.tokens > 0 or self.grows(now))

    def regrow(self, now: float) -> bool:
        """Take the token that has grown again, if it has."""
        if not self.grows(now) or now < self.grows_at - INSTANT_S:
            return False
        self.ripe, self.grows_at = self.grows_at, 0.0
        self.tokens, self.spent = self.tokens + 1, self.spent - 1
        self.share_out(now)
        return True

    def come_or_gone(self, now: float, *, here: bool) -> None:
        """Note whether the one token of the bucket is here; if it came, its turn begins."""
        if here and not self.here:
            self.ripe = self.came_at = now
        if not (here and self.here):
            self.grows_at = 0.0
        self.here = here

    @property
    def turn_ends(self) -> float:
        """When another node may have the token; how many there are a node learns late."""
        return self.came_at + TURN_S / self.nodes

    def turn_over(self, now: float) -> bool:
        """Say whether the token is to go to another node, now that it is there."""
        return self.here and now >= self.turn_ends and self.tokens > 0

    def free(self, now: float) -> int:
        """Return how many jobs may go now."""
        if now >= self.until:
            return 0
        tokens = self.tokens if self.limit.rate is not None else UNLIMITED
        if self.turn_over(now):
            return 0
        return max(0, min(tokens, self.free_slots))

    @property
    def free_slots(self) -> int:
        """Return how many slots are free; of a limit that was lowered more may be held than it allows."""
        most = self.limit.max_in_flight
        return UNLIMITED if most is None else min(self.slots, most) - self.busy

    @property
    def fair(self) -> int:
        """How many slots there are for each node: its part."""
        most = self.limit.max_in_flight
        return UNLIMITED if most is None else math.ceil(most / self.nodes)

    def enough(self, now: float) -> int:
        """Return how many slots this node holds at most: of its part no more than it can use soon.

        Others may have come of which it does not know yet: they find some, and it gets more as it needs them.
        What is not its part it borrows for the jobs that wait here, or for the next ones of a lane.
        """
        most, some = self.limit.max_in_flight or 0, math.ceil((self.limit.max_in_flight or 0) / SOME)
        used = self.used if now - self.used_at <= IDLE_S else self.busy
        borrowed = min(most, self.busy + (self.waiting or (some if self.wants else 0)))
        return max(self.busy, min(self.fair, max(some, 2 * used)), borrowed)

    def ask(self, now: float) -> None:
        """Note that the store is asked for what is wanted.

        Never less than before within a round: what is wanted goes up and down while waiters look again.
        """
        self.asked, self.asked_at, self.took, self.gone = max(self.asked, self.wanted()), now, 0, 0

    def worth_asking(self, now: float) -> bool:
        """Say whether more is wanted than the store was asked for."""
        return self.wanted() > max(self.asked, self.free(now)) or now >= self.until

    def borrows(self, now: float) -> bool:
        """Say whether to ask if others lack the slots that are more than its part."""
        return self.slots > self.fair and self.over(now)

    def over(self, now: float) -> bool:
        """Say whether what was asked for is long ago: others may have given back what was missing then."""
        return now - self.asked_at >= LATEST_S

    def again_in(self, now: float) -> float:
        """Return how soon to ask again for slots: often at first, where nodes hand on the few there are."""
        return min(LATEST_S, max(OTHERS_S, (now - self.short_since) / 4)) if self.scarce else LATEST_S

    def to_spare(self, now: float, *, leaving: bool) -> bool:
        """Say whether it has slots that others may have a better use for."""
        enough = self.busy + self.wanted() if leaving or self.scarce else self.enough(now)
        return self.limit.max_in_flight is not None and self.slots > enough

    def wanted(self) -> int:
        """Return how many jobs wait for this limit."""
        return sum(self.wants.values())

    @property
    def waiting(self) -> int:
        """How many jobs that this node has wait for this limit."""
        return sum(jobs for (_, who), jobs in self.wants.items() if who != NOBODY)

    @property
    def slice(self) -> int:
        """How many tokens to ask for at a time."""
        limit = self.limit
        return slice_size(limit.rate, limit.burst, nodes=self.nodes, ttl=TTL) if limit.rate else 0

    def before(self, lane: str, who: int) -> int:
        """Return how many jobs of older callers of the lane stand in line."""
        return sum(number for (name, other), number in self.line.items() if name == lane and other < who)

    def older(self, who: int) -> int:
        """Return how many jobs of older callers wait for this limit, of whatever lane."""
        return sum(number for (_, other), number in self.wants.items() if NOBODY != other < who)

    def book(self, soonest: timedelta, longest: timedelta, *, now: float) -> timedelta:
        """Return how long a job is given back for: it comes after those that were given back before it."""
        rate = self.limit.rate
        token = rate.per.total_seconds() / rate.count if rate is not None else 0.0
        after = self.booked + max(token, self._slot_every(now))
        self.booked = min(max(after, now + soonest.total_seconds()), now + longest.total_seconds())
        return timedelta(seconds=self.booked - now)

    def patience(self, place: int, *, now: float) -> timedelta:
        """Return how long the `place`-th of the jobs that wait for a pool will wait, at least.

        Of a lane no more is claimed than its own limits let go soon: see `Limits.room`. Of one key of a pool
        no more wait here than have their turn soon: others stand behind them.
        """
        limit = self.limit
        if limit.scope != "pool":
            return timedelta(0)
        far = limit.key and limit.max_in_flight and place > KEYED * limit.max_in_flight
        slots = self.turn(place, now=now) if far else timedelta(0)
        if limit.rate is None:
            return slots
        return max(slots, limit.rate.per / limit.rate.count * max(0, place - limit.burst) * self.nodes)

    def turn(self, place: int, *, now: float) -> timedelta:
        """Return how long it takes until so many slots have become free here, as it went of late."""
        return timedelta(seconds=place * max(self._slot_every(now), QUICK_S))

    def _slot_every(self, now: float) -> float:
        """Return how long it takes until a slot is free, and the next one, as it went of late."""
        if self.limit.max_in_flight is None:
            return 0.0
        return max(self.pace, now - self.freed_at) if self.busy else self.pace

    def reached(self, now: float) -> Reached | None:
        """Return what is missing; None = nothing is.

        A node may have no slots though there are some: it gave them back because another limit kept its jobs.
        """
        most = self.limit.max_in_flight
        if most is not None and self.slots <= self.busy and (self.short or self.busy * self.nodes >= most):
            return Reached(None, self.waiting)
        if self.limit.rate is not None and self.tokens <= 0:
            return Reached(self.next_token if self.next_token > now else 0.0, self.waiting)
        return None

    def stale(self, now: float) -> bool:
        """Say whether a lease that is in use should be renewed."""
        return self.busy > 0 and now > self.until - TTL.total_seconds() / 2

    def granted(self, need: Need, grant: Grant, *, started: float, now: float) -> None:
        """Take in what the store answers to what was asked at `started`.

        Meanwhile tokens may have been spent and slots may have gone. Of those that are more than the limit
        allows only what is in use is kept, for as long as it is.
        """
        self.void = False
        self.spent = max(0, self.spent - need.spent)
        self.tokens = max(0, grant.tokens - self.spent)
        held, surplus = grant.slots - self.gone, max(0, grant.surplus - self.gone)
        self.slots = max(self.busy, held - surplus)
        self.surplus = max(0, surplus - max(0, held - self.slots))
        self.gone += max(0, held - self.slots)
        if not self.short:
            self.short_since = now
        self.short = grant.slots < need.slots
        self.lacks = max(0, min(need.slots, need.part) - grant.slots)
        self.until = trusted_until(started, TTL)
        self.come_or_gone(now, here=self.whole > 0 and grant.tokens > 0)
        self.next_token = now + grant.ready_in.total_seconds() if grant.ready_in else 0.0
        # There was no shortage, counting those that went meanwhile: whoever wants more is worth a question.
        if self.free(now) + self.took >= self.asked:
            self.asked = 0
        self.share_out(now)

    def let_go(self, jobs: int, now: float, *, out: bool) -> bool:
        """Note that jobs are no longer being sent; say whether the books must hear of it at once.

        Jobs that are `out` take their slots with them, and one that is too many is not used again.
        """
        self.pace, self.freed_at = (self.pace + (now - self.freed_at) / max(1, jobs)) / 2, now
        self.busy = max(0, self.busy - jobs)
        gone = jobs if out else min(jobs, self.surplus)
        if not gone or self.limit.max_in_flight is None:
            return self.scarce and self.to_spare(now, leaving=False)
        self.surplus = max(0, self.surplus - jobs)
        self.slots = max(self.busy, self.slots - gone)
        self.gone += gone
        self.asked = 0  # whoever wants one now must not wait for the next round
        return True

    def idle(self, now: float) -> bool:
        """Say whether nobody has used or wanted it for a while.

        Who wanted it for jobs to come and leaves free slots alone has found none: a lane without work says
        nothing any more.
        """
        jobs = any(who != NOBODY for _, who in self.wants)
        if self.busy or jobs or (self.wants and self.free_slots <= 0):
            self.quiet_since = None
        elif self.quiet_since is None:
            self.quiet_since = self.freed_at if now - self.freed_at < IDLE_S else now
        return self.quiet_since is not None and now >= self.idle_at - INSTANT_S

    @property
    def idle_at(self) -> float:
        """When it is to be given back if nobody uses it; infinity = somebody does."""
        return math.inf if self.quiet_since is None else self.quiet_since + IDLE_S

    @property
    def scarce(self) -> bool:
        """Say whether there is not a slot for each node: one that is kept for later is missing elsewhere."""
        return self.limit.max_in_flight is not None and self.limit.max_in_flight < self.nodes

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

    def take(self, lane: str, jobs: int, now: float) -> None:
        """Take what so many jobs need."""
        if self.limit.rate is not None:
            self.tokens -= jobs
            self.spent += jobs
            if self.here:
                self.next_token = self.grows_at = max(self.ripe, now - LATE_S) + self.whole
        self.freed_at = self.freed_at if self.busy else now
        self.busy += jobs
        self.took += jobs
        if self.busy >= self.used or now - self.used_at > IDLE_S:
            self.used, self.used_at = self.busy, now
        self.useless_since = None
        if self.allowed:
            self.allowed[lane] = self.allowed.get(lane, 0) - jobs
