from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock.domain.lanes import lane
from penstock.domain.pools import POOL_SETTINGS, Pool, check_pool, mark, marks, pool
from penstock.errors import InvalidSetting

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_pool_without_settings_limits_nothing() -> None:
    assert pool("web").settings == dict.fromkeys(POOL_SETTINGS)
    assert pool("web").bucket is None


def test_a_pool_keeps_what_it_is_given() -> None:
    given = {"rate": "200/s", "burst": 50, "max_in_flight": 20, "key": "tenant"}

    assert pool("web", **given).settings == given


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("rate", "fast", "write 200/s"),
        ("rate", "0/s", "from 1 to"),
        ("rate", 5, "write 200/s"),
        ("burst", 0, "at least 1"),
        ("burst", 1_000_000_001, "at most 1000000000"),
        ("burst", "5", "whole number"),
        ("burst", True, "whole number"),
        ("max_in_flight", 0, "at least 1"),
        ("max_in_flight", 2_147_483_648, "at most 2147483647"),
        ("max_in_flight", 1.5, "whole number"),
        ("key", "lane", "tenant, target, group"),
        ("key", "", "tenant, target, group"),
        ("weight", 1, "no such pool setting"),
        ("paused", True, "no such pool setting"),
    ],
)
def test_what_is_no_setting_is_refused(setting: str, value: object, problem: str) -> None:
    with pytest.raises(InvalidSetting, match=problem) as refused:
        pool("web", **{setting: value})
    assert refused.value.setting == setting


@pytest.mark.parametrize("name", ["", "a b", "-web", "x" * 64, "web\n"])
def test_a_pool_has_a_name_like_a_lane(name: str) -> None:
    with pytest.raises(InvalidSetting, match="name"):
        pool(name)


@pytest.mark.parametrize(
    ("settings", "bucket"), [({"rate": "200/s"}, 200), ({"rate": "5/m"}, 1), ({"rate": "5/m", "burst": 9}, 9)]
)
def test_the_burst_is_a_seconds_worth_unless_it_is_set(settings: dict[str, object], bucket: int) -> None:
    assert pool("web", **settings).bucket == bucket


def test_a_pause_ends_by_itself_when_its_time_has_come() -> None:
    for paused in (
        Pool("web", paused=True, paused_until=NOW),
        type(lane("web"))("web", {}, paused=True, paused_until=NOW),
    ):
        assert [paused.stopped(NOW - timedelta(microseconds=1)), paused.stopped(NOW)] == [True, False]
    assert Pool("web", paused=True).stopped(NOW)
    assert not Pool("web", paused_until=NOW).stopped(NOW - timedelta(days=1))


def test_the_pool_of_a_lane_exists() -> None:
    check_pool("web", ["web"])
    with pytest.raises(InvalidSetting, match='unknown pool "wbe"; did you mean web'):
        check_pool("wbe", ["web"])


def test_a_mark_says_how_the_pool_is_set() -> None:
    web = pool("web", rate="2/s", burst=1, key="tenant")

    assert mark(web, of_lane=False) == "waits for pool: web (rate = 2/s, burst = 1, key = tenant)"
    assert (
        mark(web, of_lane=True) == "waits for the pool of its lane: web (rate = 2/s, burst = 1, key = tenant)"
    )


@pytest.mark.parametrize(
    ("own", "pools", "stands"),
    [
        ("web", [pool("web", rate="2/s")], True),
        ("web", [pool("web", rate="2/s"), pool("db", rate="1/s")], True),
        ("web", [pool("web", rate="3/s")], False),
        ("web", [pool("web", rate="2/s", key="tenant")], False),
        ("db", [pool("web", rate="2/s"), pool("db", rate="2/s")], False),
        (None, [pool("web", rate="2/s")], False),
        ("web", [], False),
    ],
)
def test_the_mark_of_a_lanes_pool_stands_while_neither_is_set_otherwise(
    own: str | None, pools: list[Pool], *, stands: bool
) -> None:
    before = mark(pool("web", rate="2/s"), of_lane=True)

    assert (before in marks(own, {each.name: each for each in pools})) is stands


def test_the_mark_of_a_pool_that_jobs_name_themselves_stands_whatever_their_lane_has() -> None:
    web = pool("web", rate="2/s")

    assert mark(web, of_lane=False) in marks(None, {"web": web})
    assert mark(web, of_lane=False) not in marks("web", {})


def test_a_pause_takes_no_mark_away() -> None:
    web = pool("web", rate="2/s")

    assert mark(web, of_lane=True) in marks("web", {"web": replace(web, paused=True, version=2)})
