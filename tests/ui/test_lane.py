"""The page of one lane."""

import re
import tomllib
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from penstock import Client
from penstock.config.changing import LANE
from penstock.config.declared import declared
from penstock.config.file import read
from penstock.config.plan import apply
from penstock.domain.lanes import SETTINGS, lane
from penstock.testing.store_suite.factories import pause_and_wait
from tests.api.conftest import memory_store
from tests.api.node import served


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("plain", {}),
        ("a.b", {"retry": ["0s", "1m"], "rate": "5/s", "enabled": False, "batch_size": 7}),
        ("curve", {"retry": {"first": "1s", "factor": 1.5, "max": "1h", "attempts": 8}}),
        ("odd", {"give_up_on": 'é😀 \x7f "said" \\d+\t', "retry_on": "line\nline"}),
    ],
)
def test_what_it_says_as_toml_makes_the_same_lane(name: str, settings: dict[str, object]) -> None:
    store = memory_store()
    made = store.put_lane(lane(name, **settings), actor="test")
    with Client(store) as client, served(client) as http:
        page = http.get(f"/lanes/{name}").text
    [shown] = re.findall(r"<h2>As TOML</h2>.*?<code>(.*?)</code>", page, re.DOTALL)

    read = tomllib.loads(unescape(shown))["lanes"][name]

    assert lane(name, **read).settings == made.settings
    assert read.keys() == {each for each in SETTINGS if made[each] != SETTINGS[each].default}


def test_each_setting_says_where_it_comes_from(tmp_path: Path) -> None:
    store, file = memory_store(), tmp_path / "<lanes>.toml"
    file.write_text('[lanes.pay]\nrate = "5/s"\nsink = "http"\ntarget = "https://pay.example/hook"\n')
    apply(store, declared(read(file)), actor="cli:ann", file=file)
    LANE.change(store, "pay", {"rate": "9/s"}, actor="user:bob")
    with Client(store) as client, served(client) as http:
        page = http.get("/lanes/pay").text
    rows = re.findall(r'<tr><th scope="row"[^>]*>(\w+)</th>.*?data-name="From">(.*?)</td>', page, re.DOTALL)
    sources = {name: unescape(source) for name, source in rows}

    assert (sources["target"], sources["rate"]) == ("<lanes>.toml", "database")
    assert sources["max_in_flight"] == "default"


def test_a_pause_whose_time_is_over_is_none() -> None:
    """The row keeps it until somebody changes it; the page offers to pause the lane, not to resume it."""
    store = memory_store()
    for name in ("back", "away"):
        store.put_lane(lane(name), actor="test")

    def pause(until: datetime, name: str = "back") -> None:
        store.pause_lane(name, paused=True, actor="ann", reason="they move", until=until)

    pause(store.now() + timedelta(days=3), "away")
    pause_and_wait(store, pause)
    with Client(store) as client, served(client) as http:
        back, away = (http.get(f"/lanes/{name}").text for name in ("back", "away"))

    assert ("Paused by ann" in back, "/lanes/back/pause" in back) == (False, True)
    assert ("Paused by ann" in away, "/lanes/away/resume" in away) == (True, True)
