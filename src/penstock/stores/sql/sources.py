"""Where the rows of a list come from: tables, read in the order of an index once some columns are given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from penstock.domain.filters import SCHEDULED, JobQuery, Section, Span
from penstock.domain.predicates import Op, row_test
from penstock.domain.states import LIVE as LIVE_STATES
from penstock.domain.states import TERMINAL, JobState
from penstock.stores.sql.database import Row, Tx
from penstock.stores.sql.rows import LIVE, LIVE_COLUMNS

FEW: Final = 1_000
ROW_STATES: Final = LIVE_STATES - {JobState.CLAIMED}
HISTORY_STATES: Final = TERMINAL - {JobState.DEAD}
ORDER: Final[Mapping[Section, str]] = {
    Section.LIVE: "arrival DESC",
    Section.ENDED: "finished_at DESC, arrival DESC",
    Section.DUE: "due_at, arrival",
    Section.ARRIVED: "arrival",
}
_KEY: Final[Mapping[Section, str]] = {
    Section.LIVE: "NULL, arrival",
    Section.ENDED: "finished_at, arrival",
    Section.DUE: "due_at, arrival",
    Section.ARRIVED: "NULL, arrival",
}
_GONE: Final = {
    "open": "false AS open",
    "holds": "false AS holds",
    "deadline": "NULL AS deadline",
    "since": "NULL AS since",
    "slot": "NULL AS slot",
}
_ENDED: Final = ", ".join(_GONE.get(column, column) for column in LIVE_COLUMNS)
_COLUMNS: Final[Mapping[str, str]] = {
    "jobs": LIVE,
    "dead": f"{_ENDED}, finished_at, error, result",
    "history": f"{_ENDED}, finished_at, error, result",
}
# One look per row: a planner may turn EXISTS into a join with all contexts there are.
_CREATED: Final = """coalesce((SELECT {} FROM penstock.contexts x
    WHERE x.keep = w.keep AND x.arrival = w.arrival LIMIT 1), false)"""
_MEMBERS: Final = (
    """SELECT arrival FROM penstock.jobs INDEXED BY penstock.jobs_group
        WHERE lane = :lane AND grp = :grp AND holds ORDER BY lane, grp, ord, arrival LIMIT :few""",
    """SELECT arrival FROM penstock.jobs INDEXED BY penstock.jobs_passed
        WHERE lane = :lane AND grp = :grp AND grp IS NOT NULL AND NOT holds LIMIT :few""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Rows of a table by an index; `given` selects a stretch of it for each set of values in `each`.

    `tried` are conditions that the index does not serve: they are tried on a bounded number of rows.
    """

    table: str
    section: Section
    index: str = ""
    given: tuple[str, ...]
    each: Mapping[str, Sequence[object]] = field(default_factory=dict)
    tried: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)

    @property
    def breadth(self) -> int:
        """How many stretches of the index are read."""
        return max((len(values) for values in self.each.values()), default=1)

    def best(self, tx: Tx, bounds: Sequence[str], *, limit: int, window: int, **params: object) -> list[Row]:
        """Return at least the first `limit` rows within the bounds, of the first `window` of each stretch."""
        rows = self._ordered(_COLUMNS[self.table], bounds)
        if self.tried:
            # No ORDER BY of its own: rows come out as they are read, and the first that fit end it. SQLite
            # would sort the whole window once more.
            sql = f"SELECT w.* FROM ({rows} LIMIT :window) w WHERE {' AND '.join(self.tried)} LIMIT :limit"
        else:
            sql = f"{rows} LIMIT :limit"
        return self._fetch(tx, sql, {"limit": limit, "window": window, **params}, best=ORDER[self.section])

    def ends(self, tx: Tx, bounds: Sequence[str], *, window: int, **params: object) -> list[Row]:
        """Return the key of the last row of each stretch's window, for those that fill it."""
        sql = f"{self._ordered(_KEY[self.section], bounds)} LIMIT 1 OFFSET :skip"
        return self._fetch(tx, sql, {"skip": window - 1, **params})

    def _ordered(self, columns: str, bounds: Sequence[str]) -> str:
        index = f"INDEXED BY penstock.{self.index}" if self.index else ""
        bounded, order = " AND ".join(["", *bounds]), ORDER[self.section]
        if self.index == "jobs_listed":  # which spells the arrival in its own way
            bounded, order = (text.replace("arrival", "(arrival + 0)") for text in (bounded, order))
        where = f"{' AND '.join(self.given)}{bounded}"
        return f"SELECT {columns} FROM penstock.{self.table} {index} WHERE {where} ORDER BY {order}"

    def _fetch(self, tx: Tx, sql: str, params: Mapping[str, object], *, best: str = "") -> list[Row]:
        values = {**self.params, **params}
        return tx.fetch_each(sql, self.each, best=best, **values) if self.each else tx.fetch(sql, **values)


