"""The limit on SQLite: a bare loop of hand-written SQL that writes the same rows into the same tables."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

from bench.record import Spent
from bench.shapes import LANE, Batches
from penstock.stores.sql.rows import CONTEXT_COLUMNS, LIVE_COLUMNS
from penstock.stores.sqlite.database import PRAGMAS

# A message is made of the whole context, so that is read; the claim holds the rows as they were.
LIVE = ", ".join(f"j.{column}" for column in LIVE_COLUMNS)
PICK = f"""
    SELECT {LIVE}, {", ".join(f"x.{column}" for column in CONTEXT_COLUMNS)}
      FROM penstock_jobs j INDEXED BY penstock_jobs_due
      LEFT JOIN penstock_contexts x ON x.arrival = j.arrival
     WHERE j.lane = ? AND j.mode = 0 AND j.state = 1 AND j.tenant IS NULL AND j.due_at <= ?
     ORDER BY j.due_at, j.arrival LIMIT ?"""
ARRIVAL, KEEP, DUE_AT, ORD = map(LIVE_COLUMNS.index, ("arrival", "keep", "due_at", "ord"))
WIDTH = len(LIVE_COLUMNS)
TAKE = "DELETE FROM penstock_jobs WHERE arrival IN (SELECT value FROM json_each(?))"
CLAIM = """
    INSERT INTO penstock_claims (id, claimed_at, lease_until, lane, node, groups, arrivals, jobs)
    VALUES (?,?,?,?,?,0,?,?)"""
COUNT = """
    INSERT INTO penstock_counts (lane, state, n) VALUES (?,?,?)
    ON CONFLICT (lane, state) DO UPDATE SET n = n + excluded.n"""
HISTORY = """
    INSERT INTO penstock_history (arrival, keep, due_at, ord, lane, mode, state, attempt, send, recoveries,
           deferrals, revision, epoch, node, claimed_at, finished_at)
    VALUES (?,?,?,?,?,0,10,1,1,0,0,0,?,?,?,?)"""
INSERT = """
    INSERT INTO penstock_contexts (keep, lane, run_at, created_at, id, payload) VALUES (7,?,?,?,?,?)"""


def connect(target: str) -> sqlite3.Connection:
    connection = sqlite3.connect(target, isolation_level=None)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def lane_number(connection: sqlite3.Connection) -> int:
    [(number,)] = connection.execute("SELECT id FROM penstock_lanes WHERE name = ?", (LANE,))
    return number


def turns(target: str, node: int, batch: int) -> Iterator[int]:
    """Claim and settle, again and again; yield how many jobs each turn was."""
    with closing(connect(target)) as connection:
        lane = lane_number(connection)
        yield 0
        while True:
            yield _turn(connection, lane, node, batch)


def _turn(connection: sqlite3.Connection, lane: int, node: int, batch: int) -> int:
    now = time.time_ns() // 1000
    connection.execute("BEGIN IMMEDIATE")
    rows = connection.execute(PICK, (lane, now, batch)).fetchall()
    if not rows:
        connection.execute("ROLLBACK")
        return 0
    arrivals = json.dumps([row[0] for row in rows])
    connection.execute(TAKE, (arrivals,))
    [(epoch,)] = connection.execute("UPDATE penstock_epochs SET last = last + 1 RETURNING last").fetchall()
    stored = json.dumps([row[:WIDTH] for row in rows])
    connection.execute(CLAIM, (epoch, now, now + 30_000_000, lane, node, arrivals, stored))
    connection.executemany(COUNT, [(lane, 1, -len(rows)), (lane, 2, len(rows))])
    connection.execute("COMMIT")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM penstock_claims WHERE id = ?", (epoch,))
    done = (lane, epoch, node, now, time.time_ns() // 1000)
    ended = [(row[ARRIVAL], row[KEEP], row[DUE_AT], row[ORD], *done) for row in rows]
    connection.executemany(HISTORY, ended)
    connection.executemany(COUNT, [(lane, 2, -len(rows)), (lane, 10, len(rows))])
    connection.execute("COMMIT")
    return len(rows)


def insert_many(target: str, batches: Batches, spent: Spent) -> None:
    """Enqueue by one executemany per batch."""
    with closing(connect(target)) as connection:
        lane = lane_number(connection)
        for ids, payloads in batches:
            with spent:
                now = time.time_ns() // 1000
                rows = [(lane, now, now, id_, payload) for id_, payload in zip(ids, payloads, strict=True)]
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(INSERT, rows)
                connection.execute("COMMIT")
        spent.end()
