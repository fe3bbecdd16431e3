"""The line of a key, for files as people write them."""

import pytest

from penstock.config.lines import line_of

TEXT = """\
store = "sqlite:///x.db"   # 1
http.allow_networks = []

[pools.web]
rate = "5/s"
[lanes]
[lanes."a.b"]
retry = [
  "0s",
]
[lanes.orders]
  rate="1/s"
retry = { first = "1s",
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["store"], 1),
        (["http", "allow_networks"], 2),
        (["pools", "web"], 4),
        (["pools", "web", "rate"], 5),
        (["lanes", "a.b", "retry"], 8),
        (["lanes", "orders", "rate"], 12),
        (["lanes", "orders", "retry", "first"], 13),
        (["lanes", "orders", "missing"], 11),
        (["nothing"], None),
    ],
)
def test_a_key_is_found_or_what_holds_it(path: list[str], line: int | None) -> None:
    assert line_of(TEXT, path) == line
