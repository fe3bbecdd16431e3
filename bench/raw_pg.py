"""The limit on PostgreSQL: a bare loop of hand-written SQL that writes the same rows into the same tables.

No fairness, no hints, no leases to renew, no outcome but success, and rows stay tuples.
"""

from collections.abc import Iterator
from contextlib import closing

import psycopg

from bench.record import Spent
from bench.shapes import LANE, Batches
from penstock.stores.postgres.database import SETTINGS
from penstock.stores.sql.rows import CONTEXT_COLUMNS

CLAIM = """
    WITH k AS MATERIALIZED (SELECT nextval('penstock.epochs') AS id),
    d AS (DELETE FROM penstock.jobs WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM penstock.jobs
         WHERE lane = %(lane)s::int AND mode = 0 AND state = 1 AND tenant IS NULL AND due_at <= now()
         ORDER BY lane, due_at, arrival LIMIT %(batch)s::int FOR UPDATE SKIP LOCKED)) RETURNING *),
    c AS (INSERT INTO penstock.claims (id, lane, node, lease_until, arrivals, keeps, dues, ords)
          SELECT (SELECT id FROM k), %(lane)s::int, %(node)s::int, now() + interval '30 s',
                 array_agg(arrival), array_agg(keep), array_agg(due_at), array_agg(ord)
            FROM d HAVING count(*) > 0),
    n AS (INSERT INTO penstock.count_deltas (lane, state, n)
          SELECT %(lane)s::int, v.state, v.n FROM (SELECT count(*)::int AS n FROM d) q
           CROSS JOIN LATERAL (VALUES (1, -q.n), (2, q.n)) v(state, n) WHERE q.n > 0)
    SELECT (SELECT id FROM k), d.arrival, d.attempt, d.send, {context}
      FROM d LEFT JOIN LATERAL (
        SELECT * FROM penstock.contexts x
         WHERE x.keep = d.keep AND x.arrival = d.arrival OFFSET 0) x ON true"""
# A message is made of the whole context, so that is read.
CLAIM = CLAIM.replace("{context}", ", ".join(f"x.{column}" for column in CONTEXT_COLUMNS))
SETTLE = """
    WITH c AS (DELETE FROM penstock.claims WHERE id = %(epoch)s::bigint RETURNING *),
    n AS (INSERT INTO penstock.count_deltas (lane, state, n)
          SELECT c.lane, v.state, v.sign * cardinality(c.arrivals)
            FROM c, (VALUES (2, -1), (10, 1)) v(state, sign))
    INSERT INTO penstock.history (arrival, keep, due_at, ord, mode, attempt, send, recoveries, deferrals,
           revision, lane, state, epoch, node, claimed_at, finished_at)
    SELECT u.arrival, u.keep, u.due_at, u.ord, 0, 1, 1, 0, 0, 0, c.lane, 10, c.id, c.node, c.claimed_at, now()
      FROM c CROSS JOIN LATERAL unnest(c.arrivals, c.keeps, c.dues, c.ords) u(arrival, keep, due_at, ord)"""
INSERT = """
    INSERT INTO penstock.contexts (keep, lane, mode, sequence, id, payload)
    SELECT 7, %s::int, 0, 99, u.id, u.payload FROM unnest(%s::text[], %s::text[]) u(id, payload)"""
COLUMNS = "(keep, lane, mode, sequence, id, payload)"
FLAT = """
    CREATE TABLE public.flat (keep smallint, lane int, mode smallint, sequence int, id text, payload text)"""


def connect(target: str) -> psycopg.Connection:
    connection = psycopg.connect(target, autocommit=True, prepare_threshold=2)
    connection.execute(SETTINGS.encode(), prepare=False)
    return connection


def lane_number(connection: psycopg.Connection) -> int:
    return connection.execute("SELECT id FROM penstock.lanes WHERE name = %s", (LANE,)).fetchall()[0][0]


def turns(target: str, node: int, batch: int) -> Iterator[int]:
    """Claim and settle, again and again; yield how many jobs each turn was."""
    with closing(connect(target)) as connection:
        params = {"lane": lane_number(connection), "batch": batch, "node": node}
        cursor = connection.cursor(binary=True)
        yield 0
        while True:
            rows = cursor.execute(CLAIM, params).fetchall()
            if rows:
                cursor.execute(SETTLE, {"epoch": rows[0][0]})
            yield len(rows)


def insert_arrays(target: str, batches: Batches, spent: Spent) -> None:
    """Enqueue by one INSERT of arrays per batch."""
    with closing(connect(target)) as connection:
        lane = lane_number(connection)
        for ids, payloads in batches:
            with spent:
                connection.execute(INSERT, (lane, ids, payloads))
        spent.end()


def copy(target: str, batches: Batches, spent: Spent, *, flat: bool = False) -> None:
    """Enqueue by one COPY per batch, or fill a table without indexes and triggers."""
    with closing(connect(target)) as connection:
        lane = lane_number(connection)
        if flat:
            connection.execute(FLAT)
        statement = f"COPY {'public.flat' if flat else 'penstock.contexts'} {COLUMNS} FROM STDIN"
        for ids, payloads in batches:
            with spent, connection.cursor() as cursor, cursor.copy(statement.encode()) as rows:
                for id_, payload in zip(ids, payloads, strict=True):
                    rows.write_row((7, lane, 0, 99, id_, payload))
        spent.end()
