"""What is old enough goes, a slice at a time: dead jobs that block nobody, and what else grows with use."""

from datetime import timedelta
from typing import Final

from penstock.domain.durations import parse_duration
from penstock.domain.times import shifted
from penstock.stores.sql.database import Tx
from penstock.stores.sql.enqueue import still_owned
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.limits import drop_idle
from penstock.stores.sql.operations import drop_operations
from penstock.stores.sql.rows import forget_notes
from penstock.stores.sql.targets import drop_forgotten
from penstock.stores.sql.verbs import EARLIEST_DEAD, LOCK_GROUP

LANES: Final = "SELECT id, dead_retention FROM penstock.lanes ORDER BY id"
# A dead job is kept while an ordered job of its group lives, even one it does not stop: modes may be mixed.
OLD_DEAD: Final = """
    SELECT d.arrival, d.grp FROM penstock.dead d
     WHERE d.lane = :lane AND d.finished_at < :before
       AND (d.mode = 0 OR NOT EXISTS (SELECT 1 FROM penstock.jobs j
              WHERE j.lane = d.lane AND j.grp = d.grp AND j.holds)
           AND NOT EXISTS (SELECT 1 FROM penstock.groups g
              WHERE g.lane = d.lane AND g.grp = d.grp AND g.claim IS NOT NULL))
     ORDER BY d.lane, d.finished_at LIMIT :limit FOR UPDATE SKIP LOCKED"""
PER_JOB: Final = ("dead", "attempts", "contexts", "revisions", "requests")
OLD_KEYS: Final = "SELECT lane, key, id, hash FROM penstock.keys ORDER BY created_at LIMIT :limit"
DROP_KEYS: Final = "DELETE FROM penstock.keys WHERE id = ANY(:ids)"
# Keys that must stay go to the end of the line, or a slice full of them would hide the others for ever.
KEEP_KEYS: Final = "UPDATE penstock.keys SET created_at = :now WHERE id = ANY(:ids)"
OLD_TICKS: Final = "SELECT id FROM penstock.ticks WHERE at < :before ORDER BY at LIMIT :limit"
DROP_TICKS: Final = "DELETE FROM penstock.ticks WHERE id = ANY(:ids)"
DROP_NODES: Final = """
    DELETE FROM penstock.nodes
     WHERE seen_at < :before AND id NOT IN (SELECT node FROM penstock.claims)
       AND (seen_at < :long_before
            OR CAST(id AS text) NOT IN (SELECT name FROM penstock.pauses WHERE scope = 'node'))"""
TICKS_KEPT: Final = timedelta(days=7)
NODES_KEPT: Final = timedelta(days=1)
DRAINED_KEPT: Final = timedelta(days=30)  # it may wake up, and must not claim then
IDLE_REQUESTS: Final = """
    SELECT r.arrival FROM penstock.requests r
     WHERE r.at < :before AND NOT EXISTS (SELECT 1 FROM penstock.jobs j WHERE j.arrival = r.arrival)
     LIMIT :limit"""
FORGET: Final = "DELETE FROM penstock.requests WHERE arrival = ANY(:arrivals)"
SETTLED_FOR: Final = timedelta(hours=1)
SWEEPS: Final = 50  # at a time; keys come in as fast as jobs


def sweep(tx: Tx, hot: HotPath, limit: int) -> int:
    """Drop a slice of all that is old enough but jobs; return how many went where most did."""
    return max(
        drop_keys(tx, limit),
        drop_figures(tx, limit),
        drop_operations(tx, limit),
        drop_idle(tx, limit),
        drop_requests(tx, hot, limit),
        drop_forgotten(tx, limit),
    )


def drop_dead(tx: Tx, hot: HotPath, limit: int) -> int:
    """Drop dead jobs past their lane's dead_retention; return how many went."""
    dropped = 0
    for lane, retention in tx.fetch(LANES):
        if dropped >= limit:
            break
        before = shifted(tx.now, -parse_duration(retention))
        rows = tx.fetch(OLD_DEAD, lane=lane, before=before, limit=limit - dropped)
        arrivals = [row[0] for row in rows]
        for table in PER_JOB:
            tx.execute(f"DELETE FROM penstock.{table} WHERE arrival = ANY(:arrivals)", arrivals=arrivals)
        forget_notes(tx, arrivals)
        groups = sorted({row[1] for row in rows if row[1] is not None})
        for group in groups:
            tx.fetch(LOCK_GROUP, lane=lane, grp=group)
            tx.execute(EARLIEST_DEAD, lane=lane, grp=group)
        hot.wake(tx, lane, groups)
        hot.count(tx, {(lane, 14): -len(rows)} if rows else {})
        dropped += len(rows)
    return dropped


def drop_keys(tx: Tx, limit: int) -> int:
    """Drop the oldest keys, as far as their jobs are finished and their key_ttl is over."""
    rows = tx.fetch(OLD_KEYS, limit=limit)
    owners = {(row[0], row[1]): (row[2], bytes(row[3])) for row in rows}
    kept = still_owned(tx, owners)
    gone = [owner[0] for key, owner in owners.items() if key not in kept]
    tx.execute(DROP_KEYS, ids=gone)
    if kept and len(rows) == limit:
        tx.execute(KEEP_KEYS, ids=[owner[0] for key, owner in owners.items() if key in kept], now=tx.now)
    return len(gone)


def drop_figures(tx: Tx, limit: int) -> int:
    """Drop figures of passes after a week, and nodes that were last seen more than a day ago."""
    old = [row[0] for row in tx.fetch(OLD_TICKS, before=tx.now - TICKS_KEPT, limit=limit)]
    tx.execute(DROP_TICKS, ids=old)
    tx.execute(DROP_NODES, before=tx.now - NODES_KEPT, long_before=tx.now - DRAINED_KEPT)
    return len(old)


def drop_requests(tx: Tx, hot: HotPath, limit: int) -> int:
    """Drop requests whose job ended without anybody having looked at them."""
    idle = [row[0] for row in tx.fetch(IDLE_REQUESTS, before=tx.now - SETTLED_FOR, limit=limit)]
    held = {arrival for arrival, _ in hot.claims_of(tx, idle)} if idle else set()
    tx.execute(FORGET, arrivals=[arrival for arrival in idle if arrival not in held])
    return len(idle) - len(held)
