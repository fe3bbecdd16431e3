"""A big queue in a moment: rows made by set-based SQL, so that a test can afford a hundred thousand of them.

The unkind shape is on purpose. Nine of ten groups are blocked by a dead head and are the oldest; in the lane
with tenants hardly anybody has none; a tenth of the jobs is due tomorrow; history is long. Nothing of that
may cost a claim anything.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from penstock.domain.lanes import lane
from penstock.ports.store import Store

PLAIN: Final = "plain"
TENANTS: Final = "tenants"
GROUPS: Final = "groups"
TENANT_GROUPS: Final = "tenant-groups"
LANES: Final = (PLAIN, TENANTS, GROUPS, TENANT_GROUPS)
PAYLOAD: Final = '{"order": "' + "x" * 180 + '"}'
# Not a divisor of any batch: some of every batch is left to the oldest.
TENANT_COUNT: Final = 40
SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything; `jobs` counts live ones."""

    jobs: int
    history: int

    @property
    def groups(self) -> int:
        return self.jobs // 10

    @property
    def blocked(self) -> int:
        return self.groups * 9 // 10


BIG: Final = Size(jobs=110_000, history=100_000)
SMALL: Final = Size(jobs=11_000, history=10_000)


def put_lanes(store: Store) -> dict[str, int]:
    """Create the lanes; return their numbers."""
    settings = {"max_recoveries_per_pass": 1_000}
    return {name: store.put_lane(lane(name, **settings), actor="test").id for name in LANES}


# -- PostgreSQL: one INSERT per kind of job into contexts, whose trigger writes the live rows.
_CONTEXTS: Final = """
    INSERT INTO penstock.contexts (keep, lane, mode, sequence, run_at, id, message_group, tenant, payload)
    SELECT 7, {lane}, {mode}, {sequence}, now() - interval '1 hour' + i * interval '1 ms' + {later},
           '{name}-' || i, {group}, {tenant}, '{payload}'
      FROM generate_series(0, {n} - 1) i"""
_TIDY: Final = """
    CREATE TEMP TABLE firsts AS
    SELECT * FROM penstock.jobs WHERE lane = {lane} AND ord = 0 AND grp < '{blocked}';
    INSERT INTO penstock.dead (arrival, due_at, finished_at, lane, ord, seq, send, deferrals, keep, mode,
           state, attempt, recoveries, revision, grp)
    SELECT arrival, due_at, now(), lane, ord - 2147483648, ord, 1, 0, keep, mode, 14, 1, 0, 0, grp
      FROM firsts;
    DELETE FROM penstock.jobs WHERE arrival IN (SELECT arrival FROM firsts);
    INSERT INTO penstock.groups (lane, grp, next_at, dead_arrival, dead_seq, blocked)
    SELECT lane, grp, NULL, arrival, ord, true FROM firsts;
    INSERT INTO penstock.groups (lane, grp, next_at, tenant)
    SELECT DISTINCT ON (lane, grp) lane, grp, due_at, tenant FROM penstock.jobs j
     WHERE holds AND NOT EXISTS (SELECT FROM firsts f WHERE f.lane = j.lane AND f.grp = j.grp)
     ORDER BY lane, grp, ord, arrival;
    DROP TABLE firsts;
    TRUNCATE penstock.wakes;
    INSERT INTO penstock.wakes (lane, grp)
    SELECT lane, grp FROM penstock.groups WHERE grp < 'group-00000500'"""
_HISTORY: Final = """
    INSERT INTO penstock.history (arrival, due_at, finished_at, lane, ord, send, deferrals, keep, mode,
           state, attempt, recoveries, revision, claimed_at, epoch, node, grp)
    SELECT -i, now(), now() - i * interval '1 ms', {lane}, 99, 1, 0, 7, 0, 10, 1, 0, 0, now(), 1, 1, NULL
      FROM generate_series(1, {n}) i"""
# Jobs that are out, of which some have been silent for too long, and jobs that should have started by now.
_OUT: Final = """
    UPDATE penstock.jobs SET state = 3, send = 1, open = true,
           deadline = now() + (arrival % 10 - 2) * interval '1 min'
     WHERE lane = {lane} AND due_at > now() + interval '12 hours' AND arrival % 2 = 0;
    UPDATE penstock.jobs SET start_by = now() + (arrival % 10 - 2) * interval '1 min'
     WHERE lane = {lane} AND due_at > now() + interval '12 hours' AND state = 1"""
_STILL: Final = """
    DO $$ DECLARE t text; BEGIN
      FOR t IN SELECT c.relname FROM pg_class c
                WHERE c.relnamespace = 'penstock'::regnamespace AND c.relkind = 'r'
      LOOP EXECUTE format('ALTER TABLE penstock.%I SET (autovacuum_enabled = off)', t); END LOOP; END $$"""


