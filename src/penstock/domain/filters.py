"""Which jobs a list shows, in which order, and where its next page begins.

There are three orders, because there are three questions. *What is there?* (`newest`): what is not ended
comes first, last arrived first; then what ended, last ended first. *What will go?* (`due`): pending and
waiting jobs, the next one first. *What came?* (`oldest`): all jobs by arrival; whoever enqueues them again in
this order keeps that of their groups. Each section of a list has a key that an index keeps sorted, so a page
costs what it shows, however many jobs there are; by arrival it also costs the ended ones of other lanes.

A job that ends while somebody turns the pages may be shown again among the ended; only one that is replayed
meanwhile can escape, back to where the list has already been. By arrival each is shown once, whatever becomes
of it, and what comes after the list was begun is not on it: it may be made of the pages before.

Stores with an index for each filter need only `Position`; `matches` is the meaning of the filters.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from penstock.domain.cursors import seal, unseal
from penstock.domain.job import Job
from penstock.domain.predicates import Predicate, compared, holds
from penstock.domain.states import LIVE, TERMINAL, JobState
from penstock.errors import InvalidCursor, InvalidQuery

MAX_PAGE: Final = 500
SCHEDULED: Final = frozenset({JobState.PENDING, JobState.WAITING})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Order(StrEnum):
    """What comes first."""

    NEWEST = "newest"
    DUE = "due"
    OLDEST = "oldest"


class Section(IntEnum):
    """A part of a list that has one key."""

    LIVE = 0
    ENDED = 1
    DUE = 2
    ARRIVED = 3


_SECTIONS: Final = {
    Order.NEWEST: ((Section.LIVE, LIVE), (Section.ENDED, TERMINAL)),
    Order.DUE: ((Section.DUE, SCHEDULED),),
    Order.OLDEST: ((Section.ARRIVED, LIVE | TERMINAL),),
}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: from `since` on, up to but without `until`; None = no bound."""

    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    def covers(self, at: datetime | None) -> bool:
        """Say whether a time is in it; what has no time is in no stretch that has a bound."""
        if at is None:
            return not self
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


