"""Lane settings: every name, every default, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.lanes import MAX_INT, RETENTION_DAYS, SETTINGS, Lane, check, lane
from penstock.domain.ordering import Mode
from penstock.errors import InvalidSetting

# Setting, some values that are kept as they are, some that are refused.
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "enabled": ([True, False], [None, 1, "true"]),
    "mode": (["immediate", "next_on_error", "block_on_error"], [None, "IMMEDIATE", 1, []]),
    "sink": (["http"], [None, "", 7]),
    "queue": ([None, "https://queue/1"], ["", 1, "a\0b", "a\udcff"]),
    "target": ([None, "http://127.0.0.1/"], [""]),
    "format": ([None, "pointer", "full", "app", "payload"], ["json", True]),
    "complete_on": ([None, "sent", "reported"], ["done"]),
    "pool": ([None, "web"], [""]),
    "batch_size": ([1, 500, MAX_INT], [None, 0, -1, True, 1.0, "5", MAX_INT + 1]),
    "poll_interval": (["1s", "20ms", "1m"], [None, 1, "1", "1m30s", "-1s", "19ms", "61s"]),
    "lookahead": (["0s", "30m"], [None, "soon"]),
    "jitter": (["0s", "4s"], [None, ""]),
    "misfire": (
        ["send_now", "skip_after(10m)"],
        [None, "skip", "skip_after()", "skip_after(10)", "skip_after(99999999999999d)", 1, "send_now "],
    ),
    "rate": ([None, "200/s", "5/m", "1/h"], ["200", "0/s", 200]),
    "max_in_flight": ([1, 200], [None, 0]),
    "max_groups": ([None, 10], [0]),
    "retry": (['["0s"]', '["0s","1m"]'], [None, "1m", "[]", "{", 5, '["soon"]', '["1s","1m"]']),
    "retry_on": ([None, "5xx"], [""]),
    "give_up_on": ([None, "404"], [""]),
    "workflow": ([None, "pay"], [""]),
    "task_queue": ([None, "q"], [""]),
    "timeout": (["15s", "1ms"], [None, "0s"]),
    "lease": (["30s", "1s"], [None, "1ms", "999ms"]),
    "ack_timeout": (["15m"], [None]),
    "run_timeout": (["1h"], [None]),
    "heartbeat": (["30s"], [None]),
    "on_unknown": (["requeue", "hold"], [None, "ignore"]),
    "max_recoveries": ([0, 5], [None, -1]),
    "max_recoveries_per_pass": ([1, 100], [None, 0]),
    "hold_until": (["done", "sent"], [None, "never"]),
    "max_depth": ([None, 1], [0]),
    "max_payload": (["256KiB", "1MiB"], [None, 256, "256kb"]),
    "key_ttl": (["0s", "24h"], [None, 5]),
    "retention": (["1d", "7d", "30d", "90d", "1y"], [None, "2d", "365d"]),
    "dead_retention": (["0s", "30d"], [None, "1y"]),
    "keep_payload": ([True, False], [None, 0]),
    "weight": ([1, 100], [None, 0]),
}
GOOD = [(name, value) for name, (values, _) in CASES.items() for value in values]
BAD = [(name, value) for name, (_, values) in CASES.items() for value in values]


def test_the_cases_are_about_every_setting() -> None:
    assert list(CASES) == list(SETTINGS)


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_a_good_value_is_kept_as_it_is_written(name: str, value: object) -> None:
    made = lane("orders", **{name: value})

    assert made[name] == value
    assert type(made[name]) is type(value)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidSetting) as caught:
        lane("orders", **{name: value})

    assert caught.value.setting == name
    assert caught.value.problem


def test_what_is_not_given_has_its_default() -> None:
    assert lane("orders").settings == {name: setting.default for name, setting in SETTINGS.items()}


def test_every_default_passes_its_own_check() -> None:
    for name, setting in SETTINGS.items():
        assert check(name, setting.default) == setting.default


def test_a_setting_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="colour: there is no such lane setting"):
        lane("orders", colour="red")


@pytest.mark.parametrize("name", ["", "-a", "a b", "ä", "x" * 64])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        lane(name)

    assert caught.value.setting == "name"


@given(st.lists(st.integers(0, 3_600).map(lambda s: f"{s}s"), min_size=1, max_size=6))
def test_a_retry_schedule_is_stored_as_text_whichever_way_it_comes(delays: list[str]) -> None:
    delays = ["0s", *delays]
    as_list = lane("orders", retry=delays)["retry"]

    assert as_list == lane("orders", retry=json.dumps(delays))["retry"]
    assert as_list == lane("orders", retry=as_list)["retry"]


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_nested_too_deeply_to_be_shown_is_refused_all_the_same(name: str) -> None:
    value: object = "x"
    for _ in range(10_000):
        value = [value]

    with pytest.raises(InvalidSetting) as caught:
        check(name, value)
    assert caught.value.setting == name


def test_a_retry_curve_is_stored_as_text() -> None:
    curve = {"first": "1s", "factor": 2, "max": "1h", "attempts": 8}

    assert json.loads(lane("orders", retry=curve)["retry"]) == curve


@pytest.mark.parametrize("target", ["orders", "ftp://host/x", "http://", "https:///path", "http://[::1"])
def test_an_http_lane_needs_a_url_as_its_target(target: str) -> None:
    with pytest.raises(InvalidSetting, match=r"target: .* is no URL to call: write https://host/path"):
        lane("orders", sink="http", target=target)

    with pytest.raises(InvalidSetting, match=r"target: .* has a port that cannot be"):
        lane("orders", sink="http", target="http://host:99999/x")
    with pytest.raises(InvalidSetting, match=r"target: holds a user name") as refused:
        lane("orders", sink="http", target="https://ann:pw42@host/x")
    assert "pw42" not in str(refused.value)
    assert lane("orders", sink="http", target="https://host:8443/x")["target"]
    assert lane("orders", sink="embedded", target=target)["target"] == target


def test_what_cannot_work_is_refused_with_the_nearest_that_can() -> None:
    for settings, text in (
        ({"lease": "1ms"}, "lease: 1ms is too short: write 1s or more"),
        ({"poll_interval": "2m"}, "poll_interval: 2m is too long: write 1m or less"),
        ({"retry": ["5s"]}, 'write ["0s", "5s"] to wait 5s before the second'),
    ):
        with pytest.raises(InvalidSetting) as caught:
            lane("orders", **settings)
        assert text in str(caught.value)


def test_a_lane_knows_its_mode_and_its_retention_class() -> None:
    made = lane("orders", mode="block_on_error", retention="90d")

    assert (made.mode, made.keep) == (Mode.BLOCK_ON_ERROR, 90)
    assert (made.id, made.version) == (0, 0)
    assert [lane("orders", retention=word).keep for word in RETENTION_DAYS] == [1, 7, 30, 90, 365]


def test_lanes_are_equal_by_what_they_say() -> None:
    assert lane("orders", weight=2) == lane("orders", weight=2) != lane("orders")
    assert isinstance(lane("orders"), Lane)


def test_a_payload_has_room_in_one_row() -> None:
    assert lane("orders", max_payload="1GiB")["max_payload"] == "1GiB"
    with pytest.raises(InvalidSetting, match="write at most 1GiB"):
        lane("orders", max_payload="2GiB")
