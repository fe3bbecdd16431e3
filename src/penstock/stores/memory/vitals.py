"""How the model does (`ports/vitals.py`)."""

from datetime import datetime
from threading import RLock

from penstock.domain.vitals import Vitals, pool_limits, pool_uses
from penstock.stores.memory.flow import jobs_out
from penstock.stores.memory.tables import Tables


class VitalsPart:
    """How the store does; `MemoryStore` brings the rows, the lock and the clock."""

    _tables: Tables
    _lock: RLock

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    def vitals(self) -> Vitals:
        """Return a few figures."""
        with self._lock:
            tables, now = self._tables, self.now()
            oldest = min((lease.lease_until for lease in tables.claims.values()), default=now)
            limits = pool_limits(tables.pools, tables.limits)
            accounts = {
                id_: tables.limits[id_]._replace(open=jobs_out(tables, limit))
                for id_, limit in limits.items()
            }
            uses = pool_uses(tables.pools, limits, accounts, now)
            return Vitals(max(0.0, (now - oldest).total_seconds()), uses)