class Position(NamedTuple):
    """The key of one job in a list; `at` is when it ended or is due, None among the live.

    By arrival it is when the list was begun, the same for all of it.
    """

    section: Section
    at: datetime | None
    arrival: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """What the list is sorted by."""
        us = 0 if self.at is None else (self.at - _EPOCH) // _MICROSECOND
        match self.section:
            case Section.DUE:
                return (self.section, us, self.arrival)
            case Section.ARRIVED:
                return (self.section, 0, self.arrival)
            case _:
                return (self.section, -us, -self.arrival)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    """A page of a list of jobs.

    No states means all that the order has. `group` is an ordered group (immediate jobs are in none), `run` is
    about the time a job is due now, whatever the caller first said. `after` is the `next` of the page before.
    Payloads may be large and secret: a list leaves them out unless asked. `where` is what no index serves;
    `line` is the filter line that some of this was read from, whose times move on from page to page.
    """

    lane: str | None = None
    states: frozenset[JobState] = frozenset()
    group: str | None = None
    tenant: str | None = None
    key: str | None = None
    created: Span = field(default_factory=Span)
    run: Span = field(default_factory=Span)
    finished: Span = field(default_factory=Span)
    ids: tuple[str, ...] = ()
    where: tuple[Predicate, ...] = ()
    line: str = ""
    order: Order = Order.NEWEST
    limit: int = 50
    after: str | None = None
    payloads: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_PAGE:
            raise InvalidQuery("limit", f"a page has from 1 to {MAX_PAGE} jobs")
        if self.order is Order.DUE and not self.states <= SCHEDULED:
            raise InvalidQuery("order", "only pending and waiting jobs are listed by when they are due")
        for name in ("created", "run", "finished"):
            span: Span = getattr(self, name)
            if any(at is not None and at.tzinfo is None for at in (span.since, span.until)):
                raise InvalidQuery(name, "a time without an offset may mean anything, write 12:00:00Z")

    @property
    def wanted(self) -> frozenset[JobState]:
        """The states the list shows."""
        all_states = SCHEDULED if self.order is Order.DUE else LIVE | TERMINAL
        wanted = self.states or all_states
        return wanted & TERMINAL if self.finished else wanted

    @property
    def start(self) -> Position | None:
        """Where the page before ended; None = this is the first. A cursor of another list is refused."""
        if self.after is None:
            return None
        section, us, arrival = unseal(self.after, of=self._list, numbers=3)
        if section not in self.sections:
            raise InvalidCursor("it belongs to another list; keep the filters, or begin at the first page")
        at = None if section == Section.LIVE else _EPOCH + us * _MICROSECOND
        return Position(Section(section), at, arrival)

    @property
    def sections(self) -> list[Section]:
        """The sections of the list, in their order."""
        return [section for section, states in _SECTIONS[self.order] if self.wanted & states]

    def begun(self, now: datetime) -> "JobQuery":
        """Return the query; a first page by arrival notes when that is, for all pages that follow."""
        if self.after is not None or self.sections != [Section.ARRIVED]:
            return self
        return replace(self, after=self._sealed(Position(Section.ARRIVED, now, 0)))

    def later(self, job: Job) -> bool:
        """Say whether a job came after a list by arrival was begun; all that follow it did as well."""
        start = self.start if self.order is Order.OLDEST else None
        began, said = start and start.at, job.context
        return began is not None and said is not None and said.created_at > began

    def cursor(self, last: Position) -> str:
        """Return where the next page begins."""
        start = self.start if last.section is Section.ARRIVED else None
        return self._sealed(last if start is None else last._replace(at=start.at))

    def _sealed(self, last: Position) -> str:
        us = 0 if last.at is None else (last.at - _EPOCH) // _MICROSECOND
        return seal((last.section, us, last.arrival), of=self._list)

    def wants_lane(self, name: str) -> bool:
        """Say whether jobs of this lane may be on the list."""
        asked = [predicate for predicate in self.where if predicate.field == "lane"]
        return self.lane in (None, name) and all(compared(name, ask.op, ask.values) for ask in asked)

    @property
    def _list(self) -> str:
        states = sorted(self.states)
        spans = (self.created, self.run, self.finished)
        times = [str(at) for span in spans for at in (span.since, span.until)]
        rest = self.line or (times, self.ids, self.where)
        return repr(("jobs", self.order, self.lane, states, self.group, self.tenant, self.key, rest))


class Page(NamedTuple):
    """Some jobs of a list; `next` is where the following page begins, None = that was the last.

    A filter that no index serves is tried on a bounded number of jobs per page: a page may then be short, or
    empty, and still have a next one.
    """

    jobs: list[Job]
    next: str | None


def position(job: Job, order: Order) -> Position:
    """Return a job's key in a list of this order."""
    if order is Order.DUE:
        return Position(Section.DUE, job.live.due_at, job.live.arrival)
    if order is Order.OLDEST:
        return Position(Section.ARRIVED, None, job.live.arrival)
    section = Section.LIVE if job.finished_at is None else Section.ENDED
    return Position(section, job.finished_at, job.live.arrival)


def matches(job: Job, query: JobQuery) -> bool:
    """Say whether a job is one that the list shows."""
    row, context = job.live, job.context
    return (
        job.state in query.wanted
        and query.lane in (None, job.lane)
        and query.group in (None, row.grp)
        and query.tenant in (None, row.tenant)
        and (query.key is None or (context is not None and context.key == query.key))
        and query.run.covers(row.due_at)
        and query.created.covers(None if context is None else context.created_at)
        and query.finished.covers(job.finished_at)
        and (not query.ids or job.id in query.ids)
        and not query.later(job)
        and all(holds(predicate, job) for predicate in query.where)
    )