def sources_of(tx: Tx, query: JobQuery, section: Section, lanes: Sequence[int]) -> list[Source]:
    """Return the sources of a section; together they have every job of it, each in one of them."""
    if not lanes:
        return []
    match section:
        case Section.LIVE:
            return _live(query, Section.LIVE, lanes, _members(tx, query, lanes))
        case Section.ENDED:
            return _ended(query, lanes)
        case Section.DUE:
            return _due(query, lanes, _members(tx, query, lanes))
        case Section.ARRIVED:
            live = _live(query, Section.ARRIVED, lanes, _members(tx, query, lanes))
            return live + _ended_as_they_came(query, lanes)


def _members(tx: Tx, query: JobQuery, lanes: Sequence[int]) -> list[int] | None:
    """Return the live jobs of the group that is asked for, if they are few."""
    if query.group is None:
        return None
    each = {"lane": list(lanes)}
    found = [row[0] for sql in _MEMBERS for row in tx.fetch_each(sql, each, grp=query.group, few=FEW)]
    return found if len(found) < FEW else None


def _live(query: JobQuery, section: Section, lanes: Sequence[int], members: list[int] | None) -> list[Source]:
    states = query.wanted & ROW_STATES
    tried = _tried(query, "tenant", "group", "run", "created")
    if not states:
        return []
    if members is not None:
        return [_few(query, section, members, tried=(*tried, _among(states)))]
    if query.lane is None and states == ROW_STATES:
        return [_source(query, "jobs", section, given=("arrival > 0",), tried=tried)]
    each = {"lane": lanes, "state": _numbers(states)}
    given = ("lane = :lane", "state = :state", "arrival > 0")
    return [_source(query, "jobs", section, "jobs_listed", given=given, each=each, tried=tried)]


def _due(query: JobQuery, lanes: Sequence[int], members: list[int] | None) -> list[Source]:
    tried = _tried(query, "tenant", "group", "created")
    if members is not None:
        return [_few(query, Section.DUE, members, tried=(*tried, _among(query.wanted)))]
    each = {"lane": lanes}
    others = () if query.wanted == SCHEDULED else (_among(query.wanted),)
    given = ("lane = :lane", "(state = 6 OR (state = 1 AND mode <> 0))")
    ordered = _source(
        query, "jobs", Section.DUE, "jobs_scheduled", given=given, each=each, tried=(*tried, *others)
    )
    if query.group is not None or JobState.PENDING not in query.wanted:
        return [ordered]
    tried = _tried(query, "created")
    if query.tenant is None:
        indexes = {"jobs_due": "tenant IS NULL", "jobs_due_tenants": "num_nulls(tenant) = 0"}
    else:
        indexes = {"jobs_tenant": "tenant IS NOT NULL AND tenant = :tenant"}
    plain = ("lane = :lane", "mode = 0", "state = 1")
    return [ordered] + [
        _source(query, "jobs", Section.DUE, index, given=(*plain, whose), each=each, tried=tried)
        for index, whose in indexes.items()
    ]


