"""Millions of finished jobs with what their callers said, over a week, made by set-based SQL in slices.

Half of them kept order in groups, one in a hundred did not succeed: a list of history has all of it to find.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import psycopg

from bench.shapes import PAYLOAD

DAYS = 7
SLICE = 500_000
GROUPS = 10_000
# Every day has its own numbers; those of the jobs that are alive are in the first half of today's.
_POSTGRES_DAYS = """
    SELECT penstock.add_partition('contexts', 7, to_char(d, 'YYYYMMDD'),
             penstock.arrival_floor(d)::text, penstock.arrival_floor(d + 1)::text),
           penstock.add_partition('attempts', 7, to_char(d, 'YYYYMMDD'),
             penstock.arrival_floor(d)::text, penstock.arrival_floor(d + 1)::text),
           penstock.add_partition('history', 7, to_char(d, 'YYYYMMDD'),
             quote_literal(to_char(d, 'YYYY-MM-DD') || ' 00:00+00'),
             quote_literal(to_char(d + 1, 'YYYY-MM-DD') || ' 00:00+00'))
      FROM generate_series(0, {days}) n, LATERAL (SELECT (now() AT TIME ZONE 'UTC')::date - n AS d) q"""
_POSTGRES_ROWS = """
    CREATE TEMP TABLE ended AS
    SELECT penstock.arrival_floor((at AT TIME ZONE 'UTC')::date) + 34359738368 + i AS arrival, i, at,
           ('{{{lanes}}}'::int[])[1 + i % {count}] AS lane,
           CASE WHEN i % 2 = 0 THEN 'group-' || lpad((i % {groups})::text, 8, '0') END AS grp,
           CASE WHEN i % 100 = 0 THEN 11 + i / 100 % 3 ELSE 10 END AS state
      FROM generate_series({first}, {last}) i,
           LATERAL (SELECT now() - i * (interval '{days} days' / {total}) AS at) q"""
_POSTGRES_CONTEXTS = """
    INSERT INTO penstock.contexts
           (arrival, keep, lane, mode, sequence, run_at, created_at, id, message_group, payload)
    SELECT arrival, 7, lane, CASE WHEN grp IS NULL THEN 0 ELSE 2 END, 99, at, at, 'ended-' || i, grp,
           '{payload}' FROM ended"""
_POSTGRES_HISTORY = """
    INSERT INTO penstock.history (arrival, due_at, finished_at, lane, ord, send, deferrals, keep, mode, state,
           attempt, recoveries, revision, claimed_at, sent_at, epoch, node, grp, receipt)
    SELECT arrival, at, at, lane, 99, 1, 0, 7, CASE WHEN grp IS NULL THEN 0 ELSE 2 END, state, 1, 0, 0,
           at, at, 1, 1, grp, '200' FROM ended"""
_POSTGRES_COUNTS = """
    INSERT INTO penstock.counts (lane, state, n) SELECT lane, 10, {n} FROM unnest('{{{lanes}}}'::int[]) lane
        ON CONFLICT (lane, state) DO UPDATE SET n = penstock.counts.n + excluded.n"""
_SQLITE_CONTEXTS = """
    WITH RECURSIVE s (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s WHERE i < {last})
    INSERT INTO penstock_contexts
           (arrival, keep, lane, mode, sequence, run_at, created_at, id, message_group, payload)
    SELECT -1 - i, 7, {base} + i % {count}, (1 - i % 2) * 2, 99, {now} - i * {step}, {now} - i * {step},
           'ended-' || i, CASE WHEN i % 2 = 0 THEN printf('group-%08d', i % {groups}) END, '{payload}'
      FROM s"""
_SQLITE_HISTORY = """
    WITH RECURSIVE s (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s WHERE i < {last})
    INSERT INTO penstock_history (arrival, due_at, finished_at, lane, ord, send, deferrals, keep, mode, state,
           attempt, recoveries, revision, claimed_at, sent_at, epoch, node, grp, receipt)
    SELECT -1 - i, {now} - i * {step}, {now} - i * {step}, {base} + i % {count}, 99, 1, 0, 7, (1 - i % 2) * 2,
           CASE WHEN i % 100 = 0 THEN 11 + i / 100 % 3 ELSE 10 END, 1, 0, 0, {now} - i * {step},
           {now} - i * {step}, 1, 1, CASE WHEN i % 2 = 0 THEN printf('group-%08d', i % {groups}) END, '200'
      FROM s"""


def finish_on_postgres(url: str, lanes: Sequence[int], total: int, say: Callable[[str], None]) -> None:
    """Write the jobs; the trigger by which a context becomes a live job sleeps meanwhile."""
    values = {"lanes": ",".join(map(str, lanes)), "count": len(lanes), "total": total, "days": DAYS}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off; SET session_replication_role = replica")
        connection.execute(_POSTGRES_DAYS.format(days=DAYS).encode())
        for first in range(1, total + 1, SLICE):
            last = min(total, first + SLICE - 1)
            for statement in (_POSTGRES_ROWS, _POSTGRES_CONTEXTS, _POSTGRES_HISTORY, "DROP TABLE ended"):
                sql = statement.format(first=first, last=last, groups=GROUPS, payload=PAYLOAD, **values)
                connection.execute(sql.encode())
            say(f"{last:,} of {total:,} finished jobs")
        connection.execute(_POSTGRES_COUNTS.format(n=total // len(lanes), **values).encode())
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def finish_on_sqlite(path: str, lanes: Sequence[int], total: int, say: Callable[[str], None]) -> None:
    """Write the jobs into a file nobody has open; the trigger is put back afterwards."""
    now = time.time_ns() // 1000
    step = DAYS * 86_400_000_000 // total
    values = {"now": now, "step": step, "base": min(lanes), "count": len(lanes), "groups": GROUPS}
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        [(trigger,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'penstock_enqueued'")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DROP TRIGGER penstock_enqueued")
        for first in range(1, total + 1, SLICE):
            last = min(total, first + SLICE - 1)
            for statement in (_SQLITE_CONTEXTS, _SQLITE_HISTORY):
                connection.execute(statement.format(first=first, last=last, payload=PAYLOAD, **values))
            say(f"{last:,} of {total:,} finished jobs")
        for lane in lanes:
            connection.execute(
                "INSERT INTO penstock_counts (lane, state, n) VALUES (?, 10, ?)", (lane, total // len(lanes))
            )
        connection.execute(trigger)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
