"""SQLite's statements of the pass: claim, settle, promote.

One writer at a time: no row locks, no wakes. Statements are set-based or run by `executemany`, which prepares
once; the order of joins is fixed by INDEXED BY where the planner would guess from stale statistics.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

from penstock.domain.job import Claim, Claimed, Context, Live
from penstock.domain.lanes import RETENTION_DAYS
from penstock.domain.states import JobState
from penstock.ports.store import Ask
from penstock.stores.sql.database import Row
from penstock.stores.sql.hotpath import ClaimRow, Fence, LaneRow
from penstock.stores.sql.reading import as_edited
from penstock.stores.sql.rows import CONTEXT_COLUMNS, LIVE_COLUMNS, forget_notes
from penstock.stores.sql.said import Columns
from penstock.stores.sql.turns import Turns
from penstock.stores.sqlite.database import SqliteDatabase, SqliteTx
from penstock.stores.sqlite.fairness import GROUPS, JOBS, picked, shares
from penstock.stores.sqlite.times import at_us, from_us, time_of, to_us

_TIMES: Final = frozenset({"run_at", "start_by", "finish_by"})
# What a claim needs of a live row: the rest of a pending row always has its default.
_TAKEN: Final = LIVE_COLUMNS[: LIVE_COLUMNS.index("holds")]
_NOT_YET: Final = (None,) * (len(LIVE_COLUMNS) - len(_TAKEN) - 4)  # behind holds, epoch, node and claimed_at
_WITH_CONTEXT: Final = f"""
    SELECT {", ".join(f"j.{column}" for column in _TAKEN)}, {", ".join(f"x.{column}" for column in CONTEXT_COLUMNS)}
      FROM {{source}} LEFT JOIN penstock_contexts x ON x.arrival = j.arrival"""
TAKEN: Final = _WITH_CONTEXT.format(source="json_each(?) k CROSS JOIN penstock_jobs j ON j.arrival = k.value")
OLDEST: Final = f"""
    {_WITH_CONTEXT.format(source="penstock_jobs j INDEXED BY penstock_jobs_due")}
     WHERE j.lane = :lane AND j.mode = 0 AND j.state = 1 AND j.tenant IS NULL AND j.due_at <= :until
     ORDER BY j.due_at, j.arrival LIMIT :limit"""
TAKE: Final = "DELETE FROM penstock_jobs WHERE arrival IN (SELECT value FROM json_each(?))"
OPEN_CLAIM: Final = """
    INSERT INTO penstock_claims (id, claimed_at, lease_until, lane, node, groups, arrivals, jobs)
    VALUES (?,?,?,?,?,?,?,?)"""
NEXT_EPOCH: Final = "UPDATE penstock_epochs SET last = last + 1 RETURNING last"
_THESE: Final = "lane = :lane AND grp IN (SELECT value FROM json_each(:groups))"
LEASE_GROUPS: Final = f"UPDATE penstock_groups SET claim = :epoch, next_at = NULL WHERE {_THESE}"
# The first jobs of each leased group as far as they may go one after the other: domain/ordering.py's run(), in SQL.
RUNS: Final = """
    SELECT arrival FROM (
      SELECT j.arrival, min(j.state = 1 AND j.due_at <= :until AND NOT (j.mode = 2 AND g.dead_arrival IS NOT NULL
          AND (g.dead_seq, g.dead_arrival) < (CASE WHEN j.ord < 0 THEN j.ord + 2147483648 ELSE j.ord END, j.arrival)))
          OVER (PARTITION BY k.key ORDER BY j.ord, j.arrival) AS ok
        FROM json_each(:groups) k
       CROSS JOIN penstock_groups g ON g.lane = :lane AND g.grp = k.value
       CROSS JOIN penstock_jobs j ON j.arrival IN (
          SELECT arrival FROM penstock_jobs INDEXED BY penstock_jobs_group
           WHERE lane = :lane AND grp = k.value AND holds ORDER BY ord, arrival LIMIT :run))
     WHERE ok"""
# What a group's row says of its head: domain/ordering.py's gate(), in SQL.
_BLOCKED: Final = """j.state = 1 AND j.mode = 2 AND dead_arrival IS NOT NULL AND
    (dead_seq, dead_arrival) < (CASE WHEN j.ord < 0 THEN j.ord + 2147483648 ELSE j.ord END, j.arrival)"""
_FROM_HEAD: Final = f"""(next_at, blocked, tenant) = (
    SELECT CASE WHEN j.state = 1 AND NOT ({_BLOCKED}) THEN j.due_at END, coalesce({_BLOCKED}, 0), j.tenant
      FROM (SELECT 1) LEFT JOIN penstock_jobs j ON j.arrival = (
        SELECT arrival FROM penstock_jobs INDEXED BY penstock_jobs_group
         WHERE lane = :lane AND grp = penstock_groups.grp AND holds ORDER BY ord, arrival LIMIT 1))"""
MAKE_GROUPS: Final = """
    INSERT INTO penstock_groups (lane, grp) SELECT :lane, value FROM json_each(:groups) WHERE true
        ON CONFLICT DO NOTHING"""
REFRESH: Final = f"UPDATE penstock_groups SET {_FROM_HEAD} WHERE {_THESE}"
RELEASE: Final = f"UPDATE penstock_groups SET claim = NULL, {_FROM_HEAD} WHERE {_THESE} AND claim = :epoch"
HAND_OVER: Final = f"UPDATE penstock_groups SET claim = :new WHERE {_THESE} AND claim = :old"
DROP_EMPTY: Final = f"""
    DELETE FROM penstock_groups WHERE {_THESE}
       AND claim IS NULL AND next_at IS NULL AND dead_arrival IS NULL AND NOT paused
       AND NOT EXISTS (SELECT 1 FROM penstock_jobs j INDEXED BY penstock_jobs_group
                        WHERE j.lane = :lane AND j.grp = penstock_groups.grp AND j.holds)"""
COUNT: Final = """
    INSERT INTO penstock_counts (lane, state, n) VALUES (?,?,?)
    ON CONFLICT (lane, state) DO UPDATE SET n = n + excluded.n"""
# What a live row usually is, and what its history then holds. The rest differs, or nobody knows it: NULL.
_USUAL: Final[Mapping[str, object]] = {
    "mode": 0, "grp": None, "tenant": None, "start_by": None, "attempt": 0, "max_attempts": None, "send": 0,
    "open": False, "recoveries": 0, "deferrals": 0, "revision": 0,
}  # fmt: skip
_HELD: Final = ("epoch", "node", "claimed_at", "finished_at")
_CLAIM: Final = """
    SELECT id, lane, node, claimed_at, lease_until, takeovers, groups, sending, settled, jobs
      FROM penstock_claims WHERE"""
CLAIM: Final = f"{_CLAIM} id = ?"
CLAIM_ROWS: Final = f"{_CLAIM} id IN (SELECT value FROM json_each(?))"
CLAIMS_WITH: Final = f"""{_CLAIM} EXISTS (SELECT 1 FROM json_each(penstock_claims.arrivals) j
    WHERE j.value IN (SELECT value FROM json_each(?)))"""


_HOT: Final = len(_TAKEN)
_GRP: Final = _TAKEN.index("grp")
_REVISION: Final = _TAKEN.index("revision")
_BY_DUE: Final = itemgetter(_TAKEN.index("due_at"), 0)
_BY_PLACE: Final = itemgetter(_GRP, _TAKEN.index("ord"), 0)

OLD_HISTORY: Final = """
    SELECT arrival, lane, state FROM penstock_history INDEXED BY penstock_history_old
     WHERE keep = ? AND finished_at < ? ORDER BY finished_at LIMIT ?"""


class SqliteHotPath:
    """The statements; holds nothing but each lane's place in the round of tenants."""

    def __init__(self) -> None:
        self._turns = Turns()

    def append_contexts(self, tx: SqliteTx, columns: Columns) -> None:
        """Append contexts; the trigger writes the live rows and marks the groups."""
        now = to_us(tx.now)
        shared = {"created_at": now, "run_at": now}
        shared |= {name: _stored(name, [value], now)[0] for name, value in columns.shared.items()}
        own = {name: _stored(name, column, now) for name, column in columns.own.items()}
        said = {name: repeat(value) for name, value in shared.items() if name not in own} | own
        tx.connection.executemany(context_insert(tuple(said)), zip(*said.values()))  # noqa: B905 - some are endless

    def insert_contexts(self, tx: SqliteTx, columns: Columns) -> set[str]:
        """Append contexts: there is no other writer, so what was not taken is new."""
        self.append_contexts(tx, columns)
        return set(columns.own["id"])

    def claim(self, db: SqliteDatabase, ask: Ask, lane: LaneRow) -> Claim | None:
        """Move due unordered jobs into a claim."""

        def work(tx: SqliteTx) -> Claim | None:
            until = to_us(tx.now + ask.ahead)
            asked = {"lane": lane.id, "until": until, "limit": ask.limit}
            fair = shares(tx.connection, self._turns, JOBS, **asked)
            if fair is None:
                rows = tx.connection.execute(OLDEST, asked).fetchall()
            else:
                rows = sorted(tx.connection.execute(TAKEN, (json.dumps(fair),)).fetchall(), key=_BY_DUE)
            return self._open(tx, ask, lane, rows, groups=False, epoch=None)

        return db.write(work)

    def claim_groups(self, db: SqliteDatabase, ask: Ask, lane: LaneRow) -> Claim | None:
        """Lease ready groups and move their heads or runs into a claim."""

        def work(tx: SqliteTx) -> Claim | None:
            until = to_us(tx.now + ask.ahead)
            epoch, rows, wanted = self.next_epoch(tx), list[Row](), ask.limit
            while wanted:
                groups = picked(tx.connection, self._turns, GROUPS, lane=lane.id, until=until, limit=wanted)
                if not groups:
                    break
                these = {"lane": lane.id, "groups": json.dumps(groups)}
                tx.connection.execute(LEASE_GROUPS, {**these, "epoch": epoch})
                firsts = tx.connection.execute(RUNS, {**these, "until": until, "run": ask.run})
                arrivals = json.dumps([row[0] for row in firsts])
                taken = tx.connection.execute(TAKEN, (arrivals,)).fetchall()
                rows += taken
                found = {row[_GRP] for row in taken}
                # A mark may have been out of date: such a group is put right and another looked at instead.
                self.release_groups(tx, lane.id, [group for group in groups if group not in found], epoch)
                wanted -= len(found)
            rows.sort(key=_BY_PLACE)
            return self._open(tx, ask, lane, rows, groups=True, epoch=epoch)

        return db.write(work)

    def settle_succeeded(
        self, db: SqliteDatabase, claim: Claim, lane: int, *, then: Callable[[SqliteTx], None] | None = None
    ) -> bool:
        """Move a whole untouched claim to history."""

        def work(tx: SqliteTx) -> bool:
            sql = "DELETE FROM penstock_claims WHERE id = ? AND settled IS NULL"
            if not tx.connection.execute(sql, (claim.epoch,)).rowcount:
                return False
            columns = _succeeded([claimed.job for claimed in claim.jobs])
            held = (claim.epoch, claim.node, to_us(claim.claimed_at), to_us(tx.now))
            rows = zip(*columns.values(), *map(repeat, held))  # noqa: B905 - the last ones are endless
            tx.connection.executemany(history_insert(tuple(columns)), rows)
            self.count(tx, {(lane, 2): -len(claim.jobs), (lane, 10): len(claim.jobs)})
            if claim.groups:
                groups = sorted({claimed.job.grp for claimed in claim.jobs if claimed.job.grp is not None})
                self.release_groups(tx, lane, groups, claim.epoch)
            if then is not None:
                then(tx)
            return True

        return db.write(work)

    def forget(self, tx: SqliteTx, keep: int, arrivals: Sequence[int]) -> None:  # noqa: ARG002
        """Empty the payload and headers of contexts."""
        sql = "UPDATE penstock_contexts SET payload = NULL, headers = NULL WHERE arrival = ?"
        tx.connection.executemany(sql, [(arrival,) for arrival in arrivals])

    def claim_row(self, tx: SqliteTx, epoch: int, *, lock: bool) -> ClaimRow | None:  # noqa: ARG002
        """Read one claim."""
        row = tx.connection.execute(CLAIM, (epoch,)).fetchone()
        return None if row is None else _claim_row(row)

    def claim_rows(self, tx: SqliteTx, epochs: Sequence[int]) -> list[ClaimRow]:
        """Read those of these claims that are there."""
        rows = tx.connection.execute(CLAIM_ROWS, (json.dumps(list(epochs)),)) if epochs else []
        return [_claim_row(row) for row in rows]

    def claims_with(self, tx: SqliteTx, arrivals: Sequence[int]) -> list[ClaimRow]:
        """Read every claim that has one of these jobs."""
        rows = tx.connection.execute(CLAIMS_WITH, (json.dumps(list(arrivals)),)) if arrivals else []
        return [_claim_row(row) for row in rows]

    def claims_of(self, tx: SqliteTx, arrivals: Sequence[int]) -> list[tuple[int, int]]:
        """Return the claims that each arrival is in."""
        sql = """SELECT j.value, c.id FROM penstock_claims c, json_each(c.arrivals) j
                  WHERE j.value IN (SELECT value FROM json_each(?))"""
        return tx.connection.execute(sql, (json.dumps(list(arrivals)),)).fetchall()

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
            these = {"lane": lane, "groups": json.dumps(groups)}
            tx.connection.execute(RELEASE, {**these, "epoch": epoch})
            tx.connection.execute(DROP_EMPTY, these)

    def hand_over_groups(self, tx: SqliteTx, lane: int, groups: Sequence[str], *, old: int, new: int) -> None:
        """Give groups held by one claim to the claim it became."""
        these = {"lane": lane, "groups": json.dumps(groups), "old": old, "new": new}
        tx.connection.execute(HAND_OVER, these)

    def wake(self, tx: SqliteTx, lane: int, groups: Sequence[str]) -> None:
        """Put right what these groups' rows say of their heads, whoever holds them."""
        if groups:
            these = {"lane": lane, "groups": json.dumps(groups)}
            tx.connection.execute(MAKE_GROUPS, these)
            tx.connection.execute(REFRESH, these)
            tx.connection.execute(DROP_EMPTY, these)

    def count(self, tx: SqliteTx, deltas: Mapping[tuple[int, int], int]) -> None:
        """Add to the counters; one writer, so there is no hot row to avoid."""
        tx.connection.executemany(COUNT, [(lane, state, n) for (lane, state), n in deltas.items()])

    def fold_counts(self, db: SqliteDatabase, fence: Fence) -> int:
        """Nothing to fold."""
        db.read(fence)
        return 0

    def retire(self, db: SqliteDatabase, slice_rows: int, fence: Fence) -> int:
        """Delete a slice of what retention no longer keeps."""
        return db.write(lambda tx: self._retire(tx, slice_rows, fence))

    def _retire(self, tx: SqliteTx, slice_rows: int, fence: Fence) -> int:
        fence(tx)
        connection, rows = tx.connection, list[Row]()
        for keep in RETENTION_DAYS.values():  # not the lanes' own: a lane may have had another before
            before = to_us(tx.now) - keep * 86_400_000_000
            rows += connection.execute(OLD_HISTORY, (keep, before, slice_rows - len(rows))).fetchall()
        ids = [(row[0],) for row in rows]
        for table in ("history", "attempts", "contexts", "revisions", "requests"):
            connection.executemany(f"DELETE FROM penstock_{table} WHERE arrival = ?", ids)
        forget_notes(tx, [row[0] for row in rows])
        self.count(tx, {key: -n for key, n in Counter((row[1], row[2]) for row in rows).items()})
        return len(rows)

    def _open(
        self, tx: SqliteTx, ask: Ask, lane: LaneRow, rows: list[Row], *, groups: bool, epoch: int | None
    ) -> Claim | None:
        if not rows:
            return None
        epoch = epoch or self.next_epoch(tx)
        now, until = tx.now, tx.now + ask.lease
        arrivals = json.dumps([row[0] for row in rows])
        tx.connection.execute(TAKE, (arrivals,))
        stored = json.dumps([row[:_HOT] for row in rows])
        values = (epoch, to_us(now), to_us(until), lane.id, ask.node, groups, arrivals, stored)
        tx.connection.execute(OPEN_CLAIM, values)
        self.count(tx, {(lane.id, 1): -len(rows), (lane.id, 2): len(rows)})
        # What all rows of a claim have in common: only ordered jobs stand in the way of others.
        claimed = _all_claimed(rows, (groups, epoch, ask.node, now, *_NOT_YET))
        if any(row[_REVISION] for row in rows):
            claimed = as_edited(tx, claimed)
        return Claim(epoch, lane.name, ask.node, now, until, tuple(claimed), groups=groups)