def fill_postgres(url: str, lanes: dict[str, int], size: Size) -> None:
    """Write the backlog; statistics stay as they are until somebody asks for ANALYZE."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = pg_catalog, pg_temp")
        for statement in [_STILL, *_postgres_statements(lanes, size)]:
            connection.execute(statement.encode())
        connection.execute("CHECKPOINT")


def _postgres_statements(lanes: dict[str, int], size: Size) -> Iterator[str]:
    n = size.jobs // 10
    group = f"'group-' || lpad((i % {size.groups})::text, 8, '0')"
    few = f"'group-' || lpad((i % {n // 5})::text, 8, '0')"
    tenant = f"'tenant-' || i % {TENANT_COUNT}"
    hardly = f"CASE WHEN i < {2 * n - 20} THEN {tenant} END"
    kinds = {
        "due": (PLAIN, 0, "99", "interval '0'", "NULL", "NULL", 3 * n),
        "future": (PLAIN, 0, "99", "interval '1 day'", "NULL", "NULL", n),
        "tenant": (TENANTS, 0, "99", "interval '0'", "NULL", hardly, 2 * n),
        "group": (GROUPS, 2, f"i / {size.groups}", "interval '0'", group, "NULL", 4 * n),
        "tgroup": (TENANT_GROUPS, 2, "99", "interval '0'", few, tenant, n),
    }
    for name, (lane_name, mode, sequence, later, message_group, who, count) in kinds.items():
        yield _CONTEXTS.format(
            name=name, lane=lanes[lane_name], mode=mode, sequence=sequence, later=later, group=message_group,
            tenant=who, n=count, payload=PAYLOAD,
        )  # fmt: skip
    yield _TIDY.format(lane=lanes[GROUPS], blocked=f"group-{size.blocked:08d}")
    yield _HISTORY.format(lane=lanes[PLAIN], n=size.history)
    yield _OUT.format(lane=lanes[PLAIN])


# -- SQLite: the same rows; the trigger fires for each.
def fill_sqlite(path: Path, lanes: dict[str, int], size: Size, now: int) -> None:
    """Write the backlog into a file nobody has open."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        """INSERT INTO penstock_contexts (keep, lane, mode, sequence, run_at, created_at, id, message_group,
             tenant, payload) VALUES (7, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        _sqlite_rows(lanes, size, now),
    )
    for statement in _sqlite_statements(lanes, size, now):
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.close()


def _sqlite_rows(lanes: dict[str, int], size: Size, now: int) -> Iterator[tuple[object, ...]]:
    n, start = size.jobs // 10, now - 3600 * SECOND
    for i in range(3 * n):
        yield (lanes[PLAIN], 0, 99, start + i, now, f"due-{i}", None, None, PAYLOAD)
    for i in range(n):
        yield (lanes[PLAIN], 0, 99, start + i + DAY, now, f"future-{i}", None, None, PAYLOAD)
    for i in range(2 * n):
        tenant = f"tenant-{i % TENANT_COUNT}" if i < 2 * n - 20 else None
        yield (lanes[TENANTS], 0, 99, start + i, now, f"tenant-{i}", None, tenant, PAYLOAD)
    for i in range(4 * n):
        group = f"group-{i % size.groups:08d}"
        yield (lanes[GROUPS], 2, i // size.groups, start + i, now, f"group-{i}", group, None, PAYLOAD)
    for i in range(n):
        group = f"group-{i % (n // 5):08d}"
        yield (
            lanes[TENANT_GROUPS],
            2,
            99,
            start + i,
            now,
            f"tgroup-{i}",
            group,
            f"tenant-{i % TENANT_COUNT}",
            PAYLOAD,
        )


def _sqlite_statements(lanes: dict[str, int], size: Size, now: int) -> Iterator[str]:
    firsts = f"lane = {lanes[GROUPS]} AND ord = 0 AND grp < 'group-{size.blocked:08d}'"
    yield f"""
        INSERT INTO penstock_dead (arrival, due_at, finished_at, lane, ord, seq, send, deferrals, keep, mode,
               state, attempt, recoveries, revision, grp)
        SELECT arrival, due_at, {now}, lane, ord - 2147483648, ord, 1, 0, keep, mode, 14, 1, 0, 0, grp
          FROM penstock_jobs WHERE {firsts}"""
    yield f"DELETE FROM penstock_jobs WHERE {firsts}"
    yield f"""
        UPDATE penstock_groups SET next_at = NULL, blocked = 1, dead_seq = 0, dead_arrival = (
          SELECT arrival FROM penstock_dead d
           WHERE d.lane = penstock_groups.lane AND d.grp = penstock_groups.grp AND d.mode <> 0)
         WHERE lane = {lanes[GROUPS]} AND grp < 'group-{size.blocked:08d}'"""
    yield f"""
        WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {size.history})
        INSERT INTO penstock_history (arrival, due_at, finished_at, lane, ord, send, deferrals, keep, mode,
               state, attempt, recoveries, revision, claimed_at, epoch, node)
        SELECT -i, {now}, {now} - i * 1000, {lanes[PLAIN]}, 99, 1, 0, 7, 0, 10, 1, 0, 0, {now}, 1, 1 FROM s"""
    later = f"lane = {lanes[PLAIN]} AND due_at > {now + DAY // 2}"
    minutes = f"{now} + (arrival % 10 - 2) * {60 * SECOND}"
    yield f"""
        UPDATE penstock_jobs SET state = 3, send = 1, open = 1, deadline = {minutes}
         WHERE {later} AND arrival % 2 = 0"""
    yield f"UPDATE penstock_jobs SET start_by = {minutes} WHERE {later} AND state = 1"
