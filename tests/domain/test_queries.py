"""Filters as callers write them."""

from dataclasses import fields

import pytest

from penstock.domain.filters import JobQuery, Order
from penstock.domain.queries import Filters, job_query
from penstock.domain.states import JobState
from penstock.errors import InvalidQuery

HELD, PENDING = JobState.HELD, JobState.PENDING


def test_nothing_said_is_everything() -> None:
    assert job_query({}) == JobQuery()


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
    assert job_query({"state": state}).states == states


@pytest.mark.parametrize("order", ["due", Order.DUE])
def test_so_do_orders(order: str) -> None:
    assert job_query({"order": order}).order is Order.DUE


def test_all_else_goes_as_it_is() -> None:
    assert job_query({"lane": "orders", "limit": 7}) == JobQuery(lane="orders", limit=7)
    assert {"state" if f.name == "states" else f.name for f in fields(JobQuery)} == set(
        Filters.__annotations__
    )


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"state": "done"}, "state: 'done' is none of pending, claimed"),
        ({"state": ["held", "x"]}, "state: 'x' is none of"),
        ({"order": "oldest"}, "order: 'oldest' is none of newest, due"),
        ({"limit": 0}, "limit: a page has"),
    ],
)
def test_what_is_wrong_is_named(filters: Filters, problem: str) -> None:
    with pytest.raises(InvalidQuery, match=problem):
        job_query(filters)
