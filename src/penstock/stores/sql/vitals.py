"""How a SQL database does (`ports/vitals.py`): a few figures from indexes and from its own statistics."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from penstock.domain.pools import Pool
from penstock.domain.vitals import MOST_KEYS, Vitals, pool_limits, pool_uses, put_back_s
from penstock.stores.sql import limits
from penstock.stores.sql.database import Database, Row, Tx, one
from penstock.stores.sql.pools import load_pools
from penstock.stores.sql.recalling import put_back

LAPSED: Final = "SELECT lease_until FROM penstock.claims ORDER BY lease_until LIMIT 1"
# By the primary key: the limits of a pool stand together.
ACCOUNTS: Final = """
    SELECT name, level, at FROM penstock.limits WHERE name >= :low AND name < :high
     ORDER BY name LIMIT :most"""
# What holds vacuum back: of other users only the time is visible, and that is enough.
OLDEST: Final = """
    SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8
      FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"""
DEAD_ROWS: Final = """
    SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE schemaname = 'penstock'"""


class VitalsPart:
    """How the store does; `SqlStore` brings the database."""

    __slots__ = ()
    db: Database

    def vitals(self) -> Vitals:
        """Return a few figures."""
        return self.db.read(lambda tx: _vitals(tx, self.db.dialect))


def _vitals(tx: Tx, dialect: str) -> Vitals:
    oldest = one(tx.fetch(LAPSED))
    until = None if oldest is None else tx.time(oldest[0])
    lapsed = timedelta(0) if until is None else max(timedelta(0), tx.now - until)
    found = Vitals(lapsed.total_seconds(), {}, put_back_s=put_back_s(put_back(tx), tx.now))
    if dialect == "postgres":
        found = found._replace(
            oldest_transaction_s=tx.fetch(OLDEST)[0][0], dead_rows=tx.fetch(DEAD_ROWS)[0][0]
        )
    pools = load_pools(tx)
    rows = _accounts(tx, pools)
    ids = pool_limits(pools, [row[0] for row in rows])
    if not ids:
        return found._replace(pools=pool_uses(pools, {}, {}, tx.now))
    locked = [(row[0], row[1], row[2]) for row in rows if row[0] in ids]
    now, accounts = limits.accounts_of(tx, dialect, ids, locked)
    return found._replace(pools=pool_uses(pools, ids, accounts, now))


def _accounts(tx: Tx, pools: Mapping[str, Pool]) -> list[Row]:
    """Return the levels of every pool; of one with very many keys some, so that none hides another."""
    # Between a name and its keys come others of which it is the beginning, but none with a space.
    ranges = [
        (name, f"{name} ") if pool.key is None else (f"{name}/", f"{name}0") for name, pool in pools.items()
    ]
    each = {side: [f"pool/{both[at]}" for both in ranges] for at, side in enumerate(("low", "high"))}
    return tx.fetch_each(ACCOUNTS, each, most=max(1, MOST_KEYS // max(1, len(pools))))
