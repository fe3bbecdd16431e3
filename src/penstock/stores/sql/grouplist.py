"""Pages of groups, by lane and name.

Their names come from two places, both read in the order of an index: the rows of `groups`, and live jobs,
whose groups on PostgreSQL have no row before the first claim has looked. Of a group with a hundred thousand
jobs one is read. What a group is doing is then found out by its name, for a page's worth of groups at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from penstock.domain.cursors import seal_names, unseal_names
from penstock.domain.filters import MAX_PAGE
from penstock.domain.groups import BLOCKED, MOST, PAUSED, Group, GroupRow, Told, group_row
from penstock.domain.job import ON_REQUEST, Attempt, Audit, Live
from penstock.domain.ordering import Place
from penstock.domain.standing import OUTCOME_UNKNOWN
from penstock.errors import InvalidQuery
from penstock.ports.insight import GroupPage
from penstock.stores.sql.database import Tx
from penstock.stores.sql.hotpath import HotPath
from penstock.stores.sql.reading import DEAD_ROWS, LANE_NAMES, ended_rows
from penstock.stores.sql.rows import LIVE

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
    SELECT :lane, grp FROM t WHERE grp IS NOT NULL LIMIT :limit"""
LIVE_NAMES: Final = _WALK.format(index="jobs_group", where="j.holds", grp="j.grp")
HELD: Final = _WALK.format(index="jobs_held", where="j.holds AND j.state = 5", grp="j.grp || ''")
GROUP: Final = """
    SELECT lane, grp, claim, paused, dead_seq, dead_arrival FROM penstock.groups
     WHERE lane = :lane AND grp = :grp LIMIT 1"""
HEAD: Final = f"""
    SELECT {LIVE} FROM penstock.jobs INDEXED BY penstock.jobs_group
     WHERE lane = :lane AND grp = :grp AND holds ORDER BY lane, grp, ord, arrival LIMIT 1"""
BEHIND: Final = """
    SELECT :lane, :grp, count(*) FROM (SELECT 1 FROM penstock.jobs INDEXED BY penstock.jobs_group
      WHERE lane = :lane AND grp = :grp AND holds AND state IN (1, 5, 6)
      ORDER BY lane, grp, ord, arrival LIMIT :most) q LIMIT 1"""
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
ENDED_AT: Final = Attempt._fields.index("ended_at")
ID: Final = "SELECT arrival, id FROM penstock.contexts WHERE keep = :keep AND arrival = :arrival LIMIT 1"


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
        return repr(("groups", self.lane, self.group, self.blocked))


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
    known = sorted(tx.fetch(LANE_NAMES), key=lambda row: str(row[1]))
    walk = Walk({number: name for number, name in known if wanted.lane in (None, name)}, *start)
    size, shown = max(wanted.limit + 1, AT_LEAST), Groups()
    for _ in range(ROUNDS):
        names = _names(tx, walk, size, wanted)
        found = _look(tx, hot, names)
        shown |= {name: found[name] for name in names if _fits(found[name], wanted)}
        walk = walk.behind(names[-1]) if names else walk
        if len(shown) > wanted.limit or len(names) < size:
            break
    page = dict(islice(shown.items(), wanted.limit))
    if len(shown) > wanted.limit:
        walk = walk.behind(list(page)[-1])
    elif len(names) < size:
        return GroupPage(_rows(tx, walk, page), None)
    return GroupPage(_rows(tx, walk, page), seal_names(walk.place, of=wanted.mark))


def _fits(group: Group, wanted: Wanted) -> bool:
    return group.state == BLOCKED if wanted.blocked else group.known


def _names(tx: Tx, walk: Walk, size: int, wanted: Wanted) -> list[Name]:
    """Return the next groups that may belong to the list."""
    if wanted.group is not None:
        lanes = [number for number, name in walk.lanes.items() if (name, wanted.group) > walk.place]
        return [Name(number, wanted.group) for number in lanes[:size]]
    found: list[Name] = []
    for each in walk.stretches():
        sources = (DEAD, HELD) if wanted.blocked else (ROWS, LIVE_NAMES)
        some = {Name(*row) for sql in sources for row in tx.fetch_each(sql, each, limit=size)}
        found += sorted(some, key=lambda name: (walk.lanes[name.lane], name.grp))
        if len(found) >= size:
            break
    return found[:size]


def _look(tx: Tx, hot: HotPath, names: Sequence[Name]) -> Groups:
    """Return what there is to know of these groups."""
    each = _each(names)
    rows = {Name(*row[:2]): row[2:] for row in tx.fetch_each(GROUP, each)}
    heads = {Name(head.lane, head.grp or ""): head for head in map(tx.live, tx.fetch_each(HEAD, each))}
    epochs = sorted({row[0] for row in rows.values() if row[0] is not None})
    claims = [claim for epoch in epochs if (claim := hot.claim_row(tx, epoch, lock=False)) is not None]
    claimed: dict[Name, list[Live]] = {}
    for job in (job for claim in claims for job in claim.open_jobs()):
        claimed.setdefault(Name(job.lane, job.grp or ""), []).append(job)
    groups = Groups()
    for name in names:
        _, paused, seq, arrival = rows.get(name, (None, False, None, None))
        dead = None if arrival is None else Place(seq, arrival)
        groups[name] = Group(claimed.get(name, ()), heads.get(name), dead, paused=bool(paused))
    return groups


def _rows(tx: Tx, walk: Walk, groups: Groups) -> list[GroupRow]:
    """Return groups as operators see them."""
    waiting = {Name(*row[:2]): row[2] for row in tx.fetch_each(BEHIND, _each(groups), most=MOST + 1)}
    blockers = [group.blocker for group in groups.values() if group.blocker is not None]
    dead = ended_rows(tx, DEAD_ROWS, blockers)
    held = {"arrival": [arrival for arrival in blockers if arrival not in dead]}
    since = {row[1]: tx.time(row[0]) for row in tx.fetch_each(LAST_AUDIT, held)}
    since |= {row[0]: tx.time(row[ENDED_AT]) for row in tx.fetch_each(TRIED, _unknown(groups.values()))}
    since |= {arrival: end.finished_at for arrival, end in dead.items()}
    paused = _each([name for name, group in groups.items() if group.state == PAUSED])
    paused_at = {Name(row[2], row[6]): tx.time(row[0]) for row in tx.fetch_each(PAUSED_BY, paused)}
    firsts = [group.first for group in groups.values() if group.first is not None]
    ids = _ids(tx, [*firsts, *(end.job for end in dead.values())])
    return [
        group_row(
            walk.lanes[name.lane],
            name.grp,
            group,
            Told(tx.now, ids, since, paused_at.get(name), waiting[name]),
        )
        for name, group in groups.items()
    ]


def _unknown(groups: Iterable[Group]) -> dict[str, list[object]]:
    """Return the heads that recovery holds: their last attempt says since when, no audit row does."""
    heads = [group.head for group in groups if group.head is not None and group.blocker == group.head.arrival]
    found = [head for head in heads if head.reason == OUTCOME_UNKNOWN]
    return {"keep": [head.keep for head in found], "arrival": [head.arrival for head in found]}


def _ids(tx: Tx, jobs: Sequence[Live]) -> dict[int, str]:
    each = {"keep": [job.keep for job in jobs], "arrival": [job.arrival for job in jobs]}
    return {row[0]: row[1] for row in tx.fetch_each(ID, each)}


def _each(names: Iterable[Name]) -> dict[str, list[object]]:
    names = list(names)
    return {"lane": [name.lane for name in names], "grp": [name.grp for name in names]}
