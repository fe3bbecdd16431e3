"""What events leave in the registry, and what a scrape asks the store."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.limits import Limit, Need
from penstock.domain.outcomes import Returned
from penstock.domain.pools import pool
from penstock.errors import StoreUnavailable
from penstock.observability.depths import Counts, Depths
from penstock.observability.dues import oldest_due
from penstock.observability.metrics import MOST_WORDS, OTHER, Metrics
from penstock.ports.clock import SystemClock
from penstock.ports.events import (
    Called,
    Claimed,
    Event,
    Housekept,
    JobDied,
    LaneFailed,
    LeaderChanged,
    LeaseLost,
    NodeStarted,
    NodeStopped,
    Recovered,
    ReturnedJobs,
    SettledBatch,
    SinkFailed,
    StoreFailed,
    TargetChanged,
)
from penstock.ports.flow import Scouted, Work
from penstock.ports.store import Ask
from penstock.stores.connect import connect
from tests.observability.ticking import Ticking

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry, version="1.2.3")


def value(registry: CollectorRegistry, name: str, /, **labels: str) -> float | None:
    return registry.get_sample_value(f"penstock_{name}", labels)


def called(**outcomes: int) -> Called:
    return Called(
        lane="orders", sink="http", jobs=sum(outcomes.values()), outcomes=outcomes, took=0.2, lag=0.003
    )


def test_a_call_counts_its_jobs_by_what_came_of_them(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics(called(accepted=12, duplicate=2, tryagain=1))

    assert value(registry, "dispatched_total", lane="orders", sink="http") == 14
    assert value(registry, "attempts_total", lane="orders", outcome="retry") == 1
    assert value(registry, "duplicates_total", lane="orders") == 2
    assert value(registry, "send_seconds_count", lane="orders", sink="http") == 1
    assert value(registry, "schedule_lag_seconds_bucket", lane="orders", le="0.005") == 1
    assert value(registry, "schedule_lag_seconds_bucket", lane="orders", le="0.001") == 0


@pytest.mark.parametrize(
    ("event", "name", "labels", "expected"),
    [
        (Claimed(lane="a", epoch=1, jobs=5, groups=False, took=0.1), "claimed_total", {"lane": "a"}, 5),
        (
            SettledBatch(lane="a", epoch=1, applied=4, refused=2, outcomes={"succeeded": 4}, took=0.1),
            "fenced_writes_total",
            {"lane": "a"},
            2,
        ),
        (
            SettledBatch(lane="a", epoch=1, applied=4, refused=0, outcomes={"succeeded": 4}, took=0.1),
            "settled_total",
            {"lane": "a", "outcome": "succeeded"},
            4,
        ),
        (
            JobDied(lane="a", job="01", reason="exhausted", error="500"),
            "dead_total",
            {"lane": "a", "reason": "exhausted"},
            1,
        ),
        (ReturnedJobs(lane="a", jobs=3, why="https://t is left alone"), "returned_total", {"lane": "a"}, 3),
        (
            Recovered(lane="a", fates={"requeued": 2}),
            "recovered_total",
            {"lane": "a", "fate": "requeued"},
            2,
        ),
        (LeaseLost(lane="a", epoch=1, jobs=7), "leases_lost_total", {"lane": "a"}, 1),
        (StoreFailed(part="claim", error="gone", failures=1), "store_errors_total", {"part": "claim"}, 1),
        (
            LaneFailed(lane="a", error="x", trace="", pause=timedelta(seconds=1)),
            "lane_errors_total",
            {"lane": "a"},
            1,
        ),
        (
            SinkFailed(sink="sqs", error="x", pause=timedelta(seconds=1)),
            "sink_errors_total",
            {"sink": "sqs"},
            1,
        ),
        (LeaderChanged(node=1, term=9, leads=True), "leader", {}, 1),
        (LeaderChanged(node=1, term=9, leads=False), "leader", {}, 0),
        (LeaderChanged(node=1, term=9, leads=True), "leader_term", {}, 9),
        (TargetChanged(target="https://t", state="open", failures=5, wait=None), "breaker_open", {}, 1),
        (
            Housekept(did={"expired": 3}, phases={"expiry": 0.1}),
            "housekept_total",
            {"what": "expired"},
            3,
        ),
        (
            Housekept(did={}, phases={"expiry": 0.1}),
            "housekeeping_seconds_count",
            {"part": "expiry"},
            1,
        ),
        (
            NodeStarted(node=7, name="host:1", store="sqlite:///x"),
            "node_info",
            {"version": "1.2.3", "node": "7", "name": "host:1"},
            1,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)
def test_an_event_is_counted(
    registry: CollectorRegistry, *, event: Event, name: str, labels: dict[str, str], expected: float
) -> None:
    Metrics(registry, version="1.2.3")(event)

    assert value(registry, name, **labels) == expected


def test_what_is_not_counted_is_no_error(metrics: Metrics) -> None:
    metrics(NodeStopped(node=1, returned=0))


def test_a_breaker_that_closes_is_no_longer_counted(metrics: Metrics, registry: CollectorRegistry) -> None:
    for target, state in [("https://a", "open"), ("https://b", "trial"), ("https://a", "closed")]:
        metrics(TargetChanged(target=target, state=state, failures=1, wait=None))

    assert value(registry, "breaker_open") == 1


def test_labels_are_bounded_and_name_no_target(metrics: Metrics, registry: CollectorRegistry) -> None:
    for number in range(MOST_WORDS + 5):
        metrics(JobDied(lane="a", job="01", reason=f"reason-{number}", error=None))
    metrics(TargetChanged(target="https://secret.example", state="open", failures=1, wait=None))

    assert value(registry, "dead_total", lane="a", reason=OTHER) == 5
    assert b"secret.example" not in generate_latest(registry)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    url = f"sqlite:///{tmp_path}/penstock.db"
    with closing(connect(url)) as store:
        store.migrate()
        store.put_lane(lane("orders"), actor="test")
    with Client(url) as client:
        yield client


def test_a_scrape_shows_the_jobs_of_the_store(client: Client, registry: CollectorRegistry) -> None:
    clock = SystemClock()
    registry.register(Depths(client.counts, client.store.scout, now=clock.now, monotonic=clock.monotonic))
    client.enqueue("orders", {"n": 1}, run_at=clock.now() - timedelta(minutes=5))

    assert value(registry, "jobs", lane="orders", state="pending") == 1
    assert value(registry, "jobs", lane="orders", state="dead") == 0
    assert value(registry, "oldest_due_seconds", lane="orders") == pytest.approx(300, abs=60)
    assert abs(value(registry, "node_clock_skew_seconds") or 0) < 5
    assert value(registry, "store_up") == 1


def test_a_scrape_shows_what_pools_put_back(client: Client, registry: CollectorRegistry) -> None:
    clock, store = SystemClock(), client.store
    client.enqueue("orders", {"n": 1}, run_at=clock.now() - timedelta(minutes=5))
    claim = store.claim(Ask(lane="orders", node=1, limit=1))
    assert claim is not None
    back = Returned("limit of pool/web/acme", timedelta(minutes=1), "waits for pool: web")
    store.settle(claim, {claim.jobs[0].job.arrival: back})
    registry.register(
        Depths(client.counts, store.scout, store.vitals, now=clock.now, monotonic=clock.monotonic)
    )

    assert value(registry, "put_back_seconds", lane="orders") == pytest.approx(300, abs=60)
    assert value(registry, "oldest_due_seconds", lane="orders") == 0


def test_a_scrape_shows_how_the_store_does(client: Client, registry: CollectorRegistry) -> None:
    clock, store = SystemClock(), client.store
    store.put_pool(pool("web", max_in_flight=2), actor="test")
    store.permit(1, [Need(Limit("pool", "web", max_in_flight=2), slots=1)], ttl=timedelta(minutes=1))
    registry.register(
        Depths(client.counts, store.scout, store.vitals, now=clock.now, monotonic=clock.monotonic)
    )

    assert value(registry, "pool_saturation", pool="web") == 0.5
    assert value(registry, "lapsed_claim_seconds") == 0
    assert value(registry, "store_dead_rows") is None  # SQLite has none


def test_the_store_is_asked_once_a_second_however_many_scrape(registry: CollectorRegistry) -> None:
    clock, asked = Ticking(), []

    def counts() -> Counts:
        asked.append(clock.seconds)
        return {}

    registry.register(Depths(counts, None, now=clock.now, monotonic=clock.monotonic))
    for _ in range(3):
        generate_latest(registry)
    assert len(asked) == 1

    clock.seconds += 1
    generate_latest(registry)
    assert len(asked) == 2


def test_a_store_that_does_not_answer_is_a_figure_and_no_error(registry: CollectorRegistry) -> None:
    clock = Ticking()

    def counts() -> Counts:
        raise StoreUnavailable("counts")

    registry.register(Depths(counts, None, now=clock.now, monotonic=clock.monotonic))

    assert value(registry, "store_up") == 0
    assert value(registry, "jobs", lane="orders", state="pending") is None


def test_the_oldest_due_is_of_jobs_or_groups_whichever_is_earlier_and_never_of_the_future() -> None:
    minute = timedelta(minutes=1)
    work = {
        "both": Work(NOW - minute, NOW - 3 * minute),
        "groups": Work(None, NOW - 2 * minute),
        "future": Work(NOW + minute, None),
        "idle": Work(None, None),
    }

    assert oldest_due(Scouted(NOW, work)) == {"both": 180, "groups": 120, "future": 0, "idle": 0}
