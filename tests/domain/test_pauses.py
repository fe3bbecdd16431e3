"""Pauses: when they are over, and what is said of them."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.domain.pauses import MOST, Pause, Stop, check_paused, check_until, in_force
from penstock.errors import InvalidQuery, InvalidSetting

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("until", "over"),
    [(None, False), (NOW + SECOND, False), (NOW, True), (NOW - SECOND, True)],
    ids=["for ever", "ahead", "now", "behind"],
)
def test_a_pause_is_over_when_its_time_has_come(until: datetime | None, *, over: bool) -> None:
    assert Pause("ann", "outage", NOW, until).over(NOW) is over


def test_a_pause_ends_in_the_future_or_when_somebody_lets_it_go() -> None:
    check_until(None, NOW)
    check_until(NOW + SECOND, NOW)
    for until, words in [
        (NOW, "2026-03-01T12:00:00+00:00 is past already"),
        (NOW - SECOND, "give a time that is to come"),
        ((NOW + SECOND).replace(tzinfo=None), "has no time zone: add an offset"),
        (
            datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))),
            "is not between the years 1970 and 9998",
        ),
        ("16:30", "'16:30' is no time: give a datetime"),
    ]:
        with pytest.raises(InvalidSetting, match=re.escape(words)):
            check_until(until, NOW)


def test_a_stop_says_who_why_and_until_when() -> None:
    there = timezone(timedelta(hours=2))
    until = NOW.astimezone(there)

    assert str(Stop('lane "a" is disabled')) == 'lane "a" is disabled'
    assert (
        str(Stop("the store is paused", "ann", "outage", until))
        == "the store is paused by ann: outage (until 2026-03-01T12:00:00Z)"
    )


def test_the_first_stop_that_is_not_over_is_named() -> None:
    over, ahead, forever = Stop("a", until=NOW), Stop("b", until=NOW + SECOND), Stop("c")

    assert in_force([None, over, forever, ahead], NOW) == "c"
    assert in_force([over, ahead, forever], NOW) == "b (until 2026-03-01T12:00:01Z)"
    assert in_force([None, over], NOW) is None
    assert in_force([], NOW) is None


def test_a_pause_is_the_same_whenever_it_was_said() -> None:
    pause = Pause("ann", "outage", NOW, NOW + SECOND)

    assert pause.same(Pause("ann", "outage", NOW - SECOND, NOW + SECOND))
    assert not pause.same(Pause("ann", "outage", NOW))
    assert not pause.same(Pause("bob", "outage", NOW, NOW + SECOND))
    assert not pause.same(None)


def test_the_audit_shows_what_a_pause_is() -> None:
    said = {"paused_until": None, "pause_reason": "outage", "paused_by": "ann"}

    assert json.loads(Pause("ann", "outage", NOW).facts()) == said
    assert json.loads(Pause("ann", "outage", NOW, NOW).facts())["paused_until"] == NOW.isoformat()


def test_a_number_of_targets_can_be_paused_and_no_more() -> None:
    check_paused([str(number) for number in range(MOST)])
    with pytest.raises(InvalidQuery, match="200 targets are paused"):
        check_paused([str(number) for number in range(MOST + 1)])
