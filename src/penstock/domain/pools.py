"""A pool: a rate and concurrency limit that lanes share, optionally one limit per key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from penstock.domain.lanes import Setting, check_setting
from penstock.domain.names import check_name, unknown
from penstock.domain.rates import MAX_COUNT, default_burst, parse_rate
from penstock.errors import InvalidSetting

POOL_SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType(
    {
        "rate": Setting("rate", about="How many calls may be made to sinks, over all nodes and lanes."),
        "burst": Setting(
            "int",
            None,
            least=1,
            most=MAX_COUNT,
            about="How many of them at once after a quiet time. Unset: a second's worth.",
        ),
        "max_in_flight": Setting(
            "int", None, least=1, about="How many jobs may be being sent, or sent and not reported on."
        ),
        "key": Setting(
            "word",
            None,
            ("tenant", "target", "group"),
            about="The limits count for each tenant, target (scheme, host and port) or group by itself.",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as stored; make one with `pool()`, which checks it. None = no such limit."""

    name: str
    rate: str | None = None
    burst: int | None = None
    max_in_flight: int | None = None
    key: str | None = None
    id: int = 0
    version: int = 0
    paused: bool = False
    paused_until: datetime | None = None
    pause_reason: str | None = None
    paused_by: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by name."""
        return {name: getattr(self, name) for name in POOL_SETTINGS}

    @property
    def bucket(self) -> int | None:
        """How many calls may be made at once after a quiet time; None = there is no rate."""
        if self.rate is None:
            return None
        return default_burst(parse_rate(self.rate)) if self.burst is None else self.burst

    def stopped(self, now: datetime) -> bool:
        """Say whether the pool is paused at this time: a pause ends by itself when its time has come."""
        return self.paused and (self.paused_until is None or now < self.paused_until)


def pool(name: str, /, **settings: object) -> Pool:
    """Return a pool, or raise InvalidSetting."""
    try:
        check_name("pool", name)
    except ValueError as error:
        raise InvalidSetting("name", str(error)) from error
    for given in settings:
        if given not in POOL_SETTINGS:
            raise InvalidSetting(given, "there is no such pool setting")
    checked: dict[str, Any] = {
        key: check_setting(key, setting, settings.get(key)) for key, setting in POOL_SETTINGS.items()
    }
    return Pool(name, **checked)


def check_pool(name: str, known: Iterable[str]) -> None:
    """Raise InvalidSetting unless a lane's pool exists: a misspelt one would limit nothing."""
    names = list(known)
    if name not in names:
        raise InvalidSetting(
            "pool", f"{unknown('pool', name, names)}; to make it: penstock pools set {name} --create"
        )


def mark(pool: Pool, *, of_lane: bool) -> str:
    """Return what the row of a job says that this pool put back: the pool as it is set.

    When it is set otherwise, or the job's lane has another one, such a mark is no longer one of `marks`.
    """
    told = ", ".join(f"{name} = {value}" for name, value in pool.settings.items() if value is not None)
    return f"waits for {'the pool of its lane' if of_lane else 'pool'}: {pool.name} ({told})"


def marks(own: str | None, pools: Mapping[str, Pool]) -> frozenset[str]:
    """Return all marks that jobs of a lane with this pool may have: they may name others themselves."""
    found = {mark(pool, of_lane=False) for pool in pools.values()}
    if own is not None and own in pools:
        found.add(mark(pools[own], of_lane=True))
    return frozenset(found)
