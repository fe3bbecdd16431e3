"""Pages of groups, by lane and name.

Their names come from two places, both read in the order of an index: the rows of `groups`, and live jobs,
whose groups on PostgreSQL have no row before the first claim has looked. Of a group with a hundred thousand
jobs one is read. What a group is doing is then found out by its name, for a page's worth of groups at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

from penstock.domain.cursors import seal_names, unseal_names
from penstock.domain.filters import MAX_PAGE
from penstock.domain.groups import BLOCKED, MOST, Group, GroupRow, Told, group_row, list_of_groups
from penstock.domain.job import ON_REQUEST, Attempt, Audit, Live
from penstock.domain.ordering import Place
from penstock.domain.standing import OUTCOME_UNKNOWN
from penstock.domain.states import JobState
from penstock.errors import InvalidQuery
from penstock.ports.insight import GroupPage
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import current_lanes
from penstock.stores.sql.rows import LIVE_COLUMNS

ROUNDS: Final = 10
AT_LEAST: Final = 100
LANES_AT_ONCE: Final = 50
ROWS: Final = """
    SELECT lane, grp FROM penstock.groups
     WHERE lane = :lane AND grp > :after ORDER BY lane, grp LIMIT :limit"""
DEAD: Final = """
    SELECT lane, grp FROM penstock.groups INDEXED BY penstock.groups_dead
     WHERE lane = :lane AND dead_arrival IS NOT NULL AND grp || '' > :after
     ORDER BY lane, grp || '' LIMIT :limit"""
# One group after the other: the first job of each, then the first behind that group.
_WALK: Final = """
    WITH RECURSIVE t (grp, n) AS (
      SELECT (SELECT j.grp FROM penstock.jobs j INDEXED BY penstock.{index}
               WHERE j.lane = :lane AND {where} AND {grp} > :after ORDER BY j.lane, {grp} LIMIT 1), 1
       UNION ALL
      SELECT (SELECT j.grp FROM penstock.jobs j INDEXED BY penstock.{index}
               WHERE j.lane = :lane AND {where} AND {grp} > t.grp ORDER BY j.lane, {grp} LIMIT 1), t.n + 1
        FROM t WHERE t.grp IS NOT NULL AND t.n < :limit)
    SELECT :lane AS lane, grp FROM t WHERE grp IS NOT NULL LIMIT :limit"""
LIVE_NAMES: Final = _WALK.format(index="jobs_group", where="j.holds", grp="j.grp")
HELD: Final = _WALK.format(index="jobs_held", where="j.holds AND j.state = 5", grp="j.grp || ''")
_BOTH: Final = "SELECT * FROM ({}) one UNION SELECT * FROM ({}) other"
# With each name the group's row and its first job.
_HEAD: Final = ", ".join(f"h.{column}" for column in LIVE_COLUMNS)
_LOOK: Final = f"""
    SELECT n.lane, n.grp, g.claim, g.paused, g.dead_seq, g.dead_arrival, {_HEAD}
      FROM ({{names}}) n
      LEFT JOIN penstock.groups g ON g.lane = n.lane AND g.grp = n.grp
      LEFT JOIN penstock.jobs h ON h.arrival = (
           SELECT f.arrival FROM penstock.jobs f INDEXED BY penstock.jobs_group
            WHERE f.lane = n.lane AND f.grp = n.grp AND f.holds
            ORDER BY f.lane, f.grp, f.ord, f.arrival LIMIT 1)
     LIMIT 2 * :limit"""
BLOCKED_ONES: Final = _LOOK.format(names=_BOTH.format(DEAD, HELD))
ALL_OF_THEM: Final = _LOOK.format(names=_BOTH.format(ROWS, LIVE_NAMES))
THIS_ONE: Final = _LOOK.format(names="SELECT :lane AS lane, :grp AS grp")
_AUDIT: Final = ", ".join(Audit._fields)
LAST_AUDIT: Final = f"""
    SELECT {_AUDIT} FROM penstock.audit
     WHERE arrival = :arrival AND (reason IS NULL OR reason <> '{ON_REQUEST}' OR actor <> 'penstock')
     ORDER BY id + 0 DESC LIMIT 1"""
TRIED: Final = f"""
    SELECT {", ".join(Attempt._fields)} FROM penstock.attempts WHERE keep = :keep AND arrival = :arrival
     ORDER BY ended_at DESC, send DESC LIMIT 1"""
PAUSED_BY: Final = f"""
    SELECT {_AUDIT} FROM penstock.audit INDEXED BY penstock.audit_group
     WHERE lane = :lane AND after = :grp AND action = 'pause_group' ORDER BY id + 0 DESC LIMIT 1"""
# What of a group that is shown is found elsewhere: how many wait, who its first job is, since when one is
# dead and who that is, when the first was held, when its last attempt ended, when the group was paused, and
# until when.
_ID: Final = "SELECT c.id FROM penstock.contexts c WHERE c.keep"
TOLD: Final = f"""
    SELECT :lane, :grp,
           (SELECT count(*) FROM (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_group
             WHERE lane = :lane AND grp = :grp AND holds AND state IN (1, 5, 6)
             ORDER BY lane, grp, ord, arrival LIMIT :most) q),
           ({_ID} = :keep AND c.arrival = :arrival),
           d.finished_at, ({_ID} = d.keep AND c.arrival = d.arrival),
           CASE WHEN :state = {JobState.HELD.value} THEN (SELECT a.at FROM ({LAST_AUDIT}) a) END,
           CASE WHEN :reason = '{OUTCOME_UNKNOWN}' THEN (SELECT t.ended_at FROM ({TRIED}) t) END,
           CASE WHEN :paused THEN (SELECT p.at FROM ({PAUSED_BY}) p) END,
           CASE WHEN :paused THEN (SELECT e.until FROM penstock.pauses e
             WHERE e.scope = 'group' AND e.name = :lane || '/' || :grp) END
      FROM (SELECT 1 AS one) o LEFT JOIN penstock.dead d ON d.arrival = :dead_arrival LIMIT 1"""
_OF_FIRST: Final = ("keep", "arrival", "state", "reason")


class Name(NamedTuple):
    """Which group."""

    lane: int
    grp: str


Groups = dict[Name, Group]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What list, and from where on."""

    lane: str | None
    group: str | None
    blocked: bool
    limit: int
    after: str | None

    @property
    def mark(self) -> str:
        """Which list it is, for its cursors."""
        return list_of_groups(self.lane, self.group, blocked=self.blocked)


