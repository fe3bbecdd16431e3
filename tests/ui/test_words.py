"""Words of the pages."""

import pytest

from penstock.ui.words import sentence


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
