"""Jobs that a pool put back, and that need not wait any more since it is set otherwise.

Their rows say what they wait for (`domain/pools.mark`). There are few such marks, however many jobs have one:
they are found by as many probes of an index.
"""

from collections import Counter
from datetime import datetime
from typing import Final

from penstock.domain.job import Live
from penstock.domain.pools import marks
from penstock.domain.settlement import recalled
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.pools import load_pools
from penstock.stores.sql.reading import lane_names
from penstock.stores.sql.reports import replace
from penstock.stores.sql.rows import LIVE

_NEXT: Final = """
    (SELECT n.arrival FROM penstock.jobs n WHERE n.state = 1 AND n.reason IS NOT NULL AND {}
      ORDER BY n.lane, n.reason, n.arrival LIMIT 1)"""
# The first job of each mark: after one, that of the lane's next mark, or else of the next lane's first.
_FIRST: Final = f"""
    WITH RECURSIVE first (arrival) AS (
      SELECT {_NEXT.format("n.lane > 0")}
      UNION ALL
      SELECT coalesce({_NEXT.format("n.lane = j.lane AND n.reason > j.reason")},
                      {_NEXT.format("n.lane > j.lane")})
        FROM first f JOIN penstock.jobs j ON j.arrival = f.arrival)
    SELECT {{}} FROM first f JOIN penstock.jobs j ON j.arrival = f.arrival
      JOIN penstock.lanes l ON l.id = j.lane"""
MARKS: Final = _FIRST.format("j.lane, j.reason, l.pool")
SINCE: Final = _FIRST.format("l.name, coalesce(j.since, j.due_at)")
MARKED: Final = f"""
    SELECT {LIVE} FROM penstock.jobs
     WHERE lane = :lane AND state = 1 AND reason = :mark AND reason IS NOT NULL
     ORDER BY arrival LIMIT :limit FOR UPDATE SKIP LOCKED"""


def stale(tx: Tx) -> list[tuple[int, str]]:
    """Return lanes and the marks on jobs of theirs that no pool stands for any more."""
    found = tx.fetch(MARKS)
    known = load_pools(tx) if found else {}
    return [(lane, mark) for lane, mark, own in found if mark not in marks(own, known)]


def put_back(tx: Tx) -> list[tuple[str, datetime | None]]:
    """Return lanes, and since when the first job is due of those that a pool put back."""
    return [(lane, tx.time(since)) for lane, since in tx.fetch(SINCE)]


def recall(tx: Tx, hot: HotPath, limit: int) -> dict[str, int]:
    """Let jobs with stale marks come now, the oldest of each first; return how many, by lane."""
    rows = list[Live]()
    for lane, mark in stale(tx):
        left = limit - len(rows)
        rows += [tx.live(row) for row in tx.fetch(MARKED, lane=lane, mark=mark, limit=left)] if left else []
    before = Counter((row.lane, int(row.state)) for row in rows)
    replace(tx, hot, rows, [recalled(row, tx.now) for row in rows], before=before, requests={}, now=tx.now)
    names = lane_names(tx) if rows else {}
    return dict(Counter(names[row.lane] for row in rows))
