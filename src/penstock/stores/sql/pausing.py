"""The pause of the whole store."""

from typing import Final

from penstock.domain.job import Audit
from penstock.domain.pauses import Pause, check_until
from penstock.stores.sql.database import Tx, one
from penstock.stores.sql.rows import AUDIT_COLUMNS

LOAD: Final = "SELECT actor, reason, at, until FROM penstock.pauses WHERE scope = 'store' AND name = ''"
PAUSE: Final = """
    INSERT INTO penstock.pauses (scope, name, until, reason, actor, at)
    VALUES ('store', '', :until, :reason, :actor, :at)
        ON CONFLICT (scope, name) DO UPDATE
       SET until = excluded.until, reason = excluded.reason, actor = excluded.actor, at = excluded.at"""
RESUME: Final = "DELETE FROM penstock.pauses WHERE scope = 'store' AND name = ''"


def store_pause(tx: Tx) -> Pause | None:
    """Return the pause that is in force now."""
    pause = _stored(tx, LOAD)
    return None if pause is None or pause.over(tx.now) else pause


def pause_store(tx: Tx, wanted: Pause | None, *, actor: str, reason: str) -> Pause | None:
    """Stop every lane, or let them go; a pause that is as it should be is left alone."""
    if wanted is not None:
        check_until(wanted.until, tx.now)
    stored = _stored(tx, f"{LOAD} FOR UPDATE")
    unchanged = stored is None if wanted is None else wanted.same(stored)
    if not unchanged:
        if wanted is None:
            tx.execute(RESUME)
        else:
            tx.execute(PAUSE, until=wanted.until, reason=reason, actor=actor, at=wanted.at)
        action = "store.resume" if wanted is None else "store.pause"
        was, becomes = (pause.facts() if pause else None for pause in (stored, wanted))
        tx.insert("audit", AUDIT_COLUMNS, [Audit(tx.now, None, None, actor, action, was, becomes, reason)])
    return store_pause(tx)


def _stored(tx: Tx, sql: str) -> Pause | None:
    row = one(tx.fetch(sql))
    if row is None or (at := tx.time(row[2])) is None:
        return None
    return Pause(row[0], row[1], at, tx.time(row[3]))
