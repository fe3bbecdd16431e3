"""Limits over the whole cluster: what a node asks of one, and what it may have.

A limit's *account* is its bucket, what each node has on lease, and how many jobs are out. A node comes by
with what it spent since it came last and what it would like to hold; `permit` is the one place that says what
it gets. Stores lock the accounts, ask it, and write what it returns.

**Tokens.** What is spent leaves the lease for good. The bucket is brought up to date before that: while
tokens are out they take room (domain/rates.py), so that over any window of length t at most rate·t + burst
are spent, whatever nodes do with what they hold. What a node no longer wants returns to the bucket.

**Slots.** A job takes a slot from when its node decides to send it until it has ended. While it is being
sent, its node holds the slot; from when it is out, its own row counts. A node therefore gives up the slot
only after the outcome is written: a moment of both is too careful, a moment of neither would be too many.

A node has a right to its `part` of the slots. More it may borrow while nobody else lacks some of theirs: the
books note what a node lacks, and whoever holds more than its part then uses no slot of that again.

A lease that is not renewed in time is void: its tokens are lost, its room and its slots return.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from penstock.domain.rates import Bucket, Rate, full, give_back, ready_in, refill, take, time_to_fill

LONGEST: Final = timedelta(days=3650)
ALL: Final = 2**31 - 1


class Limit(NamedTuple):
    """One limit over the whole cluster, as configured now: of a lane, a pool, or one key of a pool.

    `scope` is `lane` or `pool`; `key` is '' where there is none. None = not limited in that way.
    """

    scope: str
    name: str
    key: str = ""
    rate: Rate | None = None
    burst: int = 1
    max_in_flight: int | None = None

    @property
    def slot(self) -> str:
        """What the row of a job that is out says of it."""
        return f"{self.name}/{self.key}" if self.key else self.name

    @property
    def id(self) -> str:
        """What it is known by, whatever its settings are."""
        return f"{self.scope}/{self.slot}"

    @property
    def limited(self) -> bool:
        """Whether there is anything to keep accounts of."""
        return self.rate is not None or self.max_in_flight is not None


class Need(NamedTuple):
    """What a node asks of a limit.

    `spent` tokens of its lease have paid for calls since it asked last; it would like to hold `tokens` from
    now on. `busy` of its slots are in use, or may be before it is answered; it would like to have `slots` in
    all, of which `part` are its right. While the answer is on its way a node may spend what it holds, but
    then it must not ask for less than that. `serial` numbers what a node asks: what was on its way for so
    long that a later call came before it is not heeded. After a `lost` answer the books keep that number even
    of a node that holds nothing: the call may come yet.
    """

    limit: Limit
    tokens: int = 0
    spent: int = 0
    slots: int = 0
    busy: int = 0
    serial: int = 0
    lost: bool = False
    part: int = ALL


class Grant(NamedTuple):
    """What the node holds from now on, until its `ttl` has passed.

    `slots` is never less than `busy`, even where that is more than it may have: the limit was lowered, a
    lease ended during a call and another node has the slot, or it borrowed what another one lacks. `surplus`
    of them are not to be used again.
    `ready_in` is the time until the next token where there were fewer than it asked for, None when that
    depends on others. `open` is how many jobs of the limit are out with executors, which take slots too; it
    is counted up to `max_in_flight`.
    """

    tokens: int
    slots: int
    ready_in: timedelta | None = None
    open: int = 0
    surplus: int = 0


class Lease(NamedTuple):
    """What a node has of a limit, until then, by the call of that number; it `lacks` slots of its part."""

    tokens: int
    slots: int
    until: datetime
    serial: int = 0
    lacks: int = 0


class Account(NamedTuple):
    """A limit's books; a bucket that is None was never drawn from. `idle_at` is when it may be forgotten."""

    bucket: Bucket | None = None
    leases: Mapping[int, Lease] = MappingProxyType({})
    open: int = 0
    idle_at: datetime | None = None


def permit(
    account: Account, need: Need, *, node: int, now: datetime, ttl: timedelta
) -> tuple[Account, Grant]:
    """Return the account after a node came by, without leases that are over, and what the node may have."""
    limit = need.limit
    live = {other: lease for other, lease in account.leases.items() if now < lease.until}
    filled_in = time_to_fill(limit.rate, limit.burst) if limit.rate is not None else timedelta(0)
    idle_at = now + ttl + min(filled_in, LONGEST)
    mine = live.get(node, Lease(0, 0, now))
    if mine.serial > need.serial:
        return Account(account.bucket, live, account.open, idle_at), Grant(0, 0, open=account.open)
    live.pop(node, None)
    bucket, tokens, wait = account.bucket, need.tokens, None
    if limit.rate is not None:
        others = sum(lease.tokens for lease in live.values())
        bucket, tokens = _hold(account.bucket, need, limit.rate, mine=mine.tokens, others=others, now=now)
        if tokens < need.tokens:
            wait = ready_in(bucket, limit.rate, burst=limit.burst, now=now, held=others + tokens)
    slots, surplus, lacks = max(need.busy, need.slots), 0, 0
    if limit.max_in_flight is not None:
        taken = sum(lease.slots for lease in live.values()) + account.open
        room = max(0, limit.max_in_flight - taken)
        others_lack = sum(lease.lacks for lease in live.values())
        most = max(min(need.part, room), room - others_lack)
        slots = max(need.busy, min(need.slots, most))
        surplus, lacks = max(0, slots - most), max(0, min(need.slots, need.part) - slots)
    booked = Lease(
        tokens if limit.rate is not None else 0,
        slots if limit.max_in_flight is not None else 0,
        now + ttl,
        need.serial,
        lacks,
    )
    leases = {**live, node: booked} if booked.tokens or booked.slots or lacks or need.lost else live
    grant = Grant(tokens, slots, wait, account.open, surplus)
    return Account(bucket, leases, account.open, idle_at), grant


def _hold(
    bucket: Bucket | None, need: Need, rate: Rate, *, mine: int, others: int, now: datetime
) -> tuple[Bucket, int]:
    """Return the bucket, and what the node holds of it after it spent some and asked for more or less."""
    burst = need.limit.burst
    filled = full(burst, at=now) if bucket is None else bucket
    filled = refill(filled, rate, burst=burst, now=now, held=mine + others)
    kept = min(max(0, mine - need.spent), max(0, burst - others))  # a burst may have been made smaller
    if kept > need.tokens:
        held = others + need.tokens
        return give_back(filled, kept - need.tokens, burst=burst, held=held), need.tokens
    left, granted = take(filled, rate, burst=burst, now=now, want=need.tokens - kept, held=others + mine)
    return left, kept + granted
