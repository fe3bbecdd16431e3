"""Bulk operations: domain/operations.py has the rules, this module the rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from penstock.domain.cursors import seal_names, unseal_names
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import Audit
from penstock.domain.lanes import Lane
from penstock.domain.leases import Term
from penstock.domain.operations import (
    KEPT,
    MOST_OPEN,
    OPEN,
    Meant,
    NewOperation,
    Operation,
    OperationPage,
    OperationState,
    begun,
    check_room,
    check_same,
    collected,
    edit_of,
    facts,
    meant,
    place_of,
    query_of,
    slice_of,
    worked,
)
from penstock.domain.states import Effect, Verb
from penstock.errors import InvalidQuery, NotFound
from penstock.stores.sql import editing, listing, nodes, verbs
from penstock.stores.sql.database import Database, Row, Tx, one
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.lanes import load_lanes
from penstock.stores.sql.reading import contexts_of, locate
from penstock.stores.sql.rows import AUDIT_COLUMNS

T = TypeVar("T")
COLUMNS: Final = Operation._fields
_ALL: Final = ", ".join(COLUMNS)
ONE: Final = f"SELECT {_ALL} FROM penstock.operations WHERE id = :id"
# Before the places are counted: many at once would all find the same one free. SQLite has one writer anyway.
ALONE: Final = {"postgres": "SELECT pg_advisory_xact_lock(7070, 9)", "sqlite": "SELECT 1"}
ADD: Final = f"""
    INSERT INTO penstock.operations ({_ALL}) VALUES ({", ".join(f":{name}" for name in COLUMNS)})"""
BY_KEY: Final = f"SELECT {_ALL} FROM penstock.operations WHERE key = :key"
UNENDED: Final = f"SELECT {_ALL} FROM penstock.operations WHERE finished_at IS NULL ORDER BY id LIMIT :few"
PAGE: Final = f"SELECT {_ALL} FROM penstock.operations WHERE id < :last ORDER BY id DESC LIMIT :limit"
_CHANGING: Final = COLUMNS[COLUMNS.index("state") :]
CHANGE: Final = (
    f"UPDATE penstock.operations SET {', '.join(f'{name} = :{name}' for name in _CHANGING)} WHERE id = :id"
)
COUNT: Final = "SELECT count(*) FROM penstock.operation_jobs WHERE operation = :id"
NEXT: Final = f"""
    SELECT {", ".join(Meant._fields)} FROM penstock.operation_jobs
     WHERE operation = :id AND (lane, grp, seq, arrival) > (:lane, :grp, :seq, :arrival)
     ORDER BY operation, lane, grp, seq, arrival LIMIT :limit"""
ENDED: Final = """
    SELECT o.id FROM penstock.operations o WHERE o.finished_at < :before
       AND NOT EXISTS (SELECT 1 FROM penstock.operation_jobs j WHERE j.operation = o.id)
     ORDER BY o.finished_at LIMIT :few"""
LEFT: Final = """
    SELECT o.id FROM penstock.operations o WHERE o.finished_at IS NOT NULL
       AND EXISTS (SELECT 1 FROM penstock.operation_jobs j WHERE j.operation = o.id) LIMIT 1"""
FORGET: Final = "DELETE FROM penstock.operation_jobs WHERE operation = :id AND arrival = ANY(:arrivals)"
OLDEST: Final = "SELECT arrival FROM penstock.operation_jobs WHERE operation = :id LIMIT :limit"
DROP: Final = "DELETE FROM penstock.operations WHERE id = ANY(:ids)"
FIRST: Final = "~"  # behind every id
FEW: Final = 100


class OperationsPart:
    """Bulk operations; `SqlStore` brings the database."""

    __slots__ = ()
    db: Database
    hot: HotPath
    ids: Callable[[], str]

    def start_operation(self, new: NewOperation) -> Operation:
        """Begin an operation."""

        def work(tx: Tx) -> Operation:
            query_of(new.verb, new.filter, now=tx.now, tenant=new.tenant)
            tx.fetch(ALONE[self.db.dialect])
            if (known := _begun_as(tx, new)) is not None:
                return known
            check_room(new, [_operation(tx, row).tenant for row in tx.fetch(UNENDED, few=MOST_OPEN)])
            made = begun(new, id=self.ids(), now=tx.now)
            tx.execute(ADD, **made._asdict())
            _note(tx, made, made.actor, "operation.start", made.reason)
            return made

        return self.db.write(work)

    def operation(self, id: str) -> Operation | None:  # noqa: A002
        """Return one operation."""

        def look(tx: Tx) -> Operation | None:
            row = one(tx.fetch(ONE, id=id))
            return None if row is None else _operation(tx, row)

        return self.db.read(look)

    def operations(self, *, limit: int = 50, after: str | None = None) -> OperationPage:
        """Return operations, newest first."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
        last = FIRST if after is None else unseal_names(after, of="operations", names=1)[0]
        found = self.db.read(
            lambda tx: [_operation(tx, row) for row in tx.fetch(PAGE, last=last, limit=limit + 1)]
        )
        shown = found[:limit]
        more = len(found) > limit
        return OperationPage(shown, seal_names((shown[-1].id,), of="operations") if more else None)

    def open_operations(self) -> list[Operation]:
        """Return those that are not ended."""
        return self.db.read(lambda tx: [_operation(tx, row) for row in tx.fetch(UNENDED, few=MOST_OPEN)])

    def stop_operation(self, id: str, *, actor: str, reason: str) -> Operation:  # noqa: A002
        """Stop an operation where it is."""

        def work(tx: Tx, found: Operation) -> Operation:
            stopped = found._replace(
                state=OperationState.STOPPED, finished_at=tx.now, stopped_by=actor, problem=None
            )
            _note(tx, stopped, actor, "operation.stop", reason)
            return stopped

        return self._changed(id, None, work)

    def fail_operation(self, id: str, problem: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """End an operation that cannot go on."""

        def work(tx: Tx, found: Operation) -> Operation:
            failed = found._replace(state=OperationState.FAILED, finished_at=tx.now, problem=problem)
            _note(tx, failed, "leader", "operation.fail", problem)
            return failed

        return self._changed(id, under, work)

    def collect_operation(self, id: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """Note the next jobs that an operation is about."""
        before = self.operation(id)
        if before is None or before.state != OperationState.COLLECTING:
            return self._changed(id, under, lambda _, found: found)
        query = query_of(Verb(before.verb), before.filter, now=before.created_at, tenant=before.tenant)
        page = self.db.snapshot(
            lambda tx: listing.list_jobs(tx, self.hot, replace(query, after=before.place))
        )

        def work(tx: Tx, found: Operation) -> Operation:
            if (found.state, found.place) != (before.state, before.place):
                return found  # somebody else took this page meanwhile
            rows = [(id, *meant(job)) for job in page.jobs]
            tx.insert(
                "operation_jobs", ("operation", *Meant._fields), rows, on_conflict="ON CONFLICT DO NOTHING"
            )
            total = found.found if page.next else tx.fetch(COUNT, id=id)[0][0]
            return collected(found, len(rows), page.next, total, tx.now)

        return self._changed(id, under, work)

    def work_operation(self, id: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """Carry out the next slice."""

        def work(tx: Tx, found: Operation) -> Operation:
            if found.state != OperationState.WORKING or tx.now < found.next_at:
                return found
            place = dict(zip(("lane", "grp", "seq", "arrival"), place_of(found), strict=True))
            rows = [Meant._make(row) for row in tx.fetch(NEXT, id=id, limit=slice_of(found), **place)]
            after = worked(
                found, _carry_out(tx, self.hot, found, rows), rows[-1] if rows else None, now=tx.now
            )
            if not rows:
                _note(tx, after, "leader", "operation.done", after.reason)
            return after

        return self._changed(id, under, work)

    def _changed(
        self,
        id: str,  # noqa: A002
        under: Term | None,
        work: Callable[[Tx, Operation], Operation],
    ) -> Operation:
        """Change one operation that is not ended, alone."""

        def change(tx: Tx) -> Operation:
            nodes.fence_of(under)(tx)
            row = one(tx.fetch(f"{ONE} FOR UPDATE", id=id))
            if row is None:
                raise NotFound("operation", id)
            found = _operation(tx, row)
            after = work(tx, found) if found.state in OPEN else found
            if after != found:
                values = {name: getattr(after, name) for name in _CHANGING}
                tx.execute(CHANGE, id=id, **values)
            return after

        return self.db.write(change)


def drop_operations(tx: Tx, limit: int) -> int:
    """Drop the jobs of operations that ended, a slice at a time, and in the end the operations."""
    most = 0
    for (ended,) in tx.fetch(LEFT):
        arrivals = [row[0] for row in tx.fetch(OLDEST, id=ended, limit=limit)]
        tx.execute(FORGET, id=ended, arrivals=arrivals)
        most = max(most, len(arrivals))
    old = [row[0] for row in tx.fetch(ENDED, before=tx.now - KEPT, few=FEW)]
    if old:
        tx.execute(DROP, ids=old)
    return most


def _carry_out(tx: Tx, hot: HotPath, operation: Operation, rows: list[Meant]) -> list[tuple[Effect, str]]:
    if not rows:
        return []
    order = verbs.Order(
        verb=Verb(operation.verb),
        actor=operation.actor,
        reason=f"{operation.reason} (operation {operation.id})",
        force=operation.force,
        now=tx.now,
        operation=operation.id,
    )
    if order.verb is Verb.EDIT:
        lanes = {known.id: known for known in load_lanes(tx).values()}
        return [_edited(tx, hot, operation, order, row=row, lane=lanes.get(row.lane)) for row in rows]
    answers = verbs.operate(tx, hot, [row.id for row in rows], order)
    return [(answer.effect, answer.text) for answer in answers]


def _edited(
    tx: Tx, hot: HotPath, operation: Operation, order: verbs.Order, *, row: Meant, lane: Lane | None
) -> tuple[Effect, str]:
    live = locate(tx, hot, [row.arrival], lock=True).row(row.arrival)
    context = None if live is None else contexts_of(tx, [live]).get(row.arrival)
    wanted = edit_of(operation.change, context, lane)
    if isinstance(wanted, str):
        return Effect.REFUSED, wanted
    done = editing.edit(tx, hot, row.id, wanted, order, replay=True)
    return done.effect, done.text


def _operation(tx: Tx, row: Row) -> Operation:
    found = Operation._make(row)
    created, after = tx.time(found.created_at), tx.time(found.next_at)
    return found._replace(
        force=bool(found.force),
        created_at=created or tx.now,
        next_at=after or tx.now,
        finished_at=tx.time(found.finished_at),
    )


def _begun_as(tx: Tx, new: NewOperation) -> Operation | None:
    """Return the operation that was begun under the same key; it must be the same one."""
    row = None if new.key is None else one(tx.fetch(BY_KEY, key=new.key))
    if row is None:
        return None
    known = _operation(tx, row)
    check_same(known, new)
    return known


def _note(tx: Tx, operation: Operation, actor: str, action: str, reason: str) -> None:
    row = Audit(tx.now, None, None, actor, action, None, facts(operation), reason)
    tx.insert("audit", AUDIT_COLUMNS, [row])
