"""PostgreSQL's statements of the pass: claim, settle, promote.

Rules that were measured, not guessed: rows are picked by `ctid = ANY(ARRAY(SELECT .. LIMIT n FOR UPDATE SKIP
LOCKED))`, never by `IN (subquery LIMIT n)` and never by a join of the hot table with `unnest()`: both turn
quadratic when the planner has not seen the queue's present size. Leasing groups and reading their jobs are two
statements: the second one's snapshot must be younger than the locks.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from time import perf_counter
from typing import Any, Final

from psycopg import Cursor
from psycopg import errors as pg

from penstock.domain.job import Claim, Claimed, Context, Live
from penstock.domain.states import JobState
from penstock.ports.store import Ask
from penstock.stores.postgres import fairness, retention
from penstock.stores.postgres import statements as sql
from penstock.stores.postgres.arrays import array
from penstock.stores.postgres.database import Moved, PostgresDatabase, PostgresTx
from penstock.stores.postgres.hints import Hints
from penstock.stores.sql.database import Row
from penstock.stores.sql.hotpath import ClaimRow, Fence, LaneRow
from penstock.stores.sql.reading import as_edited
from penstock.stores.sql.said import Columns
from penstock.stores.sql.turns import Turns

_STATE: Final = sql.STATE
_SAID: Final = 2 + len(sql.RETURNED)
_REST: Final = (None,) * (len(Live._fields) - len(sql.RETURNED) - 4)
_BY_DUE: Final = itemgetter(sql.DUE_AT, sql.ARRIVAL)
_BY_PLACE: Final = itemgetter(sql.GRP, sql.ORD, sql.ARRIVAL)
_END: Final = _SAID + len(Context._fields)


class PostgresHotPath:
    """The statements; holds only where each lane's scans and rounds go on, which any process may forget."""

    def __init__(self) -> None:
        self._due = Hints(perf_counter, sql.EVER)
        self._wakes = Hints(perf_counter, 0)
        self._turns = Turns()
        self._tenanted: set[int] = set()

    def append_contexts(self, tx: PostgresTx, columns: Columns) -> None:
        """Append contexts by COPY; the trigger writes live rows, wakes and counter deltas."""
        own = dict(columns.own)
        if "run_at" in own:
            own["run_at"] = [run_at or tx.now for run_at in own["run_at"]]
        try:
            tx.copy("contexts", sql.ENQUEUED, columns.shared, own)
        except pg.UniqueViolation as error:  # a process was forked and both draw the same ids: draw others
            raise pg.SerializationFailure("an id was drawn twice") from error

    def insert_contexts(self, tx: PostgresTx, columns: Columns) -> set[str]:
        """Append those contexts whose ids are not taken."""
        rows, shared, own = columns
        said = {**{name: [value] * rows for name, value in shared.items()}, **own}
        arrays = [array(kind, said[name]) if name in said else None for name, kind in sql.ENQUEUED.items()]
        return {row[0] for row in tx.cursor.execute(sql.ENQUEUE, arrays).fetchall()}

    def claim(self, db: PostgresDatabase, ask: Ask, lane: LaneRow) -> Claim | None:
        """Move due unordered jobs into a claim."""
        return db.single(lambda tx: self._claim(tx, ask, lane))

    def claim_groups(self, db: PostgresDatabase, ask: Ask, lane: LaneRow) -> Claim | None:
        """Lease ready groups and move their heads or runs into a claim."""
        db.single(lambda tx: self._absorb(tx, lane.id))
        return db.write(lambda tx: self._claim_groups(tx, ask, lane))

    def settle_succeeded(
        self,
        db: PostgresDatabase,
        claim: Claim,
        lane: int,
        *,
        then: Callable[[PostgresTx], None] | None = None,
    ) -> bool:
        """Move a whole untouched claim to history."""
        params = {"epoch": claim.epoch}
        if then is not None:
            return db.write(lambda tx: self._settle_and(tx, claim, lane, then))
        if not claim.groups:
            return db.single(lambda tx: tx.cursor.execute(sql.SETTLE, params).rowcount > 0)
        groups = sorted({claimed.job.grp for claimed in claim.jobs if claimed.job.grp is not None})

        def work(tx: PostgresTx) -> Cursor[Row]:
            done = tx.connection.cursor().execute(sql.SETTLE, params)
            tx.cursor.execute(sql.LOCK_IF_CLOSED, _held(lane, groups, claim.epoch))
            tx.cursor.execute(sql.RELEASE_GROUPS, {"lane": lane})
            return done

        return db.queued(work).rowcount > 0

    def _settle_and(
        self, tx: PostgresTx, claim: Claim, lane: int, then: Callable[[PostgresTx], None]
    ) -> bool:
        """The same, and something more: whether it is ours must be known before that."""
        if not tx.cursor.execute(sql.SETTLE, {"epoch": claim.epoch}).rowcount:
            return False
        groups = sorted({claimed.job.grp for claimed in claim.jobs if claimed.job.grp is not None})
        self.release_groups(tx, lane, groups, claim.epoch)
        then(tx)
        return True

    def forget(self, tx: PostgresTx, keep: int, arrivals: Sequence[int]) -> None:
        """Empty the payload and headers of contexts."""
        tx.cursor.execute(sql.FORGET, {"keep": keep, "arrivals": array("bigint", arrivals)})

    def claim_row(self, tx: PostgresTx, epoch: int, *, lock: bool) -> ClaimRow | None:
        """Read one claim."""
        rows = tx.cursor.execute(sql.LOCKED_CLAIM if lock else sql.CLAIM_ROW, {"epoch": epoch}).fetchall()
        return _claim_row(rows[0]) if rows else None

    def claim_rows(self, tx: PostgresTx, epochs: Sequence[int]) -> list[ClaimRow]:
        """Read those of these claims that are there."""
        rows = tx.cursor.execute(sql.CLAIM_ROWS, {"epochs": list(epochs)}).fetchall() if epochs else []
        return [_claim_row(row) for row in rows]

    def claims_with(self, tx: PostgresTx, arrivals: Sequence[int]) -> list[ClaimRow]:
        """Read every claim that has one of these jobs; claims are few, their rows are looked through."""
        rows = tx.cursor.execute(sql.CLAIMS_WITH, {"arrivals": list(arrivals)}).fetchall() if arrivals else []
        return [_claim_row(row) for row in rows]

    def claims_of(self, tx: PostgresTx, arrivals: Sequence[int]) -> list[tuple[int, int]]:
        """Return the claims that each arrival is in; claims are few, their rows are looked through."""
        rows = tx.cursor.execute(sql.CLAIMS_OF, {"arrivals": list(arrivals)}).fetchall()
        return [(arrival, epoch) for arrival, epoch in rows]

    def lapsed_claims(self, tx: PostgresTx, limit: int) -> list[int]:
        """Lock claims whose lease ran out."""
        return [row[0] for row in tx.cursor.execute(sql.LAPSED, {"limit": limit})]

    def next_epoch(self, tx: PostgresTx) -> int:
        """Return a number no claim had before."""
        epoch: int = tx.fetch("SELECT nextval('penstock.epochs')")[0][0]
        return epoch

    def lock_groups(self, tx: PostgresTx, lane: int, groups: Sequence[str], epoch: int) -> None:
        """Lock groups in their order: absorbing locks in the same one, so the two never deadlock."""
        if groups:
            tx.cursor.execute(sql.LOCK_GROUPS, _held(lane, groups, epoch))

    def release_groups(self, tx: PostgresTx, lane: int, groups: Sequence[str], epoch: int) -> None:
        """Let go groups held by this claim."""
        if groups:
            # Once more: what was written to them since has moved them.
            self.lock_groups(tx, lane, groups, epoch)
            tx.cursor.execute(sql.RELEASE_GROUPS, {"lane": lane})

    def hand_over_groups(
        self, tx: PostgresTx, lane: int, groups: Sequence[str], *, old: int, new: int
    ) -> None:
        """Give groups held by one claim to the claim it became."""
        if groups:
            self.lock_groups(tx, lane, groups, old)
            tx.cursor.execute(sql.HAND_OVER_GROUPS, {"new": new})

    def wake(self, tx: PostgresTx, lane: int, groups: Sequence[str]) -> None:
        """Append a wake for each group."""
        if groups:
            tx.cursor.execute(sql.WAKE, {"lane": lane, "groups": array("text", groups)})

    def count(self, tx: PostgresTx, deltas: Mapping[tuple[int, int], int]) -> None:
        """Append counter deltas."""
        tx.insert("count_deltas", ("lane", "state", "n"), [(*key, n) for key, n in deltas.items()])

    def fold_counts(self, db: PostgresDatabase, fence: Fence) -> int:
        """Fold the deltas into the counters."""

        def work(tx: PostgresTx) -> int:
            fence(tx)
            return int(tx.fetch(sql.FOLD)[0][0])

        return db.write(work)

    def retire(self, db: PostgresDatabase, slice_rows: int, fence: Fence) -> int:  # noqa: ARG002
        """Make the partitions of the days ahead and drop those that are over."""
        return retention.retire(db, fence)

    def _claim(self, tx: PostgresTx, ask: Ask, lane: LaneRow) -> Claim | None:
        """Claim by age where nobody has a tenant, else by fair shares; the lane's last claim says what to try."""
        rows = self._oldest(tx, ask, lane) if lane.id not in self._tenanted else []
        if not rows:
            shares = fairness.shares(
                tx, self._turns, fairness.JOBS, lane=lane.id, ahead=ask.ahead, limit=ask.limit
            )
            if shares is not None:
                self._tenanted.add(lane.id)
                rows = tx.cursor.execute(sql.CLAIM_FAIR, _params(ask, lane) | shares).fetchall()
            elif lane.id in self._tenanted:
                self._tenanted.discard(lane.id)
                rows = self._oldest(tx, ask, lane)
        return _claim_of(tx, ask, lane, rows)

    def _oldest(self, tx: PostgresTx, ask: Ask, lane: LaneRow) -> list[Row]:
        params = _params(ask, lane)

        def scan(low: object) -> list[Row]:
            return tx.cursor.execute(sql.CLAIM, params | {"low": low}).fetchall()

        def ended(rows: list[Row]) -> tuple[int, object]:
            # Not right of now, however far ahead it claimed: what is enqueued next is due from now on.
            return len(rows), min(max(row[sql.DUE_AT] for row in rows), rows[0][1]) if rows else None

        return self._due.look(lane.id, scan, limit=ask.limit, ended=ended)

    def _absorb(self, tx: PostgresTx, lane: int) -> None:
        """Turn wakes into groups' next_at, batch by batch."""

        def scan(low: object) -> tuple[int, object]:
            found, last = tx.cursor.execute(sql.ABSORB, {"lane": lane, "low": low}).fetchall()[0]
            return found, last

        limit = sql.WAKES_PER_LOOK
        while self._wakes.look(lane, scan, limit=limit, ended=lambda found: found)[0] == limit:
            pass

    def _claim_groups(self, tx: PostgresTx, ask: Ask, lane: LaneRow) -> Claim | None:
        params = _params(ask, lane)
        while True:
            leased = tx.cursor.execute(sql.LEASE, params).fetchall() or self._lease_fair(tx, ask, lane)
            if not leased:
                return None
            epoch, groups = leased[0][0], [row[1] for row in leased]
            held = _held(lane.id, groups, epoch) | _dead(leased)
            rows = tx.cursor.execute(sql.RUNS, {**params, **held, "run": ask.run}).fetchall()
            if ask.run > 1 and rows and len(rows) < rows[0][-1]:
                raise Moved  # what stands behind the missing job must not go before it
            found = {row[sql.GRP] for row in rows}
            # A mark may have been too early: such a group is put right and, if nothing else came, others looked at.
            vain = sorted(group for group in groups if group not in found)
            self.release_groups(tx, lane.id, vain, epoch)
            if rows:
                return _claim_of(tx, ask, lane, rows, groups=True)

    def _lease_fair(self, tx: PostgresTx, ask: Ask, lane: LaneRow) -> list[Row]:
        shares = fairness.shares(
            tx, self._turns, fairness.GROUPS, lane=lane.id, ahead=ask.ahead, limit=ask.limit
        )
        return tx.cursor.execute(sql.LEASE_FAIR, _params(ask, lane) | shares).fetchall() if shares else []


