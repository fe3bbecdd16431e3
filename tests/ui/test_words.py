"""Words of the pages."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.errors import InvalidJob
from penstock.ui.times import until_of
from penstock.ui.words import sentence

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("explained", "shown"),
    [
        ("is due at 10:00", "It is due at 10:00."),
        ("waits for job 1", "It waits for job 1."),
        ('lane "orders" is paused by ann', 'Lane "orders" is paused by ann.'),
        ("the whole store is paused by ann", "The whole store is paused by ann."),
        ('no running node serves lane "a"', 'No running node serves lane "a".'),
        ("https://a.example is left alone", "https://a.example is left alone."),
    ],
)
def test_an_explanation_is_a_sentence_about_the_job_or_what_holds_it(explained: str, shown: str) -> None:
    assert sentence(explained) == shown


def test_a_form_gives_a_time_or_how_long_from_now() -> None:
    assert until_of("", NOW) is None
    assert until_of("15m", NOW) == until_of("+15m", NOW) == NOW + timedelta(minutes=15)
    assert until_of("2026-03-01T13:00:00+01:00", NOW) == NOW


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soon", "is neither a duration"),
        ("2026-03-01T13:00:00", "may mean anything"),
        ("9999999d", "is not between the years 1970 and 9998"),
        ("9999-12-31T23:59:59-12:00", "is not between the years 1970 and 9998"),
    ],
)
def test_what_a_form_cannot_mean_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidJob, match=words):
        until_of(text, NOW)