@lru_cache(maxsize=256)
def context_insert(columns: tuple[str, ...]) -> str:
    """Return the INSERT of these columns."""
    return f"INSERT INTO penstock_contexts ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})"


@lru_cache(maxsize=256)
def history_insert(columns: tuple[str, ...]) -> str:
    """Return the INSERT of these columns and _HELD; what the others usually are is written into it."""
    usual = {"mode": 0, "attempt": 1, "send": 1, "recoveries": 0, "deferrals": 0, "revision": 0, "state": 10}
    fixed = {name: str(value) for name, value in usual.items() if name not in columns}
    bound = (*columns, *_HELD)
    names, values = ",".join((*bound, *fixed)), ",".join((*"?" * len(bound), *fixed.values()))
    return f"INSERT INTO penstock_history ({names}) VALUES ({values})"


def _succeeded(jobs: Sequence[Live]) -> dict[str, Sequence[Any]]:
    """Return what history holds of jobs that simply succeeded, by column.

    A column in which all are as usual is left out: to bind a value costs, even when it is NULL.
    """
    live = dict(zip(LIVE_COLUMNS, zip(*jobs, strict=True), strict=True))
    kept: dict[str, Sequence[Any]] = {name: live[name] for name in ("arrival", "lane", "keep", "ord")}
    kept["due_at"] = list(map(to_us, live["due_at"]))
    unusual = {name for name, value in _USUAL.items() if live[name].count(value) < len(jobs)}
    kept |= {name: live[name] for name in unusual - {"attempt", "send", "open", "start_by"}}
    if "start_by" in unusual:
        kept["start_by"] = [None if at is None else to_us(at) for at in live["start_by"]]
    if "attempt" in unusual:
        kept["attempt"] = [attempt + 1 for attempt in live["attempt"]]
    if unusual & {"send", "open"}:
        kept["send"] = [job.current_send for job in jobs]
    return kept


