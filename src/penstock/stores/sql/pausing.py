"""What is stopped beyond lanes, pools and groups: the whole store, targets, nodes that drain."""

from typing import Final

from penstock.domain.job import Audit
from penstock.domain.pauses import Pause, check_paused, check_until
from penstock.errors import NotFound
from penstock.stores.sql.database import Tx
from penstock.stores.sql.rows import AUDIT_COLUMNS

STORE: Final = "store"
TARGET: Final = "target"
NODE: Final = "node"
LOAD: Final = "SELECT name, actor, reason, at, until FROM penstock.pauses WHERE scope = :scope"
PAUSE: Final = """
    INSERT INTO penstock.pauses (scope, name, until, reason, actor, at)
    VALUES (:scope, :name, :until, :reason, :actor, :at)
        ON CONFLICT (scope, name) DO UPDATE
       SET until = excluded.until, reason = excluded.reason, actor = excluded.actor, at = excluded.at"""
RESUME: Final = "DELETE FROM penstock.pauses WHERE scope = :scope AND name = :name"
KNOWN: Final = "SELECT id FROM penstock.nodes WHERE id = :node"
GONE: Final = """
    DELETE FROM penstock.pauses
     WHERE scope = 'node' AND name NOT IN (SELECT CAST(id AS text) FROM penstock.nodes)"""
OVER: Final = "DELETE FROM penstock.pauses WHERE scope = :scope AND until <= :now AND name <> :name"


def pauses(tx: Tx, scope: str) -> dict[str, Pause]:
    """Return the pauses that are in force now, by name."""
    return {name: pause for name, pause in _stored(tx, LOAD, scope).items() if not pause.over(tx.now)}


def store_pause(tx: Tx) -> Pause | None:
    """Return the pause of everything that is in force now."""
    return pauses(tx, STORE).get("")


def pause(tx: Tx, scope: str, name: str, wanted: Pause | None, *, actor: str, reason: str) -> Pause | None:
    """Stop something, or let it go; a pause that is as it should be is left alone."""
    if wanted is not None:
        check_until(wanted.until, tx.now)
    tx.execute(OVER, scope=scope, now=tx.now, name=name)
    known = _stored(tx, f"{LOAD} FOR UPDATE", scope)
    stored = known.get(name)
    unchanged = stored is None if wanted is None else wanted.same(stored)
    if not unchanged:
        if wanted is None:
            tx.execute(RESUME, scope=scope, name=name)
        else:
            check_paused(known.keys() | {name} if scope == TARGET else ())
            at = {"at": wanted.at, "until": wanted.until}
            tx.execute(PAUSE, scope=scope, name=name, reason=reason, actor=actor, **at)
        word = "resume" if wanted is None else "drain" if scope == NODE else "pause"
        of = {scope: name} if name else {}
        was, becomes = (pause.facts(**of) if pause else None for pause in (stored, wanted))
        tx.insert(
            "audit",
            AUDIT_COLUMNS,
            [Audit(tx.now, None, None, actor, f"{scope}.{word}", was, becomes, reason)],
        )
    return pauses(tx, scope).get(name)


def drain(tx: Tx, node: int, wanted: Pause | None, *, actor: str, reason: str) -> Pause | None:
    """Tell a node to drain, or to go on; what is known of nodes that are gone goes too."""
    if not tx.fetch(KNOWN, node=node):
        raise NotFound("node", str(node))
    tx.execute(GONE)
    return pause(tx, NODE, str(node), wanted, actor=actor, reason=reason)


def _stored(tx: Tx, sql: str, scope: str) -> dict[str, Pause]:
    found = {}
    for name, actor, reason, began, ends in tx.fetch(sql, scope=scope):
        if (at := tx.time(began)) is not None:
            found[name] = Pause(actor, reason, at, tx.time(ends))
    return found
