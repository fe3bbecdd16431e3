"""Text from outside cannot move a cursor or fill a screen."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.texts import no_formula, shown, stamp


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fine", "fine"),
        ("  two\r\n\tlines  ", "two lines"),
        ("\x1b[1mred\x1b[0m", "[1mred [0m"),
        ("abc\u202eevil", "abc evil"),
        ("é日本", "é日本"),
        ("0123456789", "0123456789"),
        ("0123456789a", "012345678…"),
    ],
)
def test_a_text_is_shown_on_one_line(text: str, expected: str) -> None:
    assert shown(text, 10) == expected


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_cell_is_no_formula(text: str) -> None:
    assert no_formula(text) == f"'{text}"
    assert no_formula(f"a{text}") == f"a{text}"


@given(st.text(), st.integers(1, 50))
def test_whatever_it_is_it_is_short_and_printable(text: str, limit: int) -> None:
    line = shown(text, limit)

    assert line.isprintable()
    assert len(line) <= limit


def test_a_time_is_written_in_utc() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 5000, tzinfo=timezone(timedelta(hours=2)))

    assert stamp(at) == "2026-03-01T10:00:00.005000Z"
    assert stamp(datetime(2026, 3, 1, tzinfo=UTC)) == "2026-03-01T00:00:00Z"
    assert stamp(None) is None
