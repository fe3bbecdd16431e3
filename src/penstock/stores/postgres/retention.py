"""Days come and go: partitions are made ahead and dropped whole.

`DETACH .. CONCURRENTLY` waits for transactions that still use the parent without making anybody wait for it;
if it cannot finish in time it is finished at the next round. A context outlives every row that names it.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final

from psycopg import errors as pg
from psycopg import sql

from penstock.domain.settlement import NODE_ACTOR
from penstock.stores.postgres.database import PostgresDatabase, PostgresTx
from penstock.stores.sql.database import Row
from penstock.stores.sql.editing import forget_revisions
from penstock.stores.sql.hotpath import Fence

PARTITIONS: Final = """
    SELECT c.relname, i.inhdetachpending FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = :parent::regclass"""
IN_USE: Final = """
    SELECT EXISTS (SELECT FROM penstock.jobs WHERE arrival >= :low AND arrival < :high AND keep = :keep)
        OR EXISTS (SELECT FROM penstock.dead WHERE arrival >= :low AND arrival < :high AND keep = :keep)
        OR EXISTS (SELECT FROM penstock.history WHERE arrival >= :low AND arrival < :high AND keep = :keep)
        OR EXISTS (SELECT FROM penstock.claims c CROSS JOIN LATERAL unnest(c.arrivals) a
                    WHERE a >= :low AND a < :high)"""
DETACHED: Final = """
    SELECT relname FROM pg_class WHERE relnamespace = 'penstock'::regnamespace AND relkind = 'r'
       AND NOT relispartition AND relname ~ '^(history|attempts|contexts)_[0-9]+_[0-9]{8}$'
     ORDER BY relname"""
UNCOUNT: Final = sql.SQL("""
    INSERT INTO penstock.count_deltas (lane, state, n) SELECT lane, state, -count(*) FROM {} GROUP BY 1, 2""")
# What nodes noted of jobs that go with this partition; what people did to them stays.
FORGET_NOTES: Final = sql.SQL("""
    DELETE FROM penstock.audit WHERE ctid = ANY(ARRAY(
      SELECT a.ctid FROM penstock.audit a JOIN {} c ON c.arrival = a.arrival
       WHERE a.arrival >= %(low)s AND a.arrival < %(high)s AND a.actor = %(actor)s LIMIT %(slice)s))""")
NOTES: Final = 10_000
PARENTS: Final = ("history", "attempts", "contexts")
_NAME: Final = re.compile(r"(history|attempts|contexts)_(\d+)_(\d{8})")
_DAY_ONE: Final = date(2026, 1, 1)
_PER_DAY: Final = 1 << 36


def retire(db: PostgresDatabase, fence: Fence) -> int:
    """Make the partitions of the days ahead and drop those that are over; return how many went.

    A partition cannot be detached within a transaction: the fence is met before that, and with every drop.
    """
    db.write(fence)
    db.single(lambda tx: tx.execute("SELECT penstock.prepare()"))
    today = db.read(lambda tx: tx.now).astimezone(UTC).date()
    for parent in PARENTS:
        for name, pending in db.read(partial(_partitions, parent=parent)):
            if _over(name, today) and (parent == "history" or not db.read(partial(_in_use, name=name))):
                db.single(partial(_detach, parent=parent, name=name, finish=pending))
    # Apart from detaching, so that a crash between the two leaves nothing behind.
    detached = db.read(lambda tx: [row[0] for row in tx.fetch(DETACHED)])
    for name in detached:
        while name.startswith("contexts") and db.write(partial(_forget_notes, name=name, fence=fence)):
            continue
        db.write(partial(_drop, name=name, fence=fence))
    return len(detached)


def _partitions(tx: PostgresTx, parent: str) -> list[Row]:
    return sorted(tx.fetch(PARTITIONS, parent=f"penstock.{parent}"))


def _parts(name: str) -> tuple[int, date, date]:
    match = _NAME.fullmatch(name)
    assert match is not None, name  # noqa: S101
    keep = int(match[2])
    first = datetime.strptime(match[3], "%Y%m%d").replace(tzinfo=UTC).date()
    span = 30 if keep >= 365 else 7 if keep >= 90 else 1
    return keep, first, first + timedelta(days=span)


def _over(name: str, today: date) -> bool:
    keep, _, end = _parts(name)
    return end + timedelta(days=keep) <= today


def _in_use(tx: PostgresTx, name: str) -> bool:
    keep, _, _ = _parts(name)
    low, high = _arrivals(name)
    return bool(tx.fetch(IN_USE, low=low, high=high, keep=keep)[0][0])


def _arrivals(name: str) -> tuple[int, int]:
    """Return the first arrival of a partition, and the first after it."""
    _, first, end = _parts(name)
    return (first - _DAY_ONE).days * _PER_DAY, (end - _DAY_ONE).days * _PER_DAY


def _detach(tx: PostgresTx, parent: str, name: str, *, finish: bool) -> None:
    """Detach one partition, unless somebody still uses it: then next time."""
    how = sql.SQL("FINALIZE") if finish else sql.SQL("CONCURRENTLY")
    detach = sql.SQL("ALTER TABLE {} DETACH PARTITION {} {}").format(
        sql.Identifier("penstock", parent), sql.Identifier("penstock", name), how
    )
    tx.connection.execute("SET statement_timeout = '5s'")
    try:
        tx.connection.execute(detach, prepare=False)
    except (pg.QueryCanceled, pg.LockNotAvailable):
        pass
    finally:
        tx.connection.execute("RESET statement_timeout")


def _forget_notes(tx: PostgresTx, name: str, fence: Fence) -> bool:
    """Drop a slice of what nodes noted of a partition's jobs; say whether there may be more."""
    fence(tx)
    low, high = _arrivals(name)
    what = FORGET_NOTES.format(sql.Identifier("penstock", name))
    given = {"low": low, "high": high, "actor": NODE_ACTOR, "slice": NOTES}
    return tx.connection.execute(what, given, prepare=False).rowcount >= NOTES


def _drop(tx: PostgresTx, name: str, fence: Fence) -> None:
    """Drop one detached partition; what it held no longer counts."""
    fence(tx)
    if name.startswith("history"):
        tx.connection.execute(UNCOUNT.format(sql.Identifier("penstock", name)), prepare=False)
    if name.startswith("contexts"):
        low, high = _arrivals(name)
        forget_revisions(tx, low=low, high=high)
    tx.connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier("penstock", name)), prepare=False)