def _params(ask: Ask, lane: LaneRow) -> dict[str, Any]:
    return {"lane": lane.id, "node": ask.node, "lease": ask.lease, "ahead": ask.ahead, "limit": ask.limit}


def _held(lane: int, groups: Sequence[str], epoch: int) -> dict[str, Any]:
    return {"lane": lane, "groups": array("text", groups), "epoch": epoch}


def _dead(leased: Sequence[Row]) -> dict[str, Any]:
    """Return what each leased group has that is dead."""
    sequences, arrivals = [row[2] for row in leased], [row[3] for row in leased]
    return {"dead_seqs": array("int", sequences), "dead_arrivals": array("bigint", arrivals)}


def _claim_of(
    tx: PostgresTx, ask: Ask, lane: LaneRow, rows: list[Row], *, groups: bool = False
) -> Claim | None:
    """Build the claim from the rows its statement returned, in the order of the claim's arrays."""
    if not rows:
        return None
    rows.sort(key=_BY_PLACE if groups else _BY_DUE)
    epoch, claimed_at = rows[0][0], rows[0][1]
    # What all jobs of a claim have in common: only ordered ones stand in the way of others.
    claimed, held = (JobState.CLAIMED,), (groups, epoch, ask.node, claimed_at, *_REST)
    new = tuple.__new__  # once per job, so a microsecond counts: the rows are as long as they must be
    jobs = [
        new(
            Claimed,
            (
                new(Live, row[2:_STATE] + claimed + row[_STATE + 1 : _SAID] + held),
                new(Context, row[_SAID:_END]) if row[_SAID] is not None else None,
            ),
        )
        for row in rows
    ]
    if any(row[sql.REVISION] for row in rows):
        jobs = as_edited(tx, jobs)
    return Claim(epoch, lane.name, ask.node, claimed_at, claimed_at + ask.lease, tuple(jobs), groups=groups)


