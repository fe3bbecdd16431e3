"""What a filter's comparisons mean."""

from datetime import UTC, datetime

import pytest

from penstock.domain.filters import JobQuery
from penstock.domain.fingerprints import fingerprint_of
from penstock.domain.predicates import Op, Predicate, Value, as_time, holds, row_test
from penstock.domain.queries import job_query
from penstock.domain.states import JobState
from penstock.errors import InvalidQuery
from tests.domain.jobs import NOW, job, said

DEAD = job(
    JobState.DEAD,
    error="HTTP 503",
    reason="exhausted",
    attempt=3,
    node=2,
    epoch=41,
    context=said(payload='{"amount": 120, "items": [{"sku": "x"}]}', key="k", target="http://a/"),
)


@pytest.mark.parametrize(
    ("field", "op", "value", "path"),
    [
        ("lane", Op.IS, "orders", ()),
        ("group", Op.IS, "A-1", ()),
        ("group", Op.HAS, "a-", ()),
        ("tenant", Op.NOT, "other", ()),
        ("attempt", Op.GE, 3, ()),
        ("batch", Op.IS, 41, ()),
        ("mode", Op.IS, "block_on_error", ()),
        ("key", Op.IS, "k", ()),
        ("error", Op.HAS, "http", ()),
        ("fingerprint", Op.IS, fingerprint_of("exhausted", "HTTP 503"), ()),
        ("payload", Op.GT, 100, ("amount",)),
        ("payload", Op.IS, "x", ("items", "0", "sku")),
        ("payload", Op.HAS, "sku", ()),
        ("payload", Op.NOT, 1, ("nothing",)),
        ("pool", Op.IS, None, ()),
    ],
)
def test_a_job_is_as_it_is_asked_for(field: str, op: Op, value: Value, path: tuple[str, ...]) -> None:
    assert holds(Predicate(field, op, (value,), path), DEAD)


@pytest.mark.parametrize(
    ("field", "op", "value", "path"),
    [
        ("attempt", Op.LT, 3, ()),
        ("payload", Op.IS, 1, ("nothing",)),
        ("payload", Op.GT, 100, ("items",)),
        ("entity", Op.HAS, "x", ()),
    ],
)
def test_one_that_does_not_have_what_is_asked_for_is_not(
    field: str, op: Op, value: Value, path: tuple[str, ...]
) -> None:
    assert not holds(Predicate(field, op, (value,), path), DEAD)


def test_a_number_of_any_size_is_the_one_that_was_sent() -> None:
    large = job(
        JobState.DEAD, context=said(payload='{"n": 18446744073709551615, "text": "18446744073709551615"}')
    )

    for path in ("n", "text"):
        assert holds(Predicate("payload", Op.IS, (2**64 - 1,), (path,)), large)
        assert not holds(Predicate("payload", Op.NOT, (2**64 - 1,), (path,)), large)
    assert holds(Predicate("payload", Op.GT, (2**64 - 2,), ("n",)), large)


def test_a_job_whose_payload_is_gone_has_nothing_in_it() -> None:
    assert not holds(Predicate("payload", Op.IS, (1,), ("a",)), job())
    assert holds(Predicate("payload", Op.NOT, (1,), ("a",)), job())


@pytest.mark.parametrize(
    ("predicate", "sql"),
    [
        (Predicate("batch", Op.IS, (7,)), "w.epoch = ANY(:p)"),
        (Predicate("node", Op.NOT, (1,)), "(w.node IS NULL OR NOT w.node = ANY(:p))"),
        (Predicate("attempt", Op.GE, (2,)), "w.attempt >= :p"),
        (Predicate("reason", Op.HAS, ("ex",)), ""),
        (Predicate("error", Op.IS, ("x",)), ""),
    ],
)
def test_what_a_row_can_tell_is_asked_of_the_row(predicate: Predicate, sql: str) -> None:
    assert row_test(predicate, "p") == sql


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-03-01T13:00:00+01:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T13:00:00", None),
        ("soon", None),
        (7, None),
    ],
)
def test_a_time_has_an_offset(value: Value, time: datetime | None) -> None:
    assert as_time(value) == time


def test_a_list_wants_the_lanes_that_its_filter_leaves() -> None:
    query = JobQuery(where=(Predicate("lane", Op.NOT, ("mail",)),))

    assert (query.wants_lane("orders"), query.wants_lane("mail")) == (True, False)
    assert not JobQuery(lane="mail").wants_lane("orders")


def test_what_stands_in_the_filter_and_beside_it_must_agree() -> None:
    assert job_query({"filter": "lane:pay", "lane": "pay"}, now=lambda: NOW).lane == "pay"
    with pytest.raises(InvalidQuery, match="say it once"):
        job_query({"filter": "lane:pay", "lane": "mail"}, now=lambda: NOW)
