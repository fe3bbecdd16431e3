"""What is looked at before every send and between passes: one statement each."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from penstock.domain.job import Claim
from penstock.domain.pauses import Stop, in_force
from penstock.domain.states import Verb
from penstock.ports.flow import Confirmed
from penstock.stores.sql.database import Row, Tx

# Requests are found from the claim's own list: nothing is sent but its number. There are hardly ever any.
_ASKED: Final[Mapping[str, str]] = {
    "postgres": """
        LEFT JOIN LATERAL (
          SELECT r.arrival, r.verb, array_position(c.arrivals, r.arrival) - 1 AS place
            FROM penstock.requests r
           WHERE r.arrival = ANY(c.arrivals) AND EXISTS (SELECT FROM penstock.requests)
          OFFSET 0) r ON true""",
    "sqlite": """
        LEFT JOIN (SELECT r.arrival, r.verb, j.key AS place FROM penstock.claims c
          CROSS JOIN json_each(c.arrivals) j CROSS JOIN penstock.requests r ON r.arrival = j.value
          WHERE c.id = :epoch) r ON true""",
}
_CONFIRM: Final = """
    SELECT now(), c.id, c.settled, l.enabled, l.pool,
           s.scope, s.actor, s.reason, s.until,
           l.paused, l.paused_by, l.pause_reason, l.paused_until,
           p.paused, p.paused_by, p.pause_reason, p.paused_until,
           r.arrival, r.verb, r.place
      FROM (SELECT 1) one
      LEFT JOIN penstock.lanes l ON l.name = :lane
      LEFT JOIN penstock.pools p ON p.name = l.pool
      LEFT JOIN penstock.pauses s ON s.scope = 'store' AND s.name = ''
      LEFT JOIN penstock.claims c ON c.id = :epoch"""
CONFIRM: Final = {dialect: _CONFIRM + asked for dialect, asked in _ASKED.items()}


def confirm(tx: Tx, dialect: str, claim: Claim) -> Confirmed:
    """Return what a holder must know before it sends."""
    rows = tx.fetch(CONFIRM[dialect], lane=claim.lane, epoch=claim.epoch)
    first = rows[0]
    now = _time(tx, first[0])
    mask = int.from_bytes(first[2] or b"", "big")
    asked = {row[17]: Verb(row[18]) for row in rows if row[17] is not None and not mask >> row[19] & 1}
    enabled = first[3] is None or bool(first[3])
    stops = (
        _stop(tx, "the store is paused", first[5:9]),
        None if enabled else Stop(f'lane "{claim.lane}" is disabled'),
        _stop(tx, f'lane "{claim.lane}" is paused', first[9:13]),
        _stop(tx, f'pool "{first[4]}" is paused', first[13:17]),
    )
    return Confirmed(now, ours=first[1] is not None, stopped=in_force(stops, now), asked=asked)


def _stop(tx: Tx, what: str, row: Row) -> Stop | None:
    paused, actor, reason, until = row
    return Stop(what, actor, reason, tx.time(until)) if paused else None


def _time(tx: Tx, value: Any) -> datetime:  # noqa: ANN401
    at = tx.time(value)
    assert at is not None  # noqa: S101
    return at