def _live(lane: int, values: Sequence[Any], *, epoch: int, node: int, claimed_at: datetime) -> Live:
    """Build the row of a claimed job from TAKEN_COLUMNS."""
    (arrival, keep, due_at, order, mode, grp, tenant, start_by, attempt, max_attempts, send, open_, recoveries,
     deferrals, revision, since) = values  # fmt: skip
    return Live(
        arrival, lane, keep, mode, JobState.CLAIMED, order, grp, tenant, due_at, start_by, attempt, max_attempts,
        send, open_, recoveries, deferrals, revision, since, mode != 0, epoch, node, claimed_at,
    )  # fmt: skip


def _claim_row(row: Sequence[Any]) -> ClaimRow:
    """Read the columns of a claim."""
    (epoch, lane, node, claimed_at, lease_until, takeovers, groups, sending, settled), arrays = (
        row[:9],
        row[9:],
    )
    jobs = tuple(
        _live(lane, values, epoch=epoch, node=node, claimed_at=claimed_at)
        for values in zip(*_filled(arrays), strict=True)
    )
    mask = int.from_bytes(settled or b"", "big")
    return ClaimRow(epoch, lane, node, claimed_at, lease_until, takeovers, groups, sending, mask, jobs)


def _filled(arrays: Sequence[list[Any] | None]) -> list[list[Any]]:
    """Put back the arrays that were NULL because every job had the default."""
    first = arrays[0]
    assert first is not None  # noqa: S101
    pairs = zip(arrays, sql.DEFAULTS, strict=True)
    return [[default] * len(first) if array is None else array for array, default in pairs]
