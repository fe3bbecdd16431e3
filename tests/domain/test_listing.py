"""Which jobs a list shows, and where each of them stands in it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.cursors import seal, unseal
from penstock.domain.filters import JobQuery, Order, Position, Section, Span, matches, position
from penstock.domain.job import Context, Job, Live
from penstock.domain.ordering import Mode
from penstock.domain.states import TERMINAL, JobState
from penstock.errors import InvalidCursor, InvalidQuery

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SAID = Context(
    id="01", message_group="g", sequence=99, run_at=NOW, created_at=NOW, payload=None, headers=None,
    target=None, pool=None, key="k", finish_by=None, entity=None, version=None, event=None, correlation=None,
)  # fmt: skip


def job(state: JobState = JobState.PENDING, *, context: Context | None = SAID) -> Job:
    live = Live(arrival=7, lane=1, keep=7, mode=1, state=state, ord=99, grp="g", tenant="t", due_at=NOW)
    finished_at = NOW + HOUR if state in TERMINAL else None
    return Job("01", "orders", state, Mode.NEXT_ON_ERROR, live, context, finished_at=finished_at)


@pytest.mark.parametrize("limit", [0, 501])
def test_a_page_has_a_size(limit: int) -> None:
    with pytest.raises(InvalidQuery, match="from 1 to 500"):
        JobQuery(limit=limit)


def test_a_time_without_an_offset_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="without an offset"):
        JobQuery(run=Span(since=datetime(2026, 3, 1)))  # noqa: DTZ001 - that is the mistake


def test_only_waiting_jobs_are_listed_by_when_they_are_due() -> None:
    with pytest.raises(InvalidQuery, match="pending and waiting"):
        JobQuery(order=Order.DUE, states=frozenset({JobState.DEAD}))


def test_a_place_in_a_section_the_list_does_not_have_is_refused() -> None:
    dead = JobQuery(states=frozenset({JobState.DEAD}))
    forged = seal((Section.LIVE, 0, 5), of=dead._list)

    with pytest.raises(InvalidCursor, match="another list"):
        _ = JobQuery(states=frozenset({JobState.DEAD}), after=forged).start


def test_a_first_page_starts_nowhere() -> None:
    assert JobQuery().start is None


def test_a_cursor_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidCursor, match="too long"):
        unseal("A" * 10_000, of="", numbers=1)


def test_a_cursor_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidCursor, match="another version"):
        unseal(seal((1, 2), of="x"), of="x", numbers=3)


def test_every_order_has_its_key() -> None:
    ended = job(JobState.SUCCEEDED)

    assert position(job(), Order.DUE) == Position(Section.DUE, NOW, 7)
    assert position(job(), Order.NEWEST) == Position(Section.LIVE, None, 7)
    assert position(ended, Order.NEWEST) == Position(Section.ENDED, NOW + HOUR, 7)
    assert (
        position(ended, Order.OLDEST) == position(job(), Order.OLDEST) == Position(Section.ARRIVED, None, 7)
    )


def test_a_list_by_arrival_goes_on_behind_its_last_job_and_ends_where_it_was_begun() -> None:
    first = JobQuery(order=Order.OLDEST).begun(NOW)
    last = position(job(), Order.OLDEST)
    second = replace(first, after=first.cursor(last))

    assert (first.start, second.start) == (Position(Section.ARRIVED, NOW, 0), last._replace(at=NOW))
    assert last.rank < last._replace(arrival=8).rank
    assert second.begun(NOW + HOUR) == second
    assert JobQuery(order=Order.OLDEST).cursor(last) is not None
    made_of_it = job(context=SAID._replace(created_at=NOW + HOUR))
    assert [matches(each, second) for each in (job(), job(context=None), made_of_it)] == [True, True, False]
    assert matches(made_of_it, JobQuery(order=Order.OLDEST))


def test_only_a_list_by_arrival_has_an_end_of_its_own() -> None:
    empty = JobQuery(order=Order.OLDEST, states=frozenset({JobState.HELD}), finished=Span(since=NOW))

    assert [query.begun(NOW) for query in (JobQuery(), empty)] == [JobQuery(), empty]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (JobQuery(), True),
        (JobQuery(lane="orders", group="g", tenant="t", key="k"), True),
        (JobQuery(lane="other"), False),
        (JobQuery(group="other"), False),
        (JobQuery(tenant="other"), False),
        (JobQuery(key="other"), False),
        (JobQuery(states=frozenset({JobState.DEAD})), False),
        (JobQuery(run=Span(since=NOW + HOUR)), False),
        (JobQuery(created=Span(until=NOW - HOUR)), False),
        (JobQuery(finished=Span(since=NOW)), False),
    ],
)
def test_a_list_shows_what_its_filters_say(query: JobQuery, shown: bool) -> None:  # noqa: FBT001
    assert matches(job(), query) is shown


def test_a_job_whose_context_is_missing_has_no_key_and_no_time_of_creation() -> None:
    assert not matches(job(context=None), JobQuery(key="k"))
    assert not matches(job(context=None), JobQuery(created=Span(since=NOW - HOUR)))
    assert matches(job(context=None), JobQuery())
