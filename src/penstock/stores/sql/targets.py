"""What is known of targets: domain/breakers.py has the rules, this module the rows."""

from typing import Final

from penstock.domain.breakers import KEPT, RESET, Note, Target, facts, noted
from penstock.domain.job import Audit
from penstock.stores.sql.database import Row, Tx, one
from penstock.stores.sql.pausing import TARGET, pauses
from penstock.stores.sql.rows import AUDIT_COLUMNS

_COLUMNS: Final = ("target", "state", "failures", "opened_at", "until", "slow_until")
_NAMES: Final = ("name", *_COLUMNS[1:])
_ALL: Final = f"SELECT {', '.join(_COLUMNS)} FROM penstock.targets"
TROUBLED: Final = f"{_ALL} WHERE state <> 'closed' OR slow_until > :now"
ONE: Final = f"{_ALL} WHERE target = :name FOR UPDATE"
MAKE: Final = "INSERT INTO penstock.targets (target) VALUES (:name) ON CONFLICT (target) DO NOTHING"
CHANGE: Final = """
    UPDATE penstock.targets SET state = :state, failures = :failures, opened_at = :opened_at,
           until = :until, slow_until = :slow_until WHERE target = :name"""
FORGET: Final = "DELETE FROM penstock.targets WHERE target = :name"
# domain/breakers.py: forgotten
_OVER: Final = """
    (until IS NULL OR until < CASE state WHEN 'closed' THEN :now ELSE :before END)
    AND (slow_until IS NULL OR slow_until < CASE state WHEN 'closed' THEN :now ELSE :before END)"""
OLD: Final = f"SELECT target FROM penstock.targets WHERE {_OVER} LIMIT :limit"
DROP: Final = f"DELETE FROM penstock.targets WHERE target = ANY(:names) AND {_OVER}"


def targets(tx: Tx) -> dict[str, Target]:
    """Return the targets whose breaker is not closed, that go slow or are paused."""
    known = (_target(tx, row).at(tx.now) for row in tx.fetch(TROUBLED, now=tx.now))
    found = {target.name: target for target in known}
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


def drop_forgotten(tx: Tx, limit: int) -> int:
    """Drop what is known of targets and does not matter any more; return how many there were."""
    times = {"now": tx.now, "before": tx.now - KEPT}
    names = [row[0] for row in tx.fetch(OLD, limit=limit, **times)]
    tx.execute(DROP, names=names, **times)  # those that were called meanwhile stay
    return len(names)


def _target(tx: Tx, row: Row) -> Target:
    name, state, failures, opened_at, until, slow_until = row
    return Target(name, state, failures, tx.time(opened_at), tx.time(until), tx.time(slow_until))
