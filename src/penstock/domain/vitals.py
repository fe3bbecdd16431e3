"""How a store does, in a few figures: for metrics and for whoever looks after it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from typing import Final, NamedTuple

from penstock.domain.limits import Account, Limit
from penstock.domain.pools import Pool
from penstock.domain.rates import GRAINS_PER_TOKEN, default_burst, full, parse_rate, refill

MOST_KEYS: Final = 1000  # that are looked at, of all pools together
FULLEST: Final = 5  # keys of a pool that are named


class KeyUse(NamedTuple):
    """How much of a limit is taken: that of one key of a pool, or of a pool without keys.

    `tokens` is what the bucket has left, None = there is no rate.
    """

    key: str
    saturation: float
    in_flight: int
    tokens: float | None = None

    @property
    def at_limit(self) -> bool:
        """Whether nothing more may go now: no slot is free, or there is no whole token."""
        return self.saturation >= 1 or (self.tokens is not None and self.tokens < 1)


class PoolUse(NamedTuple):
    """How much of a pool is taken: of its fullest key, where it has keys (`fullest` names it).

    `saturation` is from 0 to 1: what is taken of the slots, or missing from the bucket, whichever is more.
    `tokens` is what the bucket of the fullest key has left, None = there is no rate, or nobody used it yet;
    `at_limit` is how many keys, or pools without keys, have nothing left; `crowded` names the fullest keys.
    """

    saturation: float = 0.0
    in_flight: int = 0
    keys: int = 0
    fullest: str = ""
    tokens: float | None = None
    at_limit: int = 0
    crowded: tuple[KeyUse, ...] = ()


class Vitals(NamedTuple):
    """What one look found.

    `lapsed_s` is how long ago the lease of the most overdue claim ran out: recovery should have had it within
    seconds. `put_back_s` says by lane how long the first of the jobs that pools put back has been due: they
    come one by one as a pool lets them go, and no list of what is due has them. The other two are
    PostgreSQL's: how long its oldest transaction has been open, and how many dead rows wait for vacuum in our
    tables; None = the store has no such thing.
    """

    lapsed_s: float
    pools: Mapping[str, PoolUse]
    oldest_transaction_s: float | None = None
    dead_rows: int | None = None
    put_back_s: Mapping[str, float] = {}


def put_back_s(found: Iterable[tuple[str, datetime | None]], now: datetime) -> dict[str, float]:
    """Return how long the longest wait of each lane is by now; None = nobody knows since when it is due."""
    waits: dict[str, float] = {}
    for lane, since in found:
        if since is not None:
            waits[lane] = max(0.0, waits.get(lane, 0.0), (now - since).total_seconds())
    return waits


def limit_of(pool: Pool, key: str) -> Limit:
    """Return a pool's limit, or that of one of its keys, as it is configured now."""
    rate = None if pool.rate is None else parse_rate(pool.rate)
    burst = pool.burst or (1 if rate is None else default_burst(rate))
    return Limit("pool", pool.name, key, rate, burst, pool.max_in_flight)


def pool_limits(pools: Mapping[str, Pool], ids: Iterable[str]) -> dict[str, Limit]:
    """Return the limits of pools that are there still, by the ids that accounts of limits have."""
    found = {}
    for id_ in ids:
        scope, _, slot = id_.partition("/")
        name, _, key = slot.partition("/")
        if scope == "pool" and name in pools:
            found[id_] = limit_of(pools[name], key)
    return found


def pool_uses(
    pools: Mapping[str, Pool], limits: Mapping[str, Limit], accounts: Mapping[str, Account], now: datetime
) -> dict[str, PoolUse]:
    """Return how much of every pool is taken; one that nobody uses is empty."""
    found: dict[str, list[KeyUse]] = {name: [] for name in pools}
    for id_, limit in limits.items():
        found[limit.name].append(_taken(limit, accounts[id_], now))
    return {name: _together(uses) for name, uses in found.items()}


def _together(uses: Sequence[KeyUse]) -> PoolUse:
    if not uses:
        return PoolUse()
    named = [use for use in uses if use.key]
    fullest = max(uses, key=lambda use: (use.saturation, use.key))
    return PoolUse(
        fullest.saturation,
        sum(use.in_flight for use in uses),
        len(named),
        fullest.key,
        fullest.tokens,
        sum(use.at_limit for use in uses),
        tuple(nlargest(FULLEST, [use for use in named if use.saturation > 0], key=_crowd)),
    )


def _crowd(use: KeyUse) -> tuple[float, int, str]:
    return use.saturation, use.in_flight, use.key


def _taken(limit: Limit, account: Account, now: datetime) -> KeyUse:
    live = [lease for lease in account.leases.values() if now < lease.until]
    in_flight = account.open + sum(lease.slots for lease in live)
    parts, tokens = [0.0], None
    if limit.max_in_flight is not None:
        parts.append(in_flight / limit.max_in_flight)
    if limit.rate is not None:
        held = sum(lease.tokens for lease in live)
        bucket = account.bucket or full(limit.burst, at=now)
        level = refill(bucket, limit.rate, burst=limit.burst, now=now, held=held).level
        tokens = max(0.0, level / GRAINS_PER_TOKEN)
        parts.append(1 - level / (limit.burst * GRAINS_PER_TOKEN))
    return KeyUse(limit.key, min(1.0, max(parts)), in_flight, tokens)
