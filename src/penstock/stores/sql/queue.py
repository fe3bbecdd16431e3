"""The embedded broker (`ports/queue.py`) in a SQL database.

A message without a group is found by its own row; a group by its row in `queue_groups`, which says which
message is its first (`head`) and when that is visible. Whoever changes a group's messages locks that row
first, several of them in their order; so a receiver and an acknowledgement of the same group never deadlock,
and the message of a group that is out is always its head.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from penstock.ports.queue import REMEMBERED, Delivery, Message
from penstock.stores.sql.database import Database, Row, Tx

SWEPT_AT_LEAST: Final = 10
_VALUES: Final[Mapping[str, str]] = {
    "postgres": "SELECT :queue, m.value ->> 0, m.value ->> 1, m.value ->> 2, now(), now()"
    " FROM json_array_elements(:messages::json) WITH ORDINALITY m(value, place) ORDER BY m.place",
    "sqlite": "SELECT :queue, json_extract(m.value, '$[0]'), json_extract(m.value, '$[1]'),"
    " json_extract(m.value, '$[2]'), now(), now() FROM json_each(:messages) m WHERE true ORDER BY m.key",
}
# A name that somebody is acknowledging just now is waited for; the next statement then finds it remembered.
APPEND: Final = {
    dialect: f"""
    INSERT INTO penstock.queue (queue, grp, dedup_id, body, visible_at, created_at) {values}
        ON CONFLICT DO NOTHING RETURNING id, dedup_id, visible_at"""
    for dialect, values in _VALUES.items()
}
# One look per row: a planner may turn EXISTS into a join with every name there is.
ABSORB: Final = """
    DELETE FROM penstock.queue AS q WHERE q.id = ANY(:ids) AND coalesce(
      (SELECT d.until > now() FROM penstock.queue_dedups d
        WHERE d.queue = q.queue AND d.dedup_id = q.dedup_id LIMIT 1), false) RETURNING id"""
KEEP_HEAD: Final = "ON CONFLICT (queue, grp) DO UPDATE SET visible_at = t.visible_at"
PLAIN: Final = """
    SELECT visible_at, id, NULL FROM penstock.queue INDEXED BY penstock.queue_visible
     WHERE queue = :queue AND grp IS NULL AND visible_at <= now()
     ORDER BY visible_at, id LIMIT :limit FOR UPDATE SKIP LOCKED"""
HEADS: Final = """
    SELECT visible_at, head, grp FROM penstock.queue_groups INDEXED BY penstock.queue_groups_visible
     WHERE queue = :queue AND visible_at <= now()
     ORDER BY visible_at, head LIMIT :limit FOR UPDATE SKIP LOCKED"""
TAKE: Final = """
    UPDATE penstock.queue SET visible_at = :until, receives = receives + 1
     WHERE id = ANY(:ids) RETURNING id, body, grp, receives, created_at"""
HIDE: Final = "UPDATE penstock.queue SET visible_at = :until WHERE id = ANY(:ids)"
HIDE_GROUPS: Final = "UPDATE penstock.queue_groups SET visible_at = :until WHERE head = ANY(:ids)"
LOCK_GROUPS: Final = """
    SELECT head FROM penstock.queue_groups WHERE head = ANY(:ids) ORDER BY grp, queue FOR UPDATE"""
LOCK: Final = """
    SELECT id, receives, queue, dedup_id FROM penstock.queue WHERE id = ANY(:ids) ORDER BY id FOR UPDATE"""
DELETE: Final = "DELETE FROM penstock.queue WHERE id = ANY(:ids)"
_NEXT: Final = """
    SELECT {} FROM penstock.queue q INDEXED BY penstock.queue_group
     WHERE q.queue = g.queue AND q.grp = g.grp AND q.grp IS NOT NULL ORDER BY q.id + 0 LIMIT 1"""
PROMOTE: Final = f"""
    UPDATE penstock.queue_groups AS g SET (head, visible_at) = ({_NEXT.format("q.id, q.visible_at")})
     WHERE g.head = ANY(:ids) AND ({_NEXT.format("q.id")}) IS NOT NULL"""
DROP_GROUPS: Final = "DELETE FROM penstock.queue_groups WHERE head = ANY(:ids)"
REMEMBER: Final = "ON CONFLICT (queue, dedup_id) DO UPDATE SET until = excluded.until"
FORGOTTEN: Final = """
    SELECT id FROM penstock.queue_dedups INDEXED BY penstock.queue_dedups_until
     WHERE until <= now() ORDER BY until, id LIMIT :limit FOR UPDATE SKIP LOCKED"""
FORGET: Final = "DELETE FROM penstock.queue_dedups WHERE id = ANY(:ids)"
QUEUED: Final = """
    SELECT dedup_id FROM penstock.queue WHERE queue = :queue AND dedup_id = :dedup_id LIMIT 1"""


class QueuePart:
    """The embedded broker; `SqlStore` brings the database."""

    __slots__ = ()
    db: Database

    def push(self, queue: str, messages: Sequence[Message]) -> list[int | None]:
        """Append messages; None for one whose dedup name was there already."""
        return self.db.write(lambda tx: _push(tx, self.db.dialect, queue, messages)) if messages else []

    def receive(self, queue: str, limit: int, *, visibility: timedelta) -> list[Delivery]:
        """Return messages that are visible, oldest first, and hide them."""
        return self.db.write(lambda tx: _receive(tx, queue, limit, visibility))

    def ack(self, deliveries: Sequence[Delivery]) -> int:
        """Delete messages that were not received again since."""
        return self.db.write(lambda tx: _ack(tx, deliveries)) if deliveries else 0

    def nack(self, deliveries: Sequence[Delivery], *, delay: timedelta) -> int:
        """Make them visible after the delay, neither earlier nor later."""
        return self.db.write(lambda tx: _nack(tx, deliveries, tx.now + delay)) if deliveries else 0

    def queued(self, queue: str, dedups: Sequence[str]) -> frozenset[str]:
        """Return which of these dedup names are still in the queue."""
        each = {"dedup_id": list(dedups)}
        return frozenset(row[0] for row in self.db.read(lambda tx: tx.fetch_each(QUEUED, each, queue=queue)))


class Fenced(NamedTuple):
    """A message that its receiver may still speak for."""

    id: int
    queue: str
    dedup: str | None


def _push(tx: Tx, dialect: str, queue: str, messages: Sequence[Message]) -> list[int | None]:
    said = json.dumps([(m.group, m.dedup, m.body) for m in messages], ensure_ascii=False)
    rows = tx.fetch(APPEND[dialect], queue=queue, messages=said)
    named = {dedup: number for number, dedup, _ in rows if dedup is not None}
    if named:
        again = {row[0] for row in tx.fetch(ABSORB, ids=list(named.values()))}
        named = {dedup: number for dedup, number in named.items() if number not in again}
    unnamed = iter(sorted(number for number, dedup, _ in rows if dedup is None))
    numbers = [next(unnamed) if m.dedup is None else named.pop(m.dedup, None) for m in messages]
    heads: dict[str, int] = {}
    for message, number in zip(messages, numbers, strict=True):
        if message.group is not None and number is not None:
            heads.setdefault(message.group, number)
    groups = [(queue, group, head, rows[0][2]) for group, head in sorted(heads.items())]
    tx.insert("queue_groups", ("queue", "grp", "head", "visible_at"), groups, on_conflict=KEEP_HEAD)
    return numbers


def _receive(tx: Tx, queue: str, limit: int, visibility: timedelta) -> list[Delivery]:
    asked = {"queue": queue, "limit": limit}
    visible: list[Row] = sorted([*tx.fetch(PLAIN, **asked), *tx.fetch(HEADS, **asked)], key=lambda r: r[:2])
    taken = visible[:limit]
    if not taken:
        return []
    until = tx.now + visibility
    rows = {row[0]: row for row in tx.fetch(TAKE, ids=[row[1] for row in taken], until=until)}
    tx.execute(HIDE_GROUPS, ids=[row[1] for row in taken if row[2] is not None], until=until)
    return [_delivery(tx, rows[row[1]]) for row in taken]


def _delivery(tx: Tx, row: Row) -> Delivery:
    number, body, group, receives, created_at = row
    at = tx.time(created_at)
    assert at is not None  # noqa: S101
    return Delivery(number, body, group, receives, at)


def _ack(tx: Tx, deliveries: Sequence[Delivery]) -> int:
    ours = _fenced(tx, deliveries)
    ids = [message.id for message in ours]
    if ids:
        tx.execute(DELETE, ids=ids)
        tx.execute(PROMOTE, ids=ids)
        tx.execute(DROP_GROUPS, ids=ids)
        names = {(message.queue, message.dedup) for message in ours if message.dedup is not None}
        until = tx.now + REMEMBERED
        rows = [(queue, dedup, until) for queue, dedup in sorted(names)]
        tx.insert("queue_dedups", ("queue", "dedup_id", "until"), rows, on_conflict=REMEMBER)
    # More go than come, so what is remembered stays as small as the last minutes' traffic.
    old = [row[0] for row in tx.fetch(FORGOTTEN, limit=2 * len(deliveries) + SWEPT_AT_LEAST)]
    if old:
        tx.execute(FORGET, ids=old)
    return len(ids)


def _nack(tx: Tx, deliveries: Sequence[Delivery], until: datetime) -> int:
    ids = [message.id for message in _fenced(tx, deliveries)]
    if ids:
        tx.execute(HIDE, ids=ids, until=until)
        tx.execute(HIDE_GROUPS, ids=ids, until=until)
    return len(ids)


def _fenced(tx: Tx, deliveries: Iterable[Delivery]) -> list[Fenced]:
    """Lock the messages that were not received again since, their groups first."""
    receives = {delivery.id: delivery.receives for delivery in deliveries}
    tx.fetch(LOCK_GROUPS, ids=list(receives))
    rows = tx.fetch(LOCK, ids=list(receives))
    return [Fenced(number, queue, dedup) for number, n, queue, dedup in rows if receives[number] == n]
