"""Filters as callers write them."""

from dataclasses import fields
from datetime import UTC, datetime

import pytest

from penstock.domain.filters import JobQuery, Order, Span
from penstock.domain.queries import Filters, job_query
from penstock.domain.states import JobState
from penstock.errors import InvalidQuery

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HELD, PENDING = JobState.HELD, JobState.PENDING


def test_nothing_said_is_everything() -> None:
    assert job_query({}, now=lambda: NOW) == JobQuery()


@pytest.mark.parametrize(
    ("state", "states"),
    [
        ("held", {HELD}),
        ("Held", {HELD}),
        (HELD, {HELD}),
        (["held", PENDING], {HELD, PENDING}),
        ((), set()),
    ],
)
def test_states_go_by_name(state: str, states: set[JobState]) -> None:
    assert job_query({"state": state}, now=lambda: NOW).states == states


@pytest.mark.parametrize("order", ["due", Order.DUE])
def test_so_do_orders(order: str) -> None:
    assert job_query({"order": order}, now=lambda: NOW).order is Order.DUE


def test_all_else_goes_as_it_is() -> None:
    assert job_query({"lane": "orders", "limit": 7}, now=lambda: NOW) == JobQuery(lane="orders", limit=7)
    renamed = {"states": "state", "line": "filter"}
    names = {renamed.get(f.name, f.name) for f in fields(JobQuery)} - {"ids", "where"}
    assert names == set(Filters.__annotations__)


@pytest.mark.parametrize("span", [Span(NOW, None), Span(None, NOW)])
def test_stretches_of_time_go_as_they_are(span: Span) -> None:
    assert job_query({"created": span}, now=lambda: NOW).created == span


def test_a_line_and_what_stands_beside_it_must_both_hold() -> None:
    query = job_query({"filter": "state:dead,held attempt>2", "state": "held", "lane": "a"}, now=lambda: NOW)
    assert (query.states, query.lane, query.line) == ({HELD}, "a", "state:dead,held attempt>2")
    assert job_query({"filter": "lane:a", "lane": "a"}, now=lambda: NOW).lane == "a"
    with pytest.raises(InvalidQuery, match="lane: stands in the filter and beside it"):
        job_query({"filter": "lane:a", "lane": "b"}, now=lambda: NOW)
    with pytest.raises(InvalidQuery, match="leave no state"):
        job_query({"filter": "state:dead", "state": "held"}, now=lambda: NOW)


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"state": "done"}, "state: 'done' is none of pending, claimed"),
        ({"state": ["held", "x"]}, "state: 'x' is none of"),
        ({"order": "best"}, "order: 'best' is none of newest, due, oldest"),
        ({"limit": 0}, "limit: a page has"),
        ({"limit": "5"}, "limit: '5' is not a whole number"),
        ({"limit": True}, "limit: True is not a whole number"),
        ({"state": 7}, "state: 7 is not a state"),
        ({"state": [7]}, "state: 7 is none of"),
        ({"created": "today"}, "created: 'today' is not a Span"),
        ({"created": Span(until=datetime.max.replace(tzinfo=UTC))}, "is not between the years 1970 and 9998"),
        ({"finished": Span(since=datetime.min.replace(tzinfo=UTC))}, "is not between the years 1970 and"),
        ({"created": Span(NOW.replace(tzinfo=None))}, "a time without an offset may mean anything"),
        ({"key": "\0"}, "key: holds a NUL"),
        ({"foo": 1}, "foo: there is no such filter; known are filter, lane"),
        ({"tennant": "a"}, "tennant: there is no such filter; did you mean tenant?"),
    ],
)
def test_what_is_wrong_is_named(filters: Filters, problem: str) -> None:
    with pytest.raises(InvalidQuery, match=problem):
        job_query(filters, now=lambda: NOW)
