"""What is known of targets: domain/breakers.py has the rules, this module the rows."""

from typing import Final

from penstock.domain.breakers import Note, Target, noted
from penstock.stores.sql.database import Row, Tx, one

_COLUMNS: Final = ("target", "state", "failures", "opened_at", "until", "slow_until")
TROUBLED: Final = f"SELECT {', '.join(_COLUMNS)} FROM penstock.targets"
ONE: Final = f"{TROUBLED} WHERE target = :name FOR UPDATE"
MAKE: Final = "INSERT INTO penstock.targets (target) VALUES (:name) ON CONFLICT (target) DO NOTHING"
CHANGE: Final = """
    UPDATE penstock.targets SET state = :state, failures = :failures, opened_at = :opened_at,
           until = :until, slow_until = :slow_until WHERE target = :name"""
FORGET: Final = "DELETE FROM penstock.targets WHERE target = :name"


def targets(tx: Tx) -> dict[str, Target]:
    """Return the targets whose breaker is not closed or that go slow."""
    found = [_target(tx, row).at(tx.now) for row in tx.fetch(TROUBLED)]
    return {target.name: target for target in found if target.troubled}


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
    tx.execute(CHANGE, **after._asdict())
    return after


def _target(tx: Tx, row: Row) -> Target:
    name, state, failures, *times = row
    return Target(name, state, failures, *map(tx.time, times))
