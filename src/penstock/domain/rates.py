"""Token buckets: how many calls a rate allows now, over the whole cluster.

**The promise.** Over any window of length t at most `rate·t + burst` calls are made. It rests on one
invariant: the tokens in the bucket plus those out on lease are never more than `burst`.

**Exact.** A token is 3.6e9 *grains*, so each microsecond mints a whole number of grains for every rate per
second, minute or hour. Nothing is rounded, nothing drifts however often the bucket is looked at, and a rate
or burst changed at run time needs no conversion. The level of the largest bucket fits a 64-bit column.

**Clocks.** Time is the store's, in UTC. A reading a little older than the bucket's own time (transactions
overlap) mints nothing and moves nothing. One older by more than CLOCK_STEP means that the clock was set
back: the bucket continues from the new time, again without minting, else it would stand still until the
clock had caught up.

**Slices.** Nodes lease slices so that a global limit does not serialise them (domain/limits.py). The caller
passes `held`, the sum of all slices out, and the bucket fills only up to `burst - held`. Small slices keep
the throughput full: see `slice_size`.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

GRAINS_PER_TOKEN: Final = 3_600_000_000
MAX_COUNT: Final = 1_000_000_000
CLOCK_STEP: Final = timedelta(seconds=10)
SHOWN: Final = 20

_MICROSECOND: Final = timedelta(microseconds=1)
RATE_PATTERN: Final = r"([0-9]{1,10})/([smh])"
_RATE: Final = re.compile(RATE_PATTERN)
_TOO_MANY: Final = re.compile(r"[0-9]{11,}/[smh]")
_PERIODS: Final = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}


class BadRate(ValueError):
    """The value is not a rate or burst; the message shows how to write one."""

    def __init__(self, value: object, advice: str = "write 200/s, 10/m or 5/h") -> None:
        super().__init__(f"{value!r} is not a rate: {advice}")
        self.value = value


@dataclass(frozen=True, slots=True)
class Rate:
    """So many per second, minute or hour."""

    count: int
    per: timedelta

    def __post_init__(self) -> None:
        if self.per not in _PERIODS.values():
            raise BadRate(f"{self.count}/{self.per}")
        if not 1 <= self.count <= MAX_COUNT:
            raise BadRate(str(self), f"the number is from 1 to {MAX_COUNT}; to stop a lane pause it")

    def __str__(self) -> str:
        """Return the text that parse_rate reads back."""
        return f"{self.count}/{next(unit for unit, period in _PERIODS.items() if period == self.per)}"

    @property
    def grains_per_microsecond(self) -> int:
        """What one microsecond mints."""
        return self.count * (GRAINS_PER_TOKEN // (self.per // _MICROSECOND))


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is left of a limit: `level` grains at the time `at`."""

    level: int
    at: datetime

    @property
    def tokens(self) -> int:
        """How many whole tokens there were at that time."""
        return self.level // GRAINS_PER_TOKEN


def parse_rate(value: object) -> Rate:
    """Return the rate that the text spells, or raise BadRate."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None and isinstance(value, str) and _TOO_MANY.fullmatch(value):
        raise BadRate(
            value if len(value) <= SHOWN else f"{value[:SHOWN]}…", f"the number is at most {MAX_COUNT}"
        )
    if match is None:
        raise BadRate(value)
    return Rate(int(match[1]), _PERIODS[match[2]])


def default_burst(rate: Rate) -> int:
    """Return one second's worth, at least one."""
    return max(1, rate.count // (rate.per // _PERIODS["s"]))


def allowance(rate: Rate, burst: int, *, window: timedelta) -> int:
    """Return the most calls that may be made in any window of this length."""
    return rate.grains_per_microsecond * (window // _MICROSECOND) // GRAINS_PER_TOKEN + burst


def full(burst: int, *, at: datetime) -> Bucket:
    """Return a bucket that nobody has drawn from."""
    if not 1 <= burst <= MAX_COUNT:
        raise BadRate(burst, f"a burst is from 1 to {MAX_COUNT}")
    return Bucket(burst * GRAINS_PER_TOKEN, at)


def refill(bucket: Bucket, rate: Rate, *, burst: int, now: datetime, held: int = 0) -> Bucket:
    """Return the bucket as it stands now."""
    room = max(0, burst - held) * GRAINS_PER_TOKEN
    elapsed = now - bucket.at
    if elapsed < -CLOCK_STEP:
        return Bucket(min(bucket.level, room), now)
    if elapsed < timedelta(0):
        return Bucket(min(bucket.level, room), bucket.at)
    minted = rate.grains_per_microsecond * (elapsed // _MICROSECOND)
    return Bucket(min(bucket.level + minted, room), now)


def take(
    bucket: Bucket, rate: Rate, *, burst: int, now: datetime, want: int, held: int = 0
) -> tuple[Bucket, int]:
    """Return the bucket after taking what it has, up to `want`, and how many tokens that was."""
    filled = refill(bucket, rate, burst=burst, now=now, held=held)
    granted = max(0, min(want, filled.tokens))
    return replace(filled, level=filled.level - granted * GRAINS_PER_TOKEN), granted


def give_back(bucket: Bucket, tokens: int, *, burst: int, held: int = 0) -> Bucket:
    """Return the bucket with tokens put back for which no call was made; what does not fit is lost."""
    room = max(0, burst - held) * GRAINS_PER_TOKEN
    return replace(bucket, level=min(bucket.level + tokens * GRAINS_PER_TOKEN, room))


def ready_in(
    bucket: Bucket, rate: Rate, *, burst: int, now: datetime, want: int = 1, held: int = 0
) -> timedelta | None:
    """Return the time until that many tokens are there if nobody takes any, None if they never fit."""
    if want > burst - held:
        return None
    filled = refill(bucket, rate, burst=burst, now=now, held=held)
    missing = want * GRAINS_PER_TOKEN - filled.level
    if missing <= 0:
        return timedelta(0)
    return (filled.at - now) + -(-missing // rate.grains_per_microsecond) * _MICROSECOND


def time_to_fill(rate: Rate, burst: int) -> timedelta:
    """Return how long an empty bucket takes to be full."""
    return -(-burst * GRAINS_PER_TOKEN // rate.grains_per_microsecond) * _MICROSECOND


def slice_size(rate: Rate, burst: int, *, nodes: int, ttl: timedelta) -> int:
    """Return how many tokens a node should lease at a time.

    Its share of what a TTL mints, and never so much that all slices together take more than half the bucket:
    the other half is the room that refills while they are out. A node returns a slice as soon as it is spent.
    """
    minted = allowance(rate, 0, window=ttl)
    return max(1, min(minted, burst // 2) // max(1, nodes))
