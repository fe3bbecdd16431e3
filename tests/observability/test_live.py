"""The last minute in numbers."""

import asyncio
from datetime import timedelta

import pytest

from penstock.observability.health import PATIENCE, Health, Reason
from penstock.observability.live import KEPT_S, STEP, TROUBLES, Live, Trouble
from penstock.observability.loop import watch_loop
from penstock.observability.subscribers import emit_to
from penstock.ports.events import (
    Called,
    Event,
    JobDied,
    LaneFailed,
    LeaderChanged,
    NodeStarted,
    NodeStopped,
    SettledBatch,
    SinkFailed,
    StoreBack,
    StoreFailed,
    TargetChanged,
)
from tests.observability.ticking import Ticking

STARTED = NodeStarted(node=7, name="host:1", store="sqlite:///penstock.db")


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def live(clock: Ticking) -> Live:
    return Live(clock.monotonic)


def sent(lane: str = "orders", *, jobs: int = 1, lag: float = 0.01, outcome: str = "accepted") -> Called:
    return Called(lane=lane, sink="http", jobs=jobs, outcomes={outcome: jobs}, took=0.1, lag=lag)


def test_a_rate_is_over_the_last_ten_whole_seconds(live: Live, clock: Ticking) -> None:
    for _ in range(20):
        clock.seconds += 1
        live(sent(jobs=50))
    clock.seconds += 0.5
    live(sent(jobs=1000))

    assert live.paces()["orders"].sent_per_s == 50


def test_a_node_that_has_just_begun_has_a_rate_too(live: Live, clock: Ticking) -> None:
    live(sent(jobs=30))
    live(sent(jobs=10, outcome="retry"))
    clock.seconds += 2

    pace = live.paces()["orders"]
    assert (pace.sent_per_s, pace.failed_per_s) == (15, 5)


def test_lags_are_percentiles_of_the_last_minute(live: Live, clock: Ticking) -> None:
    for lag in [0.002] * 98 + [0.5, 0.5]:
        live(sent(lag=lag))

    pace = live.paces()["orders"]
    assert pace.lag_p50 == pytest.approx(0.002, rel=STEP - 1)
    assert pace.lag_p99 == pytest.approx(0.5, rel=STEP - 1)


def test_a_lane_that_did_nothing_for_a_minute_is_forgotten(live: Live, clock: Ticking) -> None:
    live(sent("quiet"))
    clock.seconds += 30
    live(JobDied(lane="other", job="01", reason="exhausted", error=None))
    assert set(live.paces()) == {"quiet", "other"}

    clock.seconds += KEPT_S - 30
    assert set(live.paces()) == {"other"}
    assert live.paces()["other"].died == 1
    assert live.paces()["other"].lag_p99 is None


def test_it_knows_its_node_and_who_leads(live: Live, clock: Ticking) -> None:
    live(STARTED)
    live(LeaderChanged(node=7, term=3, leads=True))
    clock.seconds += 5

    assert (live.node, live.name, live.store, live.leads, live.term) == (
        7,
        "host:1",
        "sqlite:///penstock.db",
        True,
        3,
    )
    assert live.uptime == 5


def test_troubles_stay_until_they_are_over(live: Live) -> None:
    second = timedelta(seconds=1)
    live(SinkFailed(sink="http", error="refused", pause=second))
    live(LaneFailed(lane="orders", error="KeyError", trace="", pause=second))
    live(TargetChanged(target="https://t", state="open", failures=5, wait=second))
    live(TargetChanged(target="https://slow", state="closed", failures=0, wait=second))
    assert live.troubles() == [
        Trouble("sink", "http", "cannot be opened: refused"),
        Trouble("lane", "orders", "its pass failed: KeyError"),
        Trouble("target", "https://t", "breaker open, 5 failures"),
        Trouble("target", "https://slow", "asked to go slow"),
    ]

    live(sent())
    live(SettledBatch(lane="orders", epoch=1, applied=1, refused=0, outcomes={}, took=0.1))
    for target in ("https://t", "https://slow"):
        live(TargetChanged(target=target, state="closed", failures=0, wait=None))
    assert live.troubles() == []


def test_troubles_are_bounded(live: Live) -> None:
    for number in range(TROUBLES + 10):
        live(TargetChanged(target=f"https://t{number}", state="open", failures=5, wait=None))

    assert len(live.troubles()) == TROUBLES


async def test_the_loop_is_watched_until_it_stops() -> None:
    stop, delays = asyncio.Event(), []

    def report(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 3:
            stop.set()

    loop = asyncio.get_running_loop()
    await watch_loop(report, monotonic=loop.time, stop=stop, every=timedelta(milliseconds=1))

    assert len(delays) == 3
    assert all(delay >= 0 for delay in delays)


def test_the_longest_delay_of_the_last_minute_is_shown(live: Live, clock: Ticking) -> None:
    live.loop_delayed(3.0)
    clock.seconds += 50
    live.loop_delayed(0.2)
    assert live.loop_delay() == 3.0

    clock.seconds += 20
    assert live.loop_delay() == 0.2


def test_a_node_is_ready_once_it_has_started_and_until_it_stops() -> None:
    health = Health()
    assert health.reasons() == [Reason("node", "the node is starting")]

    health(STARTED)
    assert health.reasons() == []

    health(NodeStopped(node=7, returned=0))
    assert health.reasons() == [Reason("node", "the node is stopping")]


def test_a_node_that_finishes_its_last_calls_is_not_ready() -> None:
    told = False
    health = Health(stops=lambda: told)
    health(STARTED)
    assert health.reasons() == []

    told = True
    assert health.reasons() == [Reason("node", "the node is stopping")]
    health(NodeStopped(node=7, returned=0))
    assert health.reasons() == [Reason("node", "the node is stopping")]


def test_a_store_that_keeps_failing_makes_it_unready_until_it_is_back() -> None:
    health = Health()
    health(STARTED)
    for failures in range(1, PATIENCE + 1):
        assert health.reasons() == []
        health(StoreFailed(part="claim", error="connection refused", failures=failures))
    assert health.reasons() == [
        Reason("claim", f"the store failed {PATIENCE} times in a row: connection refused")
    ]

    health(StoreBack(part="claim", after=3.0))
    assert health.reasons() == []


def test_checks_are_asked_each_time() -> None:
    answers: dict[str, str | None] = {"leases": None}
    health = Health({"leases": lambda: answers["leases"]})
    health(STARTED)
    assert health.reasons() == []

    answers["leases"] = "the last renewal was 25 s ago"
    assert health.reasons() == [Reason("leases", "the last renewal was 25 s ago")]


def test_a_subscriber_that_fails_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise KeyError(type(event).__name__)

    emit_to(broken, heard.append)(STARTED)

    assert heard == [STARTED]
    assert "a subscriber failed on NodeStarted" in caplog.text
