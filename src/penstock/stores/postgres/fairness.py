"""Which tenants a claim visits; see stores/sql/turns.py."""

from datetime import timedelta
from typing import Final

from penstock.stores.postgres import statements as sql
from penstock.stores.postgres.database import PostgresTx
from penstock.stores.sql.turns import Turns

JOBS: Final = (sql.JOB_TENANTS, sql.JOB_NOBODY)
GROUPS: Final = (sql.GROUP_TENANTS, sql.GROUP_NOBODY)


def shares(
    tx: PostgresTx, turns: Turns, statements: tuple[str, str], *, lane: int, ahead: timedelta, limit: int
) -> dict[str, object] | None:
    """Return the parameters of a fair pick; None when the lane has no tenants."""
    tenants_sql, nobody_sql = statements
    params = {"lane": lane, "ahead": ahead}

    def walk(after: str, visits: int) -> list[tuple[str, bool]]:
        return tx.cursor.execute(tenants_sql, {**params, "after": after, "visits": visits}).fetchall()

    def nobody() -> bool:
        return bool(tx.cursor.execute(nobody_sql, params).fetchall()[0][0])

    served = turns.round((tenants_sql, lane), limit=limit, walk=walk, nobody=nobody)
    if served is None:
        return None
    quota = max(1, limit // max(1, len(served)))
    tenants = [tenant for tenant in served if tenant is not None]
    return {"tenants": tenants, "quota": quota, "nobody": quota if None in served else 0}
