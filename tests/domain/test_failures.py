"""A lane's own words on failures."""

import pytest

from penstock.domain.failures import named, words_of

CASES = [
    ("404", "HTTP 404: not there yet", True),
    ("404", "HTTP 500: order 404 is broken", False),
    ("404", "order 14042 is unknown", False),
    ("503", "503 Service Unavailable", True),
    ("503", "HTTP/1.1 503 down", True),
    ("503", "http 503", True),
    ("5xx", "HTTP 500: broken", True),
    ("5XX", "HTTP 500: broken", True),
    ("5xx", "HTTP 404: no", False),
    ("5xx", "no answer within 500 ms", False),
    ("out of stock", "Sorry, OUT OF STOCK today", True),
    ("timeout, 4xx", "HTTP 409: conflict", True),
    ("timeout, 4xx", "Timeout of the database", True),
    ("timeout, 4xx", "HTTP 500: broken", False),
    (" , ,", "anything", False),
    ("x", None, False),
]


@pytest.mark.parametrize(("setting", "error", "about"), CASES)
def test_a_word_is_a_status_a_class_or_a_part_of_the_text(
    setting: str, error: str | None, *, about: bool
) -> None:
    assert named(words_of(setting), error) is about


def test_no_words_are_about_nothing() -> None:
    assert words_of(None) == ()
    assert not named((), "HTTP 500: broken")
