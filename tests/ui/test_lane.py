"""The page of one lane."""

import re
import tomllib
from html import unescape

import pytest

from penstock import Client
from penstock.domain.lanes import SETTINGS, lane
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
