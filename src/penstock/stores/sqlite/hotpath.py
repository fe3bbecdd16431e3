"""SQLite's statements of the pass: claim, settle, promote.

One writer at a time: no row locks, no wakes. Statements are set-based or run by `executemany`, which prepares
once; the order of joins is fixed by INDEXED BY where the planner would guess from stale statistics.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from penstock.domain.job import Claim, Claimed, Context, Live, NewJob
from penstock.domain.states import JobState
from penstock.ports.store import Ask
from penstock.stores.sql.hotpath import ClaimRow, Entry, LaneRow
from penstock.stores.sql.rows import CONTEXT_COLUMNS, HISTORY_COLUMNS, LIVE
from penstock.stores.sql.turns import Turns
from penstock.stores.sqlite.database import SqliteDatabase, SqliteTx, live
from penstock.stores.sqlite.fairness import GROUPS, JOBS, picked
from penstock.stores.sqlite.times import at_us, from_us, to_us

SLICE: Final = 1000
CONTEXT_INSERT: Final = """
    INSERT INTO penstock_contexts (keep, lane, mode, sequence, max_attempts, run_at, created_at, start_by,
        finish_by, id, message_group, tenant, key, target, headers, pool, entity, version, event, correlation, payload)
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"""
CONTEXTS: Final = f"""
    SELECT arrival, {", ".join(CONTEXT_COLUMNS)} FROM penstock_contexts
     WHERE arrival IN (SELECT value FROM json_each(?))"""
TAKE: Final = f"DELETE FROM penstock_jobs WHERE arrival IN (SELECT value FROM json_each(?)) RETURNING {LIVE}"
OPEN_CLAIM: Final = """
    INSERT INTO penstock_claims (id, claimed_at, lease_until, lane, node, groups, arrivals, jobs)
    VALUES (?,?,?,?,?,?,?,?)"""
NEXT_EPOCH: Final = "UPDATE penstock_epochs SET last = last + 1 RETURNING last"
LEASE_GROUP: Final = "UPDATE penstock_groups SET claim = ?, next_at = NULL WHERE lane = ? AND grp = ?"
# The first jobs of a group as far as they may go one after the other: domain/ordering.py's run(), in SQL.
RUN: Final = """
    SELECT arrival FROM (
      SELECT q.arrival, q.ord, min(q.state = 1 AND q.due_at <= :until AND NOT (q.mode = 2 AND g.dead_arrival IS NOT NULL
          AND (g.dead_seq, g.dead_arrival) < (CASE WHEN q.ord < 0 THEN q.ord + 2147483648 ELSE q.ord END, q.arrival)))
          OVER (ORDER BY q.ord, q.arrival) AS ok
        FROM (SELECT arrival, ord, state, due_at, mode FROM penstock_jobs INDEXED BY penstock_jobs_group
               WHERE lane = :lane AND grp = :grp AND holds ORDER BY ord, arrival LIMIT :run) q,
             penstock_groups g
       WHERE g.lane = :lane AND g.grp = :grp)
     WHERE ok ORDER BY ord, arrival"""
# What a group's row says of its head: domain/ordering.py's gate(), in SQL.
_HEAD: Final = """
    SELECT {column} FROM penstock_jobs j INDEXED BY penstock_jobs_group
     WHERE j.lane = ?1 AND j.grp = ?2 AND j.holds ORDER BY j.ord, j.arrival LIMIT 1"""
_BLOCKED: Final = """j.state = 1 AND j.mode = 2 AND dead_arrival IS NOT NULL AND
    (dead_seq, dead_arrival) < (CASE WHEN j.ord < 0 THEN j.ord + 2147483648 ELSE j.ord END, j.arrival)"""
REFRESH: Final = f"""
    UPDATE penstock_groups SET
      next_at = ({_HEAD.format(column=f"CASE WHEN j.state = 1 AND NOT ({_BLOCKED}) THEN j.due_at END")}),
      blocked = coalesce(({_HEAD.format(column=_BLOCKED)}), 0),
      tenant = ({_HEAD.format(column="j.tenant")})
     WHERE lane = ?1 AND grp = ?2"""
RELEASE: Final = REFRESH.replace("SET\n", "SET claim = NULL,\n", 1) + " AND claim = ?3"
DROP_EMPTY: Final = """
    DELETE FROM penstock_groups WHERE lane = ?1 AND grp = ?2
       AND claim IS NULL AND next_at IS NULL AND dead_arrival IS NULL AND NOT paused
       AND NOT EXISTS (SELECT 1 FROM penstock_jobs INDEXED BY penstock_jobs_group
                        WHERE lane = ?1 AND grp = ?2 AND holds)"""
COUNT: Final = """
    INSERT INTO penstock_counts (lane, state, n) VALUES (?,?,?)
    ON CONFLICT (lane, state) DO UPDATE SET n = n + excluded.n"""
HISTORY_INSERT: Final = f"""
    INSERT INTO penstock_history ({", ".join(HISTORY_COLUMNS)}) VALUES ({",".join("?" * len(HISTORY_COLUMNS))})"""
CLAIM: Final = """
    SELECT id, lane, node, claimed_at, lease_until, takeovers, groups, sending, settled, jobs
      FROM penstock_claims WHERE id = ?"""


class SqliteHotPath:
    """The statements; holds nothing but each lane's place in the round of tenants."""

    def __init__(self) -> None:
        self._turns = Turns()

    def insert_contexts(self, tx: SqliteTx, entries: Sequence[Entry]) -> set[str]:
        """Append contexts; the trigger writes the live rows and marks the groups."""
        now = to_us(tx.now)
        tx.connection.executemany(CONTEXT_INSERT, (_context_values(*entry, now) for entry in entries))
        return {entry.id for entry in entries}

    def claim(self, db: SqliteDatabase, ask: Ask, lane: LaneRow) -> Claim | None:
        """Move due unordered jobs into a claim."""

        def work(tx: SqliteTx) -> Claim | None:
            until = to_us(tx.now + ask.ahead)
            arrivals = picked(tx.connection, self._turns, JOBS, lane=lane.id, until=until, limit=ask.limit)
            jobs = sorted(_take(tx, arrivals), key=lambda job: (job.due_at, job.arrival))
            return self._open(tx, ask, lane, jobs, groups=False)

        return db.write(work)

    def claim_groups(self, db: SqliteDatabase, ask: Ask, lane: LaneRow) -> Claim | None:
        """Lease ready groups and move their heads or runs into a claim."""

        def work(tx: SqliteTx) -> Claim | None:
            until = to_us(tx.now + ask.ahead)
            epoch, jobs, wanted = self.next_epoch(tx), [], ask.limit
            while wanted:
                groups = picked(tx.connection, self._turns, GROUPS, lane=lane.id, until=until, limit=wanted)
                if not groups:
                    break
                tx.connection.executemany(LEASE_GROUP, [(epoch, lane.id, group) for group in groups])
                taken = _take_runs(tx, lane.id, groups, until=until, run=ask.run)
                jobs += taken
                found = {job.grp for job in taken}
                # A mark may have been out of date: such a group is put right and another looked at instead.
                self.release_groups(tx, lane.id, [group for group in groups if group not in found], epoch)
                wanted -= len(found)
            jobs.sort(key=lambda job: (job.grp or "", job.ord, job.arrival))
            return self._open(tx, ask, lane, jobs, groups=True, epoch=epoch)

        return db.write(work)

    def settle_succeeded(self, db: SqliteDatabase, claim: Claim, lane: int) -> bool:
        """Move a whole untouched claim to history."""

        def work(tx: SqliteTx) -> bool:
            sql = "DELETE FROM penstock_claims WHERE id = ? AND settled IS NULL"
            if not tx.connection.execute(sql, (claim.epoch,)).rowcount:
                return False
            now, node, claimed_at = to_us(tx.now), claim.node, to_us(claim.claimed_at)
            rows = (_succeeded(claimed.job, claim.epoch, node, claimed_at, now) for claimed in claim.jobs)
            tx.connection.executemany(HISTORY_INSERT, rows)
            self.count(tx, {(lane, 2): -len(claim.jobs), (lane, 10): len(claim.jobs)})
            if claim.groups:
                groups = sorted({claimed.job.grp for claimed in claim.jobs if claimed.job.grp is not None})
                self.release_groups(tx, lane, groups, claim.epoch)
            return True

        return db.write(work)

    def claim_row(self, tx: SqliteTx, epoch: int, *, lock: bool) -> ClaimRow | None:  # noqa: ARG002
        """Read one claim."""
        row = tx.connection.execute(CLAIM, (epoch,)).fetchone()
        if row is None:
            return None
        claimed_at = at_us(row[3])
        jobs = tuple(
            live(values)._replace(state=JobState.CLAIMED, epoch=row[0], node=row[2], claimed_at=claimed_at)
            for values in json.loads(row[9])
        )
        mask = int.from_bytes(row[8] or b"", "big")
        return ClaimRow(
            row[0], row[1], row[2], claimed_at, at_us(row[4]), row[5], bool(row[6]), bool(row[7]), mask, jobs
        )

    def claims_of(self, tx: SqliteTx, arrivals: Sequence[int]) -> dict[int, int]:
        """Return the epoch of the claim that holds each arrival."""
        sql = """SELECT j.value, c.id FROM penstock_claims c, json_each(c.arrivals) j
                  WHERE j.value IN (SELECT value FROM json_each(?))"""
        return dict(tx.connection.execute(sql, (json.dumps(list(arrivals)),)).fetchall())

    def lapsed_claims(self, tx: SqliteTx, limit: int) -> list[int]:
        """Return claims whose lease ran out, oldest first."""
        sql = "SELECT id FROM penstock_claims WHERE lease_until < ? ORDER BY lease_until, id LIMIT ?"
        return [row[0] for row in tx.connection.execute(sql, (to_us(tx.now), limit))]

    def next_epoch(self, tx: SqliteTx) -> int:
        """Return a number no claim had before."""
        epoch: int = tx.connection.execute(NEXT_EPOCH).fetchall()[0][0]
        return epoch

    def lock_groups(self, tx: SqliteTx, lane: int, groups: Sequence[str], epoch: int) -> None:
        """Nothing to do: the transaction is the only writer."""

    def release_groups(self, tx: SqliteTx, lane: int, groups: Sequence[str], epoch: int) -> None:
        """Let go groups held by this claim."""
        if groups:
            tx.connection.executemany(RELEASE, [(lane, group, epoch) for group in groups])
            tx.connection.executemany(DROP_EMPTY, [(lane, group) for group in groups])

    def wake(self, tx: SqliteTx, lane: int, groups: Sequence[str]) -> None:
        """Put right what these groups' rows say of their heads, whoever holds them."""
        if groups:
            rows = [(lane, group) for group in groups]
            tx.connection.executemany(
                "INSERT INTO penstock_groups (lane, grp) VALUES (?,?) ON CONFLICT DO NOTHING", rows
            )
            tx.connection.executemany(REFRESH, rows)
            tx.connection.executemany(DROP_EMPTY, rows)

    def count(self, tx: SqliteTx, deltas: Mapping[tuple[int, int], int]) -> None:
        """Add to the counters; one writer, so there is no hot row to avoid."""
        tx.connection.executemany(COUNT, [(lane, state, n) for (lane, state), n in deltas.items()])

    def fold_counts(self, db: SqliteDatabase) -> int:  # noqa: ARG002
        """Nothing to fold."""
        return 0

    def retire(self, db: SqliteDatabase, slice_rows: int) -> int:
        """Delete a slice of what retention no longer keeps."""
        return db.write(lambda tx: _retire(tx, slice_rows))

    def _open(
        self,
        tx: SqliteTx,
        ask: Ask,
        lane: LaneRow,
        jobs: list[Live],
        *,
        groups: bool,
        epoch: int | None = None,
    ) -> Claim | None:
        if not jobs:
            return None
        epoch = epoch or self.next_epoch(tx)
        now, until = tx.now, tx.now + ask.lease
        arrivals = json.dumps([job.arrival for job in jobs])
        stored = json.dumps([_stored(job) for job in jobs])
        values = (epoch, to_us(now), to_us(until), lane.id, ask.node, groups, arrivals, stored)
        tx.connection.execute(OPEN_CLAIM, values)
        self.count(tx, {(lane.id, 1): -len(jobs), (lane.id, 2): len(jobs)})
        contexts = _contexts(tx, arrivals)
        claimed = tuple(
            Claimed(
                job._replace(state=JobState.CLAIMED, epoch=epoch, node=ask.node, claimed_at=now),
                contexts.get(job.arrival),
            )
            for job in jobs
        )
        return Claim(epoch, lane.name, ask.node, now, until, claimed, groups=groups)


