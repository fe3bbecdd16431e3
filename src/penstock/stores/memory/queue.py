"""The embedded broker (`ports/queue.py`) of the model."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from threading import RLock

from penstock.ports.queue import REMEMBERED, Delivery, Message
from penstock.stores.memory.tables import Queued, Tables


class QueuePart:
    """The embedded broker; `MemoryStore` brings the rows, the lock and the clock."""

    _tables: Tables
    _lock: RLock

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    def push(self, queue: str, messages: Sequence[Message]) -> list[int | None]:
        """Append messages; None for one whose dedup name is known already."""
        with self._lock:
            return [_push(self._tables, queue, message, self.now()) for message in messages]

    def receive(self, queue: str, limit: int, *, visibility: timedelta) -> list[Delivery]:
        """Return messages that are visible, oldest first, and hide them."""
        with self._lock:
            now, rows = self.now(), self._tables.queue
            firsts = {row.group: number for number, row in reversed(rows.items()) if row.queue == queue}
            visible = [
                number
                for number, row in rows.items()
                if row.queue == queue
                and row.visible_at <= now
                and (row.group is None or firsts[row.group] == number)
            ]
            taken = sorted(visible, key=lambda number: (rows[number].visible_at, number))[:limit]
            for number in taken:
                rows[number].visible_at = now + visibility
                rows[number].receives += 1
            return [_delivery(number, rows[number]) for number in taken]

    def ack(self, deliveries: Sequence[Delivery]) -> int:
        """Delete messages that were not received again since."""
        with self._lock:
            ours = self._fenced(deliveries)
            for number in ours:
                row = self._tables.queue.pop(number)
                if row.dedup is not None:
                    self._tables.queue_dedups[row.queue, row.dedup] = self.now() + REMEMBERED
            return len(ours)

    def nack(self, deliveries: Sequence[Delivery], *, delay: timedelta) -> int:
        """Make them visible after the delay, neither earlier nor later."""
        with self._lock:
            ours = self._fenced(deliveries)
            for number in ours:
                self._tables.queue[number].visible_at = self.now() + delay
            return len(ours)

    def queued(self, queue: str, dedups: Sequence[str]) -> frozenset[str]:
        """Return which of these dedup names are still in the queue."""
        with self._lock:
            names = {row.dedup for row in self._tables.queue.values() if row.queue == queue}
            return frozenset(dedup for dedup in dedups if dedup in names)

    def _fenced(self, deliveries: Sequence[Delivery]) -> set[int]:
        rows = self._tables.queue
        return {d.id for d in deliveries if d.id in rows and rows[d.id].receives == d.receives}


def _push(tables: Tables, queue: str, message: Message, now: datetime) -> int | None:
    if message.dedup is not None:
        queued = any((row.queue, row.dedup) == (queue, message.dedup) for row in tables.queue.values())
        remembered = tables.queue_dedups.get((queue, message.dedup))
        if queued or (remembered is not None and now < remembered):
            return None
    number = next(tables.queue_numbers)
    tables.queue[number] = Queued(
        queue=queue,
        group=message.group,
        dedup=message.dedup,
        body=message.body,
        created_at=now,
        visible_at=now,
    )
    return number


def _delivery(number: int, row: Queued) -> Delivery:
    return Delivery(number, row.body, row.group, row.receives, row.created_at)
