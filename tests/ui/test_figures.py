"""The figures that screens share: forecasts, sparks, an hour of steps."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from penstock.observability.hour import ALL, STEP_S, Hour
from penstock.ports.events import Called
from penstock.ui.cluster import Cluster
from penstock.ui.figures import Figures
from penstock.wire import encode

if TYPE_CHECKING:
    from penstock.api.stats import Stats

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Said:
    """Stands where the figures of a node come from: a lane with so many jobs that wait."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.lane: dict[str, Any] = {
            "lane": "a", "pending": 0, "due": 0, "due_capped": False, "sent_per_s": 0.0, "dead": 0,
            "stopped": None, "oldest_due_s": 0.0,
        }  # fmt: skip

    def __call__(self) -> str:
        return encode({"now": NOW, "lanes": [self.lane], "nodes": self.nodes})


def forecast(waiting: list[int], *, capped: bool = False) -> tuple[float, datetime | None] | None:
    """Return what is foretold after samples ten seconds apart."""
    clock, said = [0.0], Said()
    figures = Figures(cast("Stats", said), Hour(lambda: clock[0]), monotonic=lambda: clock[0])
    for count in waiting:
        said.lane |= {"pending": count, "due": count, "due_capped": capped}
        found = figures.now()["lanes"][0]["forecast"]
        clock[0] += 10
    return found and tuple(found)  # type: ignore[no-any-return]


def test_a_lane_that_empties_says_when() -> None:
    assert forecast([400, 300, 200, 100]) == (10.0, NOW + timedelta(seconds=10))


@pytest.mark.parametrize(("waiting", "per_s"), [([100, 200, 300], -10.0), ([100, 100, 100], 0.0)])
def test_a_lane_that_grows_or_stands_is_never_empty(waiting: list[int], per_s: float) -> None:
    assert forecast(waiting) == (per_s, None)


def test_nothing_is_foretold_of_what_nobody_counted() -> None:
    assert forecast([400, 300, 0]) is None
    assert forecast([400, 300, 200], capped=True) is None


def test_an_hour_has_a_step_for_every_ten_seconds_quiet_ones_too() -> None:
    clock = [1000.0]
    hour = Hour(lambda: clock[0])
    hour(Called(lane="a", sink="http", jobs=4, outcomes={"accepted": 3, "retry": 1}, took=0.1, lag=0.5))
    clock[0] += 3 * STEP_S

    steps = hour.steps("a")

    assert [(step.at, step.sent, step.failed) for step in steps] == [(-30, 3, 1), (-20, 0, 0), (-10, 0, 0)]
    assert steps[0].lag_p99 == pytest.approx(0.5, rel=0.25)
    assert [step.sent for step in hour.steps(ALL)] == [3, 0, 0]
    assert hour.steps("other")[0].sent == 0


def told(*counts: int | None, beat: int) -> list[dict[str, Any]]:
    """Return nodes as the figures have them."""
    return [
        {"id": number, "seen_at": f"beat {beat}", "sent": sent, "failed": 0 if sent is None else sent // 10}
        for number, sent in enumerate(counts)
    ]


def test_the_throughput_of_all_nodes_comes_from_what_they_count() -> None:
    clock = [0.0]
    cluster = Cluster(lambda: clock[0])
    cluster.learn(told(100, 1000, None, beat=0))
    clock[0] = 5.0
    cluster.learn(told(150, 1000, None, beat=0))  # nobody beat meanwhile
    clock[0] = 20.0
    cluster.learn(told(300, 1400, None, beat=1))
    clock[0] = 40.0

    assert cluster.nodes == 2
    assert [(step.at, step.sent, step.failed) for step in cluster.steps()] == [
        (-40, 300.0, 30.0), (-30, 300.0, 30.0), (-20, 0.0, 0.0),
    ]  # fmt: skip
    cluster.learn(told(300, beat=2))
    assert cluster.nodes == 1
    clock[0] = 4000.0
    cluster.learn(told(300, beat=3))
    assert {step.sent for step in cluster.steps()} == {0.0}


def test_a_chart_says_whether_it_is_of_one_node_or_of_all() -> None:
    clock, said = [0.0], Said()
    hour = Hour(lambda: clock[0])
    figures = Figures(cast("Stats", said), hour, monotonic=lambda: clock[0])
    hour(Called(lane="a", sink="http", jobs=50, outcomes={"accepted": 50}, took=0.1, lag=0.5))
    said.nodes = told(50, beat=0)
    figures.now()
    clock[0] = 10.0
    assert figures.throughput(NOW) == (1, [round(NOW.timestamp()) - 10], [5.0], [0.0])
    said.nodes = told(50, 7000, beat=1)
    figures.now()
    clock[0] = 20.0
    said.nodes = told(50, 7600, beat=2)
    figures.now()
    clock[0] = 40.0
    found = figures.throughput(NOW)
    assert (found.nodes, found.sent) == (2, [0.0, 60.0, 0.0])
