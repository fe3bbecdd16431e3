from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.cursors import seal, unseal
from penstock.domain.filters import JobQuery, Order, Position, Section, Span
from penstock.domain.states import LIVE, TERMINAL, JobState
from penstock.errors import InvalidCursor, InvalidQuery

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
S = JobState

times = st.datetimes(timezones=st.just(UTC))
places = st.one_of(
    st.builds(Position, st.just(Section.LIVE), st.none(), st.integers(1, 1 << 62)),
    st.builds(Position, st.just(Section.ENDED), times, st.integers(1, 1 << 62)),
)


@given(places)
def test_a_cursor_names_its_place_exactly(place: Position) -> None:
    assert JobQuery(after=JobQuery().cursor(place), limit=7).start == place


@given(st.lists(st.integers(-(1 << 62), 1 << 62), max_size=4), st.text())
def test_a_sealed_place_comes_back(numbers: list[int], of: str) -> None:
    assert unseal(seal(tuple(numbers), of=of), of=of, numbers=len(numbers)) == tuple(numbers)


@given(st.text(max_size=60))
def test_no_text_is_taken_for_a_cursor_by_chance(text: str) -> None:
    with pytest.raises(InvalidCursor):
        unseal(text, of="", numbers=3)


@given(places, st.data())
def test_a_cursor_that_was_changed_is_refused(place: Position, data: st.DataObject) -> None:
    cursor = JobQuery().cursor(place)
    raw = bytearray(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(InvalidCursor, match="damaged"):
        _ = JobQuery(after=urlsafe_b64encode(raw).decode()).start


@given(places)
def test_a_cursor_has_one_spelling(place: Position) -> None:
    cursor = JobQuery().cursor(place)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+ "

    for other in [cursor[:-1] + letter for letter in letters if letter != cursor[-1]] + [f" {cursor}"]:
        with pytest.raises(InvalidCursor):
            _ = JobQuery(after=other).start


def test_a_cursor_of_another_version_is_refused() -> None:
    cursor = seal((1, 2), of="list")

    with pytest.raises(InvalidCursor, match="another version"):
        unseal(cursor, of="list", numbers=3)


@pytest.mark.parametrize(
    "other",
    [
        {"lane": "a"},
        {"states": frozenset({S.DEAD})},
        {"group": "a"},
        {"tenant": "a"},
        {"key": "a"},
        {"created": Span(since=NOW)},
        {"run": Span(since=NOW)},
        {"finished": Span(since=NOW)},
        {"created": Span(until=NOW)},
        {"order": Order.DUE},
    ],
)
def test_a_cursor_belongs_to_its_filters(other: dict[str, Any]) -> None:
    cursor = JobQuery().cursor(Position(Section.LIVE, None, 5))

    with pytest.raises(InvalidCursor, match="another list"):
        _ = JobQuery(after=cursor, **other).start


def test_positions_are_sorted_as_lists_are() -> None:
    live = [Position(Section.LIVE, None, arrival) for arrival in (9, 3, 1)]
    ended = [Position(Section.ENDED, at, arrival) for at, arrival in ((NOW, 2), (NOW, 1), (NOW - HOUR, 8))]
    due = [Position(Section.DUE, at, arrival) for at, arrival in ((NOW - HOUR, 8), (NOW, 1), (NOW, 2))]

    for part in ([*live, *ended], due):
        assert sorted(set(part), key=lambda place: place.rank) == part


def test_a_list_has_the_sections_of_its_states() -> None:
    assert JobQuery().sections == [Section.LIVE, Section.ENDED]
    assert JobQuery(states=frozenset({S.HELD})).sections == [Section.LIVE]
    assert JobQuery(states=frozenset({S.DEAD, S.SKIPPED})).sections == [Section.ENDED]
    assert JobQuery(finished=Span(since=NOW)).sections == [Section.ENDED]
    assert JobQuery(order=Order.DUE).sections == [Section.DUE]
    assert JobQuery(order=Order.DUE, finished=Span(since=NOW)).sections == []
    assert JobQuery().wanted == LIVE | TERMINAL


def test_a_stretch_of_time_has_its_beginning_and_not_its_end() -> None:
    span = Span(NOW, NOW + HOUR)

    assert [span.covers(at) for at in (NOW, NOW + HOUR / 2, NOW + HOUR, NOW - HOUR, None)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert Span().covers(None)
    assert not Span()


@pytest.mark.parametrize("field", ["created", "run", "finished"])
def test_a_time_without_offset_is_refused(field: str) -> None:
    spans: dict[str, Any] = {field: Span(until=NOW.replace(tzinfo=None))}
    with pytest.raises(InvalidQuery, match=field):
        JobQuery(**spans)
