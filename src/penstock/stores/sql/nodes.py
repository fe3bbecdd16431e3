"""Nodes, their passes, and who leads: domain/leases.py has the rules, this module the rows."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from penstock import __version__
from penstock.domain.leases import Term, holds, lapsed, next_term, renewed, resigned
from penstock.errors import TermOver
from penstock.ports.store import Tick
from penstock.stores.sql.database import Tx, one
from penstock.stores.sql.hotpath import Fence, no_fence

REGISTER: Final = """
    INSERT INTO penstock.nodes (name, version, started_at, seen_at)
    VALUES (:name, :version, :now, :now) RETURNING id"""
AGAIN: Final = """
    INSERT INTO penstock.nodes (id, name, version, started_at, seen_at) OVERRIDING SYSTEM VALUE
    VALUES (:id, :name, :version, :now, :now) ON CONFLICT (id) DO NOTHING"""
BEAT: Final = """
    UPDATE penstock.nodes SET seen_at = :now, note = coalesce(:note, note) WHERE id = :node"""
LANES: Final = "SELECT id, name FROM penstock.lanes"
TERM: Final = "SELECT term, holder, until FROM penstock.leases WHERE name = :role FOR UPDATE"
# A leader may prolong its term while its chores run; who follows it waits until they are done or undone.
OUR_TERM: Final = TERM.replace("FOR UPDATE", "FOR NO KEY UPDATE")
FENCE: Final = TERM.replace("FOR UPDATE", "FOR KEY SHARE")
FIRST_TERM: Final = """
    INSERT INTO penstock.leases (name, holder, term, until) VALUES (:role, :holder, :term, :until)
        ON CONFLICT (name) DO NOTHING"""
NEXT_TERM: Final = """
    UPDATE penstock.leases SET holder = :holder, term = :term, until = :until WHERE name = :role"""


def register_node(tx: Tx, name: str, again: int | None) -> int:
    """Return a number nobody had before, or the one that the node had `again`."""
    if again is not None:
        tx.execute(AGAIN, id=again, name=name, version=__version__, now=tx.now)
        return again
    number: int = tx.fetch(REGISTER, name=name, version=__version__, now=tx.now)[0][0]
    return number


def beat(tx: Tx, node: int, note: str | None) -> bool:
    """Note that the node is alive, and what it says of itself; False = there is no such node."""
    return tx.execute(BEAT, node=node, now=tx.now, note=note) > 0


def record_ticks(tx: Tx, ticks: Sequence[Tick]) -> None:
    """Keep the figures of passes."""
    lanes = {name: number for number, name in tx.fetch(LANES)}
    rows = [
        (
            tick.node,
            lanes.get(tick.lane or ""),
            tx.now,
            tick.claimed,
            tick.settled,
            json.dumps(dict(tick.phases)),
        )
        for tick in ticks
    ]
    tx.insert("ticks", ("node", "lane", "at", "claimed", "settled", "phases"), rows)


def elect(tx: Tx, role: str, node: int, ttl: timedelta) -> Term | None:
    """Become holder of a role whose term has run out; None = somebody else holds it."""
    current = _current(tx, role)
    term = next_term(current, str(node), now=tx.now, lease=ttl)
    if term is None:
        return None
    term = replace(term, role=role)
    # Of two that create the row the second comes back with nothing: the first has just become the leader.
    return term if _write(tx, NEXT_TERM if current else FIRST_TERM, role, term) else None


def extend_term(tx: Tx, role: str, term: Term, ttl: timedelta) -> Term | None:
    """Prolong exactly this term; None = it is over."""
    current = _current(tx, role, OUR_TERM)
    if current is None or lapsed(current.until, now=tx.now):
        return None
    longer = renewed(current, term, now=tx.now, lease=ttl)
    if longer is None or not _write(tx, NEXT_TERM, role, longer):
        return None
    return replace(longer, role=role)


def resign(tx: Tx, role: str, term: Term) -> bool:
    """End exactly this term now."""
    ended = resigned(_current(tx, role), term, now=tx.now)
    return ended is not None and _write(tx, NEXT_TERM, role, ended)


def fence(tx: Tx, term: Term) -> None:
    """Go on only under this term, and keep anybody from taking the next one until the transaction ends."""
    if not holds(_current(tx, term.role, FENCE), term, now=tx.now):
        raise TermOver(term.number)


def fence_of(term: Term | None) -> Fence:
    """Return what a transaction does first; nothing when no term is named."""
    return (lambda tx: fence(tx, term)) if term is not None else no_fence


def _current(tx: Tx, role: str, sql: str = TERM) -> Term | None:
    row = one(tx.fetch(sql, role=role))
    if row is None or (until := tx.time(row[2])) is None:
        return None
    return Term(row[0], str(row[1]), until, role)


def _write(tx: Tx, statement: str, role: str, term: Term) -> bool:
    done = tx.execute(statement, role=role, holder=int(term.holder), term=term.number, until=term.until)
    return done > 0