def _stored(name: str, column: Sequence[Any], now: int) -> Sequence[Any]:
    """Return what is stored of a column; a job that does not say when it is due is due now."""
    if name not in _TIMES:
        return column
    missing = now if name == "run_at" else None
    return [missing if at is None else to_us(at) for at in column]


def _claim_row(row: Row) -> ClaimRow:
    """Read the columns of a claim."""
    epoch, lane, node, at, until, takeovers, groups, sending, settled, said = row
    held = (epoch, node, at_us(at))
    jobs = tuple(_claimed(values, held) for values in json.loads(said))
    mask = int.from_bytes(settled or b"", "big")
    return ClaimRow(
        epoch, lane, node, held[2], at_us(until), takeovers, bool(groups), bool(sending), mask, jobs
    )


def _claimed(row: Sequence[Any], held: tuple[int, int, datetime]) -> Live:
    """Read what was stored of a pending row as the claimed job it is under this epoch, node and time."""
    (arrival, lane, keep, mode, _, order, grp, tenant, due_at, start_by, attempt, max_attempts, send, open_,
     recoveries, deferrals, revision, since) = (*row, None)[:_HOT]  # fmt: skip
    return Live._make((
        arrival, lane, keep, mode, JobState.CLAIMED, order, grp, tenant, at_us(due_at), from_us(start_by), attempt,
        max_attempts, send, open_ != 0, recoveries, deferrals, revision, from_us(since), mode != 0, *held, *_NOT_YET,
    ))  # fmt: skip