@dataclass(frozen=True, slots=True)
class Walk:
    """The lanes of a list, by name, and where in it we are."""

    lanes: dict[int, str]
    lane: str = ""
    group: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Where we are."""
        return self.lane, self.group

    def behind(self, name: Name) -> "Walk":
        """Return the rest of the walk."""
        return Walk(self.lanes, self.lanes[name.lane], name.grp)

    def stretches(self) -> Iterator[dict[str, list[object]]]:
        """Yield some lanes at a time, with the name to go on behind in each."""
        ahead = iter([(number, name) for number, name in self.lanes.items() if name >= self.lane])
        while some := list(islice(ahead, LANES_AT_ONCE)):
            after = [self.group if name == self.lane else "" for _, name in some]
            yield {"lane": [number for number, _ in some], "after": [*after]}


def list_groups(tx: Tx, hot: HotPath, wanted: Wanted) -> GroupPage:
    """Return one page; all of it must be read on one snapshot."""
    if not 1 <= wanted.limit <= MAX_PAGE:
        raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} entries")
    start = ("", "") if wanted.after is None else unseal_names(wanted.after, of=wanted.mark, names=2)
    known = sorted(current_lanes(tx).items(), key=lambda lane: lane[1])
    walk = Walk({number: name for number, name in known if wanted.lane in (None, name)}, *start)
    size, shown = max(wanted.limit + 1, AT_LEAST), Groups()
    for _ in range(ROUNDS):
        found = _look(tx, hot, _next(tx, walk, size, wanted))
        shown |= {name: group for name, group in found.items() if _fits(group, wanted)}
        walk = walk.behind(list(found)[-1]) if found else walk
        if len(shown) > wanted.limit or len(found) < size:
            break
    page = dict(islice(shown.items(), wanted.limit))
    if len(shown) > wanted.limit:
        walk = walk.behind(list(page)[-1])
    elif len(found) < size:
        return GroupPage(_rows(tx, walk, page), None)
    return GroupPage(_rows(tx, walk, page), seal_names(walk.place, of=wanted.mark))


def _fits(group: Group, wanted: Wanted) -> bool:
    return group.state == BLOCKED if wanted.blocked else group.known


def _next(tx: Tx, walk: Walk, size: int, wanted: Wanted) -> dict[Name, Row]:
    """Return the next groups that may belong to the list, in its order."""
    if wanted.group is not None:
        lanes = [number for number, name in walk.lanes.items() if (name, wanted.group) > walk.place][:size]
        each: dict[str, list[object]] = {"lane": [*lanes], "grp": [wanted.group] * len(lanes)}
        found = {Name(*row[:2]): row[2:] for row in tx.fetch_each(THIS_ONE, each, limit=1)}
        return {name: found[name] for name in (Name(lane, wanted.group) for lane in lanes)}
    ahead: dict[Name, Row] = {}
    for each in walk.stretches():
        sql = BLOCKED_ONES if wanted.blocked else ALL_OF_THEM
        some = {Name(*row[:2]): row[2:] for row in tx.fetch_each(sql, each, limit=size)}
        ahead |= {
            name: some[name] for name in sorted(some, key=lambda each: (walk.lanes[each.lane], each.grp))
        }
        if len(ahead) >= size:
            break
    return dict(islice(ahead.items(), size))


def _look(tx: Tx, hot: HotPath, rows: Mapping[Name, Row]) -> Groups:
    """Return what there is to know of these groups."""
    epochs = sorted({row[0] for row in rows.values() if row[0] is not None})
    claimed: dict[Name, list[Live]] = {}
    for job in (job for claim in hot.claim_rows(tx, epochs) for job in claim.open_jobs()):
        claimed.setdefault(Name(job.lane, job.grp or ""), []).append(job)
    groups = Groups()
    for name, (_, paused, seq, arrival, *head) in rows.items():
        dead = None if arrival is None else Place(seq, arrival)
        first = None if head[0] is None else tx.live(head)
        groups[name] = Group(claimed.get(name, ()), first, dead, paused=bool(paused))
    return groups


def _rows(tx: Tx, walk: Walk, groups: Groups) -> list[GroupRow]:
    """Return groups as operators see them."""
    firsts = [group.first for group in groups.values()]
    each: dict[str, list[object]] = {
        **_each(groups),
        **{name: [first and getattr(first, name) for first in firsts] for name in _OF_FIRST},
        "paused": [group.paused for group in groups.values()],
        "dead_arrival": [None if group.dead is None else group.dead.arrival for group in groups.values()],
    }
    told = {Name(*row[:2]): row[2:] for row in tx.fetch_each(TOLD, each, most=MOST + 1)}
    return [
        group_row(walk.lanes[name.lane], name.grp, group, _told(tx, group, told[name]))
        for name, group in groups.items()
    ]


def _told(tx: Tx, group: Group, row: Row) -> Told:
    waiting, first_id, died_at, dead_id, held_at, tried_at, paused_at, paused_until = row
    ids, blocked_at = dict[int, str](), dict[int, datetime | None]()
    if group.first is not None:
        # No audit row says since when recovery holds a job: its last attempt does.
        blocked_at[group.first.arrival] = tx.time(held_at if tried_at is None else tried_at)
        if first_id is not None:
            ids[group.first.arrival] = first_id
    if group.dead is not None:
        blocked_at[group.dead.arrival] = tx.time(died_at)
        if dead_id is not None:
            ids[group.dead.arrival] = dead_id
    return Told(tx.now, ids, blocked_at, tx.time(paused_at), waiting, tx.time(paused_until))


def _each(names: Iterable[Name]) -> dict[str, list[object]]:
    names = list(names)
    return {"lane": [name.lane for name in names], "grp": [name.grp for name in names]}
