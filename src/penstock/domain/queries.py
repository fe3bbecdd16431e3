"""A list's filters as callers write them: one line of the filter language, states and orders by name."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import UnionType
from typing import Any, Final, TypedDict

from penstock.domain.arguments import check_filter
from penstock.domain.filter_line import read_filter
from penstock.domain.filters import JobQuery, Order, Span
from penstock.domain.names import near
from penstock.domain.states import JobState
from penstock.domain.times import check_time
from penstock.errors import InvalidQuery

_SPAN: Final = (Span, "a Span: give penstock.Span(since=..., until=...)")
_KINDS: Final[Mapping[str, tuple[type | UnionType, str]]] = {
    **dict.fromkeys(("filter", "lane", "group", "tenant", "key", "after"), (str, "text")),
    "state": (JobState | str | Iterable, "a state, or several: give 'dead', or ['dead', 'held']"),
    "created": _SPAN,
    "run": _SPAN,
    "finished": _SPAN,
    "order": (str, "text"),
    "limit": (int, "a whole number: give one from 1 to 500"),
    "payloads": (bool, "True or False"),
}
States = JobState | str | Iterable[JobState | str]


class Filters(TypedDict, total=False):
    """Which jobs a list shows and where it goes on; all of them must hold.

    `filter` is a line of the filter language; `state` is one or several; `group` finds ordered jobs;
    `created`, `run` and `finished` are stretches of time; `order` is `newest`, `due` or `oldest`; a page has
    `limit` jobs, 50 unless said, 500 at most, and begins `after` the one before; `payloads` fetches payloads
    too.
    """

    filter: str
    lane: str | None
    state: States
    group: str | None
    tenant: str | None
    key: str | None
    created: Span
    run: Span
    finished: Span
    order: Order | str
    limit: int
    after: str | None
    payloads: bool


def job_query(filters: Filters, *, now: Callable[[], datetime]) -> JobQuery:
    """Return the query that these filters are, or raise InvalidQuery; `now` is asked if it matters."""
    rest: dict[str, Any] = {
        name: _checked(name, value) for name, value in filters.items() if value is not None
    }
    line: str = rest.pop("filter", "").strip()
    state: States = rest.pop("state", ())
    states = frozenset(map(_state, [state] if isinstance(state, JobState | str) else state))
    read: dict[str, Any] = {**read_filter(line, now=now)}
    said: frozenset[JobState] = read.pop("state", frozenset())
    if said and states and not said & states:
        raise InvalidQuery(
            "state",
            f"the filter asks for {_labels(said)}, this list for {_labels(states)}: they leave no state",
        )
    for name in read.keys() & rest.keys():
        if read[name] != rest[name]:
            raise InvalidQuery(name, "stands in the filter and beside it: say it once")
    wanted = said & states if said and states else said | states
    order = _order(rest.pop("order", Order.NEWEST))
    return JobQuery(states=wanted, order=order, line=line, **{**read, **rest})


def _labels(states: Iterable[JobState]) -> str:
    return ", ".join(state.label for state in JobState if state in states)


def _checked(name: str, value: object) -> object:
    """Return the value of a filter if it is of its kind; what it says is looked at where it is used."""
    if name not in _KINDS:
        close = near(name, _KINDS)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(_KINDS)}"
        raise InvalidQuery(name, f"there is no such filter; {hint}")
    kind, what = _KINDS[name]
    if kind is str:
        return check_filter(name, value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidQuery(name, f"{value!r} is not {what}")
    return _span(name, value) if isinstance(value, Span) else value


def _span(name: str, span: Span) -> Span:
    """Return a stretch of time whose bounds every store keeps."""
    return Span(_bound(name, span.since), _bound(name, span.until))


def _bound(name: str, at: datetime | None) -> datetime | None:
    if at is None or at.utcoffset() is None:
        return at
    try:
        return check_time(at)
    except ValueError as error:
        raise InvalidQuery(name, f"{at.isoformat()} {error}") from None


def _state(state: JobState | str) -> JobState:
    try:
        return state if isinstance(state, JobState) else JobState[state.upper()]
    except (KeyError, AttributeError):
        raise InvalidQuery("state", f"{state!r} is none of {', '.join(s.label for s in JobState)}") from None


def _order(order: Order | str) -> Order:
    try:
        return Order(order)
    except ValueError:
        raise InvalidQuery("order", f"{order!r} is none of {', '.join(Order)}") from None
