"""Lanes and pools in a file: what is refused, what would change, what is left alone."""

from pathlib import Path

import pytest

from penstock.config.declared import Declared, declared, sink_warnings
from penstock.config.file import read
from penstock.config.plan import Change, apply, plan
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.errors import InvalidConfig
from penstock.stores.sqlite.store import SqliteStore

TEXT = """\
[pools.web]
rate = "200/s"
burst = 50
max_in_flight = 50
key = "tenant"

[lanes.orders]
sink = "http"
target = "http://127.0.0.1:9000/hook"
mode = "block_on_error"
pool = "web"
retry = ["0s", "1m"]

[lanes.curve]
retry = { first = "1s", factor = 2, max = "1h", attempts = 8 }
"""


def parsed(tmp_path: Path, text: str = TEXT, *pools: str) -> Declared:
    path = tmp_path / "p.toml"
    path.write_text(text)
    return declared(read(path), pools=pools)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        parsed(tmp_path, text)
    return [problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


def test_lanes_and_pools_are_read_with_their_defaults(tmp_path: Path) -> None:
    found = parsed(tmp_path)

    assert found.pools == {"web": pool("web", rate="200/s", burst=50, max_in_flight=50, key="tenant")}
    assert found.lanes["orders"]["retry"] == '["0s","1m"]'
    assert found.lanes["orders"]["batch_size"] == 500
    assert found.lanes["curve"] == lane(
        "curve", retry={"first": "1s", "factor": 2, "max": "1h", "attempts": 8}
    )


def test_every_mistake_is_named_at_once_with_its_line_and_a_hint(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        '[pools.web]\nrate = "fast"\nkey = "lane"\nbrust = 1\n'
        '[lanes.orders]\npool = "wbe"\nbatchsize = 5\npaused = true\njitter = 5\n'
        '[lanes."a b"]\n[lanes.x]\nretry = []\n',
    )

    assert found == [
        "p.toml:2: pools.web.rate: 'fast' is not a rate: write 200/s, 10/m or 5/h",
        "p.toml:3: pools.web.key: 'lane' is none of tenant, target, group",
        "p.toml:4: pools.web.brust: there is no such setting; did you mean burst?",
        'p.toml:6: lanes.orders.pool: unknown pool "wbe"; did you mean web?',
        "p.toml:7: lanes.orders.batchsize: there is no such setting; did you mean batch_size?",
        "p.toml:8: lanes.orders.paused: is no setting, it is done by hand: penstock lanes pause orders",
        "p.toml:9: lanes.orders.jitter: 5 is not a duration: write 5s, 250ms, 1m, 2h or 7d",
        "p.toml:10: lanes.a b: 'a b' is not a lane: use 1 to 63 of A-Z a-z 0-9 _ . - and begin with a letter or digit",  # noqa: E501
        "p.toml:12: lanes.x.retry: not a retry schedule: 0 attempts, write between 1 and 1000",
    ]


def test_every_setting_that_cannot_work_is_named(tmp_path: Path) -> None:
    found = problems(
        tmp_path, '[lanes.x]\nlease = "0s"\npoll_interval = "1ms"\nsink = "http"\ntarget = "ftp://x"\n'
    )

    assert [problem.partition(": ")[2].partition(":")[0] for problem in found] == [
        "lanes.x.lease",
        "lanes.x.poll_interval",
        "lanes.x.target",
    ]


def test_a_pool_of_the_store_may_be_named(tmp_path: Path) -> None:
    assert parsed(tmp_path, '[lanes.x]\npool = "old"', "old").lanes["x"]["pool"] == "old"


def test_a_sink_nobody_knows_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[lanes.x]\nsink = "htpt"\n[lanes.y]\nsink = "billing"\n[lanes.z]\nsink = "zzzzz"')
    file = read(path)

    lanes = declared(file).lanes.values()

    assert sink_warnings(file, lanes, ["billing"]) == [
        f'{path}:2: lanes.x.sink: no sink "htpt" is known here; did you mean http?',
        f'{path}:6: lanes.z.sink: no sink "zzzzz" is known here',
    ]
    [told] = sink_warnings(None, [lane("x", hold_until="sent")], [])
    assert told.startswith('lanes.x.hold_until: "sent" has no effect: sink "console" does not keep order, ')
    assert sink_warnings(None, [lane("x", hold_until="sent", sink="kafka")], []) == []
    assert sink_warnings(None, [lane("x", sink="q")], []) == ['lanes.x.sink: no sink "q" is known here']


def test_a_plan_says_what_differs(tmp_path: Path) -> None:
    wanted = parsed(tmp_path)
    lanes = {
        "orders": lane("orders", sink="http", target="http://127.0.0.1:9000/hook", rate="5/s", pool="web"),
        "other": lane("other"),
    }

    found = plan(wanted, lanes=lanes, pools=dict(wanted.pools))

    assert [(change.kind, change.name, change.created) for change in found] == [
        ("pool", "web", False),
        ("lane", "orders", False),
        ("lane", "curve", True),
    ]
    assert not found[0].any
    assert found[1].settings == {
        "mode": ("immediate", "block_on_error"),
        "rate": ("5/s", None),
        "retry": ('["0s","1m","5m","15m","1h"]', '["0s","1m"]'),
    }


def test_applying_twice_changes_nothing_and_a_pause_stays(tmp_path: Path) -> None:
    store, wanted = SqliteStore(":memory:"), parsed(tmp_path)
    store.migrate()

    first = apply(store, wanted, actor="me", file=tmp_path / "lanes.toml")
    store.pause_lane("orders", paused=True, actor="ann", reason="rest")
    store.put_lane(lane("curve", rate="1/s"), actor="ann")
    version = store.lanes()["orders"].version
    second = apply(store, wanted, actor="me", file=tmp_path / "lanes.toml")
    third = apply(store, wanted, actor="me", file=tmp_path / "lanes.toml")

    assert [change.created for change in first] == [True, True, True]
    assert [change.name for change in second if change.any] == ["curve"]
    assert not any(change.any for change in third)
    assert store.lanes()["orders"].paused
    assert store.lanes()["orders"].version == version


def test_a_retry_that_was_written_by_hand_with_blanks_is_the_same(tmp_path: Path) -> None:
    wanted = parsed(tmp_path)
    stored = lane("orders")
    settings = {**wanted.lanes["orders"].settings, "retry": '["0s", "1m"]'}
    lanes = {"orders": type(stored)("orders", settings), "curve": wanted.lanes["curve"]}

    assert plan(wanted, lanes=lanes, pools=dict(wanted.pools))[1] == Change("lane", "orders", False, {})
