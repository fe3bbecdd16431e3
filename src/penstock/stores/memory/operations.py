"""Bulk operations, as the model sees them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from threading import RLock

from penstock.domain.cursors import seal_names, unseal_names
from penstock.domain.filters import MAX_PAGE
from penstock.domain.job import Audit
from penstock.domain.leases import Term
from penstock.domain.operations import (
    OPEN,
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
from penstock.stores.memory import editing, listing, operating
from penstock.stores.memory.tables import Tables


class OperationsPart:
    """Bulk operations; `MemoryStore` brings the rows, the lock, the clock and the ids."""

    _tables: Tables
    _lock: RLock
    _ids: Callable[[], str]

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    def _fence(self, under: Term | None) -> None:
        raise NotImplementedError

    def start_operation(self, new: NewOperation) -> Operation:
        """Begin an operation."""
        with self._lock:
            query_of(new.verb, new.filter, now=self.now(), tenant=new.tenant)
            for known in self._tables.operations.values():
                if new.key is not None and known.key == new.key:
                    check_same(known, new)
                    return known
            check_room(new, [one.tenant for one in self.open_operations()])
            made = begun(new, id=self._ids(), now=self.now())
            self._tables.operations[made.id] = made
            self._note_operation(made, made.actor, "operation.start", made.reason)
            return made

    def operation(self, id: str) -> Operation | None:  # noqa: A002
        """Return one operation."""
        with self._lock:
            return self._tables.operations.get(id)

    def operations(self, *, limit: int = 50, after: str | None = None) -> OperationPage:
        """Return operations, newest first."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
        last = "~" if after is None else unseal_names(after, of="operations", names=1)[0]
        with self._lock:
            found = [one for id_, one in sorted(self._tables.operations.items(), reverse=True) if id_ < last]
        shown = found[:limit]
        more = len(found) > limit
        return OperationPage(shown, seal_names((shown[-1].id,), of="operations") if more else None)

    def open_operations(self) -> list[Operation]:
        """Return those that are not ended."""
        with self._lock:
            return [one for _, one in sorted(self._tables.operations.items()) if one.state in OPEN]

    def stop_operation(self, id: str, *, actor: str, reason: str) -> Operation:  # noqa: A002
        """Stop an operation where it is."""

        def work(found: Operation) -> Operation:
            stopped = found._replace(
                state=OperationState.STOPPED, finished_at=self.now(), stopped_by=actor, problem=None
            )
            self._note_operation(stopped, actor, "operation.stop", reason)
            return stopped

        return self._changed(id, None, work)

    def fail_operation(self, id: str, problem: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """End an operation that cannot go on."""

        def work(found: Operation) -> Operation:
            failed = found._replace(state=OperationState.FAILED, finished_at=self.now(), problem=problem)
            self._note_operation(failed, "leader", "operation.fail", problem)
            return failed

        return self._changed(id, under, work)

    def collect_operation(self, id: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """Note the next jobs that an operation is about."""

        def work(found: Operation) -> Operation:
            if found.state != OperationState.COLLECTING:
                return found
            query = query_of(Verb(found.verb), found.filter, now=found.created_at, tenant=found.tenant)
            page = listing.list_jobs(self._tables, replace(query, after=found.place), self.now())
            jobs = self._tables.operation_jobs.setdefault(id, set())
            jobs |= {meant(job) for job in page.jobs}
            return collected(found, len(page.jobs), page.next, len(jobs), self.now())

        return self._changed(id, under, work)

    def work_operation(self, id: str, *, under: Term | None = None) -> Operation:  # noqa: A002
        """Carry out the next slice."""

        def work(found: Operation) -> Operation:
            if found.state != OperationState.WORKING or self.now() < found.next_at:
                return found
            place = place_of(found)
            rest = sorted(one for one in self._tables.operation_jobs.get(id, ()) if one[:4] > place)
            rows = rest[: slice_of(found)]
            answers = [self._carry_out(found, row.id) for row in rows]
            after = worked(found, answers, rows[-1] if rows else None, now=self.now())
            if not rows:
                self._note_operation(after, "leader", "operation.done", after.reason)
            return after

        return self._changed(id, under, work)

    def _carry_out(self, operation: Operation, job_id: str) -> tuple[Effect, str]:
        tables = self._tables
        called = frozenset(one.arrival for one in tables.operation_jobs[operation.id])
        reason = f"{operation.reason} (operation {operation.id})"
        verb = Verb(operation.verb)
        order = operating.Order(verb, operation.actor, reason, self.now(), called, force=operation.force)
        if verb is Verb.EDIT:
            row = tables.row(tables.by_id.get(job_id, 0))
            lane = None if row is None else tables.lanes.get(tables.lane_names[row.lane])
            wanted = edit_of(operation.change, None if row is None else tables.context(row), lane)
            if isinstance(wanted, str):
                return Effect.REFUSED, wanted
            done = editing.edit(tables, job_id, wanted, order, replay=True)
        else:
            done = operating.operate_one(tables, order, job_id)
        return done.effect, done.text

    def _changed(
        self,
        id: str,  # noqa: A002
        under: Term | None,
        work: Callable[[Operation], Operation],
    ) -> Operation:
        with self._lock:
            self._fence(under)
            found = self._tables.operations.get(id)
            if found is None:
                raise NotFound("operation", id)
            after = work(found) if found.state in OPEN else found
            self._tables.operations[id] = after
            return after

    def _note_operation(self, operation: Operation, actor: str, action: str, reason: str) -> None:
        row = Audit(self.now(), None, None, actor, action, None, facts(operation), reason)
        self._tables.audit.append(row)
