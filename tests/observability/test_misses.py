"""What calls failed of lately."""

from dataclasses import replace

import pytest

from penstock.observability import misses
from penstock.observability.misses import MINUTE_S, MINUTES, OTHER, Miss, Misses
from penstock.observability.targets import Targets
from penstock.ports.events import Called


def called(lane: str, error: str | None, **outcomes: int) -> Called:
    jobs = sum(outcomes.values())
    return Called(lane=lane, sink="http", jobs=jobs, outcomes=outcomes, took=0.1, lag=0.0, error=error)


def test_failed_calls_are_counted_by_kind_without_what_the_target_said() -> None:
    seen = Misses(lambda: 0.0)
    for word in ("ann", "bob"):
        seen.note(called("a", f"HTTP 503: {word} is not at home", tryagain=2, accepted=5))
    seen.note(called("a", None, throttled=1))
    seen.note(called("a", None, accepted=9))
    seen.note(called("b", "HTTP 404", rejected=1))

    assert seen.lately("a") == [Miss("HTTP 503", "retry", 4), Miss("throttled", "throttled", 1)]
    assert seen.lately("none") == []
    assert seen.tally("a") == (24, 5)
    assert seen.tally("none") == (0, 0)


def test_lanes_and_targets_count_the_same_calls_of_the_same_minutes() -> None:
    clock = [0.0]
    seen, targets = Misses(lambda: clock[0]), Targets(lambda: clock[0])
    for second in range(0, 2 * MINUTES * MINUTE_S, 25):
        clock[0] = float(second)
        for outcomes in ({"accepted": 2}, {"tryagain": 1, "notcalled": 4}, {"throttled": 1}, {"unsent": 1}):
            event = called("a", "HTTP 503", **outcomes)
            seen.note(replace(event, target="https://a.example"))
            targets.note(replace(event, target="https://a.example"))
        of_target = targets.lately()["https://a.example"]
        assert seen.tally("a") == (of_target.calls, of_target.failed + of_target.throttled)


def test_misses_are_forgotten_after_ten_minutes() -> None:
    clock = [0.0]
    seen = Misses(lambda: clock[0])
    seen.note(called("a", "HTTP 503", tryagain=1))
    clock[0] = (MINUTES - 1) * MINUTE_S
    seen.note(called("a", "HTTP 503", tryagain=1))
    assert [miss.jobs for miss in seen.lately("a")] == [2]
    clock[0] += MINUTE_S
    assert [miss.jobs for miss in seen.lately("a")] == [1]
    clock[0] += MINUTES * MINUTE_S
    assert seen.lately("a") == []


def test_very_many_kinds_and_lanes_cost_no_more_than_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misses, "MOST_KINDS", 2)
    monkeypatch.setattr(misses, "MOST_LANES", 2)
    seen = Misses(lambda: 0.0)
    for status in (500, 501, 502, 503):
        seen.note(called("a", f"HTTP {status}", tryagain=1))
    assert {miss.error: miss.jobs for miss in seen.lately("a")} == {"HTTP 500": 1, "HTTP 501": 1, OTHER: 2}
    for lane in ("b", "c"):
        seen.note(called(lane, "HTTP 500", tryagain=1))
    assert [bool(seen.lately(lane)) for lane in ("a", "b", "c")] == [False, True, True]
