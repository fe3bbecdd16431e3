"""What the page of nodes says of how each of them does."""

import json
import re
from datetime import timedelta
from html import unescape

from penstock import Client
from penstock.ports.events import LaneFailed, NodeStarted, TargetChanged
from penstock.ports.insight import LEADER
from penstock.ui.words import NONE
from tests.api.conftest import memory_store
from tests.api.node import Http, served


def shown(http: Http) -> str:
    """Return the text of the page."""
    page = http.get("/nodes", headers={"HX-Request": "true"}).text
    page = re.sub(r"<form.*?</form>|<button.*?</button>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_every_node_says_how_it_does_and_who_leads_since_when() -> None:
    store = memory_store()
    first, second = store.register_node("host-a:1"), store.register_node("host-b:2")
    since = (store.now() - timedelta(hours=3)).isoformat()
    store.beat(first, json.dumps({
        "claimed": 40, "memory": 96 * 2**20, "loop_delay_us": 12_000, "skew_us": -400,
        "leads": {"term": 4, "since": since},
    }))  # fmt: skip
    store.beat(second, json.dumps({
        "claimed": 2, "memory": 3 * 2**29, "loop_delay_us": 700_000, "skew_us": 3_000_000, "standby": "",
    }))  # fmt: skip
    store.elect(LEADER, first, timedelta(hours=1))
    with Client(store) as client, served(client) as http:
        page, raw = shown(http), http.get("/nodes").text

    assert f"Leader node {first} term 4, since 3 h ago" in page
    assert "Claimed 42 jobs" in page
    assert f"Loop delay 700 ms longest of the last minute, node {second}" in page
    assert f"Clock skew +3 s the store's clock minus that of node {second}" in page
    assert re.search(r"host-a:1 · \S+ alive 40 12 ms 96 MiB 0 ms", page)
    assert re.search(r"host-b:2 · \S+ alive stands by 2 700 ms 1\.5 GiB \+3 s", page)
    assert '<td class="num bad" data-name="Clock skew">+3 s' in raw
    assert '<td class="num bad" data-name="Loop delay">700 ms' in raw


def test_a_node_of_an_older_version_does_not_say_and_one_without_a_leader_is_no_error() -> None:
    store = memory_store()
    store.beat(store.register_node("host-a:1"), '{"lanes": ["*"], "skew_us": 1e99, "memory": "x"}')
    with Client(store) as client, served(client) as http:
        page = shown(http)

    assert "Leader none" in page
    assert re.search(rf"host-a:1 · \S+ alive {NONE} {NONE} {NONE} {NONE}", page)


def test_breakers_are_those_of_the_store_and_a_node_in_trouble_does_not_say_none() -> None:
    store, ttl = memory_store(), timedelta(minutes=5)
    node = store.register_node("host-a:1")
    store.mark_target("https://a.example", failed=40, ok=0, trip_after=3, open_for=ttl, slow_for=timedelta(0))
    with Client(store) as client, served(client) as http:
        http.node.emit(NodeStarted(node=node, name="host-a:1", store="memory"))
        http.node.emit(TargetChanged(target="https://a.example", state="open", failures=25, wait=ttl))
        http.node.emit(TargetChanged(target="https://gone.example", state="open", failures=25, wait=ttl))
        well = shown(http)
    with Client(store) as client, served(client) as http:
        http.node.emit(NodeStarted(node=node, name="host-a:1", store="memory"))
        http.node.emit(LaneFailed(lane="orders", error="boom", trace="", pause=timedelta(seconds=1)))
        ill = shown(http)

    assert re.search(r"every lane none .*open https://a\.example tried again in \d min 40 failures", well)
    assert "25 failures" not in well
    assert "gone.example" not in well
    assert "every lane orders its pass failed: boom" in ill
