"""A list's filters as callers write them: states and orders by name."""

from collections.abc import Iterable
from typing import Any, TypedDict

from penstock.domain.filters import JobQuery, Order, Span
from penstock.domain.states import JobState
from penstock.errors import InvalidQuery

States = JobState | str | Iterable[JobState | str]


class Filters(TypedDict, total=False):
    """Which jobs a list shows and where it goes on, as in JobQuery; `state` is one or several."""

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


def job_query(filters: Filters) -> JobQuery:
    """Return the query that these filters are, or raise InvalidQuery."""
    rest: dict[str, Any] = {**filters}
    state: States = rest.pop("state", ())
    states = [state] if isinstance(state, JobState | str) else state
    order = _order(rest.pop("order", Order.NEWEST))
    return JobQuery(states=frozenset(map(_state, states)), order=order, **rest)


def _state(state: JobState | str) -> JobState:
    try:
        return state if isinstance(state, JobState) else JobState[state.upper()]
    except KeyError:
        raise InvalidQuery("state", f"{state!r} is none of {', '.join(s.label for s in JobState)}") from None


def _order(order: Order | str) -> Order:
    try:
        return Order(order)
    except ValueError:
        raise InvalidQuery("order", f"{order!r} is none of {', '.join(Order)}") from None
