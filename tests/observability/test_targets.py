"""How calls to targets went lately."""

import pytest

from penstock.observability import targets
from penstock.observability.targets import MINUTE_S, MINUTES, Targets
from penstock.ports.events import Called


def called(target: str | None, took: float = 0.1, **outcomes: int) -> Called:
    jobs = sum(outcomes.values())
    return Called(lane="a", sink="http", jobs=jobs, outcomes=outcomes, took=took, lag=0.0, target=target)


def test_calls_are_counted_by_target_and_what_was_not_called_is_none() -> None:
    seen = Targets(lambda: 0.0)
    for took in (0.1, 0.1, 2.0):
        seen.note(called("https://a", took, accepted=1))
    seen.note(called("https://a", throttled=1))
    seen.note(called("https://a", rejected=1))
    seen.note(called("https://b", notcalled=3))
    seen.note(called(None, accepted=3))

    assert seen.lately().keys() == {"https://a"}
    found = seen.lately()["https://a"]
    assert found[:3] == (5, 1, 1)
    assert found.took_p50 == pytest.approx(0.1, rel=0.25)
    assert found.took_p99 == pytest.approx(2.0, rel=0.25)


def test_what_is_older_than_ten_minutes_is_forgotten() -> None:
    clock = [0.0]
    seen = Targets(lambda: clock[0])
    seen.note(called("https://a", accepted=1))
    clock[0] = (MINUTES - 1) * MINUTE_S
    seen.note(called("https://a", throttled=1))
    assert seen.lately()["https://a"][:3] == (2, 0, 1)
    clock[0] += MINUTE_S
    assert seen.lately()["https://a"][:3] == (1, 0, 1)
    clock[0] += MINUTES * MINUTE_S
    assert seen.lately() == {}


def test_of_very_many_targets_those_called_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MOST_TARGETS", 2)
    seen = Targets(lambda: 0.0)
    for name in ("a", "b", "a", "c"):
        seen.note(called(name, accepted=1))

    assert {name: calls.calls for name, calls in seen.lately().items()} == {"a": 2, "c": 1}
