"""Pools in the database, kept as lanes are: triggers check, version and audit every change."""

from typing import Final

from penstock.domain.lanes import check_version
from penstock.domain.pauses import check_until
from penstock.domain.pools import POOL_SETTINGS, Pool
from penstock.errors import InUse, NotFound
from penstock.stores.sql.database import Row, Tx, one
from penstock.stores.sql.lanes import PAUSED, Pause, delete_row, pause_of, update_sql

_NAMES: Final = tuple(POOL_SETTINGS)
LOAD: Final = f"SELECT id, version, name, {', '.join((*PAUSED, *_NAMES))} FROM penstock.pools"
LOAD_ONE: Final = f"{LOAD} WHERE name = :name FOR UPDATE"
CREATE: Final = f"""
    INSERT INTO penstock.pools (name, {", ".join(_NAMES)}, updated_at, updated_by)
    VALUES (:name, {", ".join(f":{name}" for name in _NAMES)}, :now, :actor)
        ON CONFLICT (name) DO NOTHING"""
USERS: Final = "SELECT name FROM penstock.lanes WHERE pool = :pool ORDER BY name"
# What is left of its tokens, and of those of its keys; a name has no slash, and `0` comes after it.
FORGET: Final = "DELETE FROM penstock.{} WHERE name = :whole OR (name >= :keys AND name < :end)"
TOKENS: Final = ("limits", "limit_leases")


def load_pools(tx: Tx) -> dict[str, Pool]:
    """Return every pool by name."""
    return {row[2]: _pool(tx, row) for row in tx.fetch(LOAD)}


def put_pool(tx: Tx, pool: Pool, actor: str, expect: int | None = None) -> Pool:
    """Create the pool or change what differs; a pool that is as it should be is left alone."""
    rows = tx.fetch(LOAD_ONE, name=pool.name)
    check_version("pool", pool.name, rows[0][1] if rows else 0, expect)
    if not rows:
        made = tx.execute(CREATE, name=pool.name, now=tx.now, actor=actor, **pool.settings)
    stored = _known(tx, pool.name)
    if not rows and not made:  # somebody made it meanwhile
        check_version("pool", pool.name, stored.version, expect)
    changed = {name: value for name, value in pool.settings.items() if stored.settings[name] != value}
    if changed:
        tx.execute(update_sql("pools", tuple(changed)), id=stored.id, now=tx.now, actor=actor, **changed)
    return _known(tx, pool.name)


def pause_pool(tx: Tx, name: str, pause: Pause) -> Pool:
    """Stop a pool or let it go."""
    pool = _known(tx, name)
    check_until(pause.columns["paused_until"], tx.now)
    if pause.changes(pool):
        tx.execute(update_sql("pools", PAUSED), id=pool.id, now=tx.now, actor=pause.actor, **pause.columns)
    return _known(tx, name)


def delete_pool(tx: Tx, name: str, actor: str, reason: str | None) -> None:
    """Delete a pool and what is left of its tokens."""
    pool = _known(tx, name)
    users = [row[0] for row in tx.fetch(USERS, pool=name)]
    if users:
        raise InUse("pool", name, f"is used by {', '.join(users)}: give them another pool first")
    for table in TOKENS:
        tx.execute(FORGET.format(table), whole=f"pool/{name}", keys=f"pool/{name}/", end=f"pool/{name}0")
    delete_row(tx, "pools", pool.id, name=name, actor=actor, reason=reason)


def _known(tx: Tx, name: str) -> Pool:
    row = one(tx.fetch(LOAD_ONE, name=name))
    if row is None:
        raise NotFound("pool", name)
    return _pool(tx, row)


def _pool(tx: Tx, row: Row) -> Pool:
    number, version, name, *values = row
    pause, values = values[: len(PAUSED)], values[len(PAUSED) :]
    settings = dict(zip(_NAMES, values, strict=True))
    return Pool(name, **settings, id=number, version=version, **pause_of(tx, pause))
