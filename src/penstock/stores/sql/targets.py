"""What is known of targets: domain/breakers.py has the rules, this module the rows."""

from typing import Final

from penstock.domain.breakers import RESET, Note, Target, facts, noted
from penstock.domain.job import Audit
from penstock.stores.sql.database import Row, Tx, one
from penstock.stores.sql.pausing import TARGET, pauses
from penstock.stores.sql.rows import AUDIT_COLUMNS

_COLUMNS: Final = ("target", "state", "failures", "opened_at", "until", "slow_until")
_NAMES: Final = ("name", *_COLUMNS[1:])
TROUBLED: Final = f"SELECT {', '.join(_COLUMNS)} FROM penstock.targets"
ONE: Final = f"{TROUBLED} WHERE target = :name FOR UPDATE"
MAKE: Final = "INSERT INTO penstock.targets (target) VALUES (:name) ON CONFLICT (target) DO NOTHING"
CHANGE: Final = """
    UPDATE penstock.targets SET state = :state, failures = :failures, opened_at = :opened_at,
           until = :until, slow_until = :slow_until WHERE target = :name"""
FORGET: Final = "DELETE FROM penstock.targets WHERE target = :name"


def targets(tx: Tx) -> dict[str, Target]:
    """Return the targets whose breaker is not closed, that go slow or are paused."""
    found = {target.name: target for target in (_target(tx, row).at(tx.now) for row in tx.fetch(TROUBLED))}
    for name, pause in pauses(tx, TARGET).items():
        found[name] = found.get(name, Target(name))._replace(pause=pause)
    return {name: target for name, target in found.items() if target.troubled}


def mark_target(tx: Tx, name: str, note: Note) -> Target:
    """Note how calls to a target went."""
    row = one(tx.fetch(ONE, name=name))
    before = Target(name) if row is None else _target(tx, row)
    after = noted(before, note, now=tx.now)
    if after == Target(name):
        if row is not None:
            tx.execute(FORGET, name=name)
        return after
    while row is None:
        # Of two that make the row the second waits here, and goes on from what the first wrote.
        tx.execute(MAKE, name=name)
        row = one(tx.fetch(ONE, name=name))
        after = noted(Target(name) if row is None else _target(tx, row), note, now=tx.now)
    tx.execute(CHANGE, **dict(zip(_NAMES, after, strict=False)))
    return after


def reset_target(tx: Tx, name: str, *, actor: str, reason: str) -> bool:
    """Forget how calls to a target went."""
    row = one(tx.fetch(ONE, name=name))
    if row is None:
        return False
    tx.execute(FORGET, name=name)
    entry = Audit(tx.now, None, None, actor, RESET, facts(_target(tx, row)), facts(Target(name)), reason)
    tx.insert("audit", AUDIT_COLUMNS, [entry])
    return True


def _target(tx: Tx, row: Row) -> Target:
    name, state, failures, opened_at, until, slow_until = row
    return Target(name, state, failures, tx.time(opened_at), tx.time(until), tx.time(slow_until))