def _context_values(job: NewJob, lane: LaneRow, id_: str, now: int) -> tuple[Any, ...]:
    mode = lane.mode if job.mode is None else job.mode
    return (
        lane.keep, lane.id, int(mode), job.sequence, job.max_attempts,
        now if job.run_at is None else to_us(job.run_at), now,
        None if job.start_by is None else to_us(job.start_by),
        None if job.finish_by is None else to_us(job.finish_by),
        id_, job.group, job.tenant, job.key, job.target, job.headers, job.pool, job.entity, job.version,
        job.event, job.correlation, job.payload,
    )  # fmt: skip


def _take(tx: SqliteTx, arrivals: Sequence[int]) -> list[Live]:
    return [live(row) for row in tx.connection.execute(TAKE, (json.dumps(arrivals),)).fetchall()]


def _take_runs(tx: SqliteTx, lane: int, groups: Sequence[str], *, until: int, run: int) -> list[Live]:
    arrivals: list[int] = []
    for group in groups:
        params = {"lane": lane, "grp": group, "until": until, "run": run}
        arrivals += [row[0] for row in tx.connection.execute(RUN, params)]
    return _take(tx, arrivals)


_CONTEXT_TIMES: Final = tuple(map(Context._fields.index, ("run_at", "created_at", "finish_by")))