def _all_claimed(rows: Sequence[Row], rest: Row) -> list[Claimed]:
    """Read rows with their contexts; `rest` is the end of every Live. Written for speed: it runs for every job."""
    new, state, jobs = tuple.__new__, JobState.CLAIMED, []
    last_due = last_created = None
    for (arrival, lane, keep, mode, _, order, grp, tenant, due_us, start_by, attempt, max_attempts, send, open_,
         recoveries, deferrals, revision, since, id_, group, sequence, run_us, created_us, payload, headers, target, pool,
         key, finish_by, entity, version, event, correlation, unchecked) in rows:  # fmt: skip
        if due_us != last_due:
            last_due, due_at = due_us, time_of(due_us)
        live = new(Live, (
            arrival, lane, keep, mode, state, order, grp, tenant, due_at,
            None if start_by is None else at_us(start_by), attempt, max_attempts, send, open_ == 1, recoveries,
            deferrals, revision, None if since is None else at_us(since), *rest,
        ))  # fmt: skip
        if id_ is None:
            jobs.append(new(Claimed, (live, None)))
            continue
        if created_us != last_created:
            last_created, created_at = created_us, time_of(created_us)
        said = new(Context, (
            id_, group, sequence, due_at if run_us == due_us else at_us(run_us), created_at, payload, headers,
            target, pool, key, None if finish_by is None else at_us(finish_by), entity, version, event, correlation,
            unchecked == 1,
        ))  # fmt: skip
        jobs.append(new(Claimed, (live, said)))
    return jobs