def _ended(query: JobQuery, lanes: Sequence[int]) -> list[Source]:
    tried = _tried(query, "tenant", "run", "created")
    group = () if query.group is None else ("grp = :grp", "grp IS NOT NULL")
    given, each = ("lane = :lane", *group), {"lane": lanes}
    found = []
    if JobState.DEAD in query.wanted:
        index, listed = ("dead_listed", ("arrival > 0",)) if group else ("dead_finished", ())
        found.append(
            _source(query, "dead", Section.ENDED, index, given=(*given, *listed), each=each, tried=tried)
        )
    states = query.wanted & HISTORY_STATES
    if not states:
        return found
    if not group and JobState.SUCCEEDED not in states:
        given, each = (*given, "state = :state", "state <> 10"), {"lane": lanes, "state": _numbers(states)}
        index = "history_unusual"
    else:
        tried = tried if states == HISTORY_STATES else (*tried, _among(states))
        index = "history_group" if group else "history_lane"
    return [*found, _source(query, "history", Section.ENDED, index, given=given, each=each, tried=tried)]


def _ended_as_they_came(query: JobQuery, lanes: Sequence[int]) -> list[Source]:
    """Return the ended by arrival alone: no index has a lane's so, thus the lane is tried as well."""
    tried = _tried(query, "tenant", "group", "run", "created", "finished")
    if query.lane is not None or any(predicate.field == "lane" for predicate in query.where):
        tried = ("w.lane = ANY(:lanes)", *tried)
    states = query.wanted & HISTORY_STATES
    others = () if states == HISTORY_STATES else (_among(states),)
    tables = {"dead": tried} if JobState.DEAD in query.wanted else {}
    tables |= {"history": (*tried, *others)} if states else {}
    return [
        _source(query, table, Section.ARRIVED, given=("arrival > 0",), tried=tried, lanes=list(lanes))
        for table, tried in tables.items()
    ]


def _few(query: JobQuery, section: Section, members: list[int], *, tried: tuple[str, ...]) -> Source:
    return _source(query, "jobs", section, given=("arrival = ANY(:members)",), tried=tried, members=members)


def _source(
    query: JobQuery,
    table: str,
    section: Section,
    index: str = "",
    *,
    given: tuple[str, ...],
    tried: tuple[str, ...],
    each: Mapping[str, Sequence[int]] | None = None,
    **more: list[int],
) -> Source:
    sets = list(product(*each.values())) if each else []
    columns = dict(zip(each or {}, zip(*sets, strict=True), strict=True))
    times = {
        f"{name}_{side}": at
        for name, span in (("run", query.run), ("created", query.created), ("finished", query.finished))
        for side, at in (("since", span.since), ("until", span.until))
        if at is not None
    }
    asked = {
        f"asked_{n}": list(ask.values) if ask.op in (Op.IS, Op.NOT) else ask.values[0]
        for n, ask in enumerate(query.where)
        if row_test(ask, "")
    }
    params = {"tenant": query.tenant, "grp": query.group, **times, **asked, **more}
    return Source(
        table=table, section=section, index=index, given=given, each=columns, tried=tried, params=params
    )


def _tried(query: JobQuery, *filters: str) -> tuple[str, ...]:
    """Return the conditions of those of these filters that are set; `w` is the row."""
    created = _within("x.created_at", query.created, "created")
    conditions = {
        "tenant": "w.tenant = :tenant" if query.tenant is not None else "",
        "group": "w.grp = :grp" if query.group is not None else "",
        "run": _within("w.due_at", query.run, "run"),
        "created": _CREATED.format(created) if created else "",
        "finished": _within("w.finished_at", query.finished, "finished"),
    }
    served = tuple(conditions[name] for name in filters if conditions[name])
    asked = (row_test(predicate, f"asked_{n}") for n, predicate in enumerate(query.where))
    return (*served, *filter(None, asked))


def _within(column: str, span: Span, name: str) -> str:
    sides = ((f"{column} >= :{name}_since", span.since), (f"{column} < :{name}_until", span.until))
    return " AND ".join(condition for condition, at in sides if at is not None)


def _among(states: frozenset[JobState]) -> str:
    return f"w.state IN ({', '.join(map(str, _numbers(states)))})"


def _numbers(states: frozenset[JobState]) -> list[int]:
    return sorted(int(state) for state in states)