def _contexts(tx: SqliteTx, arrivals: str) -> dict[int, Context]:
    found = {}
    for row in tx.connection.execute(CONTEXTS, (arrivals,)):
        values = list(row[1:])
        for index in _CONTEXT_TIMES:
            values[index] = from_us(values[index])
        found[row[0]] = Context._make(values)
    return found


def _stored(job: Live) -> list[Any]:
    return [to_us(value) if isinstance(value, datetime) else value for value in job]


def _succeeded(job: Live, epoch: int, node: int, claimed_at: int, now: int) -> tuple[Any, ...]:
    return (
        job.arrival, job.lane, job.keep, job.mode, 10, job.ord, job.grp, job.tenant, to_us(job.due_at),
        None if job.start_by is None else to_us(job.start_by), job.attempt + 1, job.max_attempts,
        job.current_send, job.recoveries, job.deferrals, job.revision, epoch, node, claimed_at,
        None, None, None, None, now, None, None,
    )  # fmt: skip


def _retire(tx: SqliteTx, slice_rows: int) -> int:
    connection = tx.connection
    arrivals: list[int] = []
    for (keep,) in connection.execute("SELECT DISTINCT keep FROM penstock_lanes").fetchall():
        before = to_us(tx.now) - keep * 86_400_000_000
        sql = """SELECT arrival FROM penstock_history INDEXED BY penstock_history_old
                  WHERE keep = ? AND finished_at < ? ORDER BY finished_at LIMIT ?"""
        arrivals += [row[0] for row in connection.execute(sql, (keep, before, slice_rows - len(arrivals)))]
    ids = [(arrival,) for arrival in arrivals]
    for table in ("history", "attempts", "contexts", "revisions", "requests"):
        connection.executemany(f"DELETE FROM penstock_{table} WHERE arrival = ?", ids)
    return len(arrivals)
