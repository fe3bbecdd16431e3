"""Breakers of targets: when they open, when they are tried, when they close."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.breakers import KEPT, Note, Target, facts, forgotten, noted
from penstock.domain.pauses import Pause

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOST = "https://example.org:443"


def after(target: Target, *, failed: int = 0, ok: int = 0, slow: int = 0, now: datetime = NOW) -> Target:
    return noted(target, Note(failed, ok, 3, MINUTE, slow * MINUTE), now=now)


OPEN = after(Target(HOST), failed=3)


def test_failures_in_a_row_open_a_breaker() -> None:
    two = after(Target(HOST), failed=2)
    assert two == Target(HOST, failures=2, until=NOW + KEPT)
    assert two.at(NOW) == Target(HOST, failures=2)
    assert after(two, failed=1) == Target(HOST, "open", 3, NOW, NOW + MINUTE)
    assert not two.troubled
    assert OPEN.troubled


def test_failures_count_for_a_day() -> None:
    two = after(Target(HOST), failed=2)
    day = NOW + KEPT
    assert after(two, slow=1, now=day - MINUTE) == two._replace(until=day - MINUTE + KEPT, slow_until=day)
    assert after(two, failed=1, now=day - MINUTE).state == "open"
    assert after(two, failed=1, now=day) == Target(HOST, failures=1, until=day + KEPT)


@pytest.mark.parametrize(
    ("target", "since"),
    [
        (Target(HOST), NOW),
        (Target(HOST, failures=2), NOW),
        (Target(HOST, failures=2, until=NOW), NOW),
        (Target(HOST, slow_until=NOW), NOW),
        (Target(HOST, failures=2, until=NOW - MINUTE, slow_until=NOW), NOW),
        (OPEN, NOW + MINUTE + KEPT),
        (OPEN._replace(slow_until=NOW + 2 * MINUTE), NOW + 2 * MINUTE + KEPT),
    ],
)
def test_what_nobody_added_to_is_forgotten(target: Target, since: datetime) -> None:
    assert forgotten(target, now=since + MINUTE)
    assert target == Target(HOST, failures=target.failures) or not forgotten(target, now=since - MINUTE)


def test_failures_of_calls_that_were_on_their_way_change_only_the_count() -> None:
    assert after(OPEN, failed=2, now=NOW + MINUTE / 2) == OPEN._replace(failures=5)


def test_when_its_time_is_over_an_open_breaker_is_tried() -> None:
    over = NOW + MINUTE
    assert OPEN.at(over - MINUTE / 2) == OPEN
    assert OPEN.at(over).state == "trial"
    assert OPEN.at(over).troubled
    assert after(OPEN, now=over).state == "trial"
    again = after(OPEN, failed=1, now=over)
    assert again == Target(HOST, "open", 4, over, over + MINUTE)


@pytest.mark.parametrize("target", [Target(HOST), after(Target(HOST), failed=2), OPEN])
def test_any_success_closes_a_breaker(target: Target) -> None:
    assert after(target, ok=1, failed=5) == Target(HOST)


def test_a_target_is_left_alone_for_the_longest_it_asked_for() -> None:
    slow = after(Target(HOST), slow=5)
    assert slow == Target(HOST, slow_until=NOW + 5 * MINUTE)
    assert slow.troubled
    assert after(slow, slow=1) == slow
    assert after(slow, slow=7).slow_until == NOW + 7 * MINUTE
    assert after(slow, ok=1) == slow
    assert slow.at(NOW + 4 * MINUTE) == slow
    assert slow.at(NOW + 5 * MINUTE) == Target(HOST)
    assert after(slow, failed=3).state == "open"


def test_jobs_are_not_put_away_for_all_the_time_a_target_asked_for() -> None:
    """Somebody may end it by hand, and nobody would find them."""
    slow = after(Target(HOST), slow=5)
    assert slow.rest(NOW) == MINUTE / 2
    assert slow.rest(NOW + 4.9 * MINUTE) == 0.1 * MINUTE


def test_a_note_of_nothing_changes_nothing() -> None:
    assert after(Target(HOST)) == Target(HOST)
    assert after(OPEN) == OPEN


def test_a_paused_target_rests_as_long_as_it_has_rested_and_not_beyond_its_end() -> None:
    second = timedelta(seconds=1)
    paused = Target(HOST, pause=Pause("ann", "night", NOW))
    rests = {after: paused.rest(NOW + after * second) for after in (0, 1, 10, 3600)}
    assert rests == {0: 2 * second, 1: 2 * second, 10: 10 * second, 3600: 30 * second}
    ending = Target(HOST, pause=Pause("ann", "night", NOW, NOW + 11 * second))
    assert ending.rest(NOW + 10 * second) == second
    assert ending.rest(NOW + 11 * second) is None
    assert ending.troubled
    assert ending.at(NOW + 11 * second) == Target(HOST)
    assert paused.at(NOW + MINUTE) == paused


def test_an_open_breaker_and_a_slow_target_rest_until_their_time() -> None:
    assert OPEN.rest(NOW) == MINUTE
    assert OPEN.rest(NOW + MINUTE) is None
    slow = after(Target(HOST), slow=5)
    assert (slow.rest(NOW), slow.rest(NOW + 5 * MINUTE)) == (MINUTE / 2, None)


def test_the_audit_shows_a_breaker_by_name() -> None:
    assert json.loads(facts(OPEN)) == {"target": HOST, "breaker": "open", "failures": 3}
