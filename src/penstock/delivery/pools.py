"""The limits of pools as routers count them: one account over all of them, apart from the dispatchers'."""

from typing import Final

from penstock.domain.pools import Pool
from penstock.ports.flow import Limit
from penstock.scheduler.plans import pool_limit

SCOPE: Final = "router"


class PoolLimits:
    """What a message of a pool counts against. A pool whose limit is one per key limits nothing here."""

    name = SCOPE
    weight = 1

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, tuple[Limit, ...]]] = {}

    def limits_of(self, pool: Pool | None, /) -> tuple[Limit, ...]:
        """Return the pool's limit under a name that no lane or pool can have."""
        if pool is None or pool.key is not None:
            return ()
        known = self._known.get(pool.name)
        if known is None or known[0] != pool.version:
            limits = tuple(
                limit._replace(scope=SCOPE, name=f"{SCOPE}:{pool.name}") for limit in pool_limit(pool, "")
            )
            known = self._known[pool.name] = (pool.version, limits)
        return known[1]
