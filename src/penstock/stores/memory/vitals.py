"""How the model does (`ports/vitals.py`)."""

from datetime import datetime
from threading import RLock

from penstock.domain.job import Live
from penstock.domain.states import JobState
from penstock.domain.vitals import Vitals, pool_limits, pool_uses, put_back_s
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
            return Vitals(
                max(0.0, (now - oldest).total_seconds()), uses, put_back_s=put_back_s(_put_back(tables), now)
            )


def _put_back(tables: Tables) -> list[tuple[str, datetime | None]]:
    """Return lanes, and since when the first job is due of those that a pool put back."""
    first = dict[tuple[int, str], Live]()
    for _, row in sorted(tables.live.items()):
        if row.state == JobState.PENDING and row.reason is not None:
            first.setdefault((row.lane, row.reason), row)
    return [(tables.lane_names[row.lane], row.due_since) for row in first.values()]
