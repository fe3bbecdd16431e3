"""What the page of pools and targets says of how full and how well they are."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.limits import Limit
from penstock.domain.notes import ALIVE
from penstock.domain.pools import pool
from penstock.domain.rates import Rate
from penstock.domain.ulid import Ulids
from penstock.ports.events import Called
from penstock.ports.flow import Need
from penstock.stores.memory import MemoryStore
from penstock.ui.words import NONE
from tests.api.conftest import memory_store
from tests.api.node import Http, served

TTL = timedelta(minutes=5)


def row(http: Http, id_: str) -> str:
    """Return the text of a row of the page, with what its graphics say."""
    page = http.get("/pools", headers={"HX-Request": "true"}).text
    [found] = re.findall(rf'<tr data-row id="{id_}">(.*?)</tr>', page, re.DOTALL)
    shown = re.sub(r"<form.*?</form>|<button.*?</button>", "", found, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", shown)).split())


def slots(store: MemoryStore, name: str, key: str, taken: int) -> None:
    store.permit(1, [Need(Limit("pool", name, key, max_in_flight=4), slots=taken)], ttl=TTL)


def test_a_pool_says_how_much_of_it_is_taken() -> None:
    store = memory_store()
    store.put_pool(pool("web", rate="1/h", burst=10, max_in_flight=4), actor="test")
    store.put_lane(lane("orders", pool="web"), actor="test")
    limit = Limit("pool", "web", rate=Rate(1, timedelta(hours=1)), burst=10, max_in_flight=4)
    store.permit(1, [Need(limit, tokens=3, slots=3)], ttl=TTL)
    with Client(store) as client, served(client) as http:
        found = row(http, "pool-web")

    assert "1/h burst 10 · 4 in flight" in found
    assert "75 % · 3 of 4 in flight · 7 of 10 tokens left" in found
    assert found.endswith("one limit for all orders has room")


def test_a_pool_with_keys_names_the_fullest_and_counts_those_at_their_limit() -> None:
    store = memory_store()
    store.put_pool(pool("web", max_in_flight=4, key="tenant"), actor="test")
    for key, taken in (("acme", 4), ("<b>", 4), ("zeta", 1)):
        slots(store, "web", key, taken)
    with Client(store) as client, served(client) as http:
        found = row(http, "pool-web")

    assert "100 % of the fullest tenant · 9 in flight in all" in found
    assert "3 keys in use 100 % acme · 4 100 % <b> · 4 25 % zeta · 1" in found
    assert found.endswith("2 of 3 keys at their limit")


def test_a_pool_with_keys_is_not_at_its_limit_because_a_node_waits_for_one_key() -> None:
    store = memory_store()
    store.put_pool(pool("web", rate="1/h", burst=15, key="tenant"), actor="test")
    rate = Rate(1, timedelta(hours=1))
    for key, taken in (("acme", 12), ("zeta", 1)):
        store.permit(1, [Need(Limit("pool", "web", key, rate=rate, burst=15), tokens=taken)], ttl=TTL)
    store.beat(store.register_node("a"), '{"limits": {"pool/web/acme": "slots"}}')
    with Client(store) as client, served(client) as http:
        found = row(http, "pool-web")

    assert "80 % of the fullest tenant · fullest key: 3 of 15 tokens left" in found
    assert found.endswith("1 of 2 keys at their limit")


def test_what_is_left_of_a_bucket_is_not_rounded_to_the_whole_of_it() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    store = MemoryStore(clock=lambda: at, ids=Ulids(lambda: 0, bytes))
    store.put_pool(pool("web", rate="1/h", burst=15), actor="test")
    limit = Limit("pool", "web", rate=Rate(1, timedelta(hours=1)), burst=15)
    store.permit(1, [Need(limit, tokens=1)], ttl=TTL)
    at += timedelta(minutes=30)
    with Client(store) as client, served(client) as http:
        found = row(http, "pool-web")

    assert "3 % · 14.5 of 15 tokens left" in found


def test_a_pool_that_nobody_uses_has_room_and_one_without_a_free_slot_has_none() -> None:
    store = memory_store()
    for name in ("idle", "full"):
        store.put_pool(pool(name, max_in_flight=4), actor="test")
    slots(store, "full", "", 4)
    node = store.register_node("a")
    store.beat(node, '{"limits": {"pool/full": "slots"}, "queues": {"pool/full": 7}}')
    with Client(store) as client, served(client) as http:
        idle, full = row(http, "pool-idle"), row(http, "pool-full")

    assert "0 % · 0 of 4 in flight" in idle
    assert idle.endswith("has room")
    assert full.endswith("at its limit 7 jobs wait on nodes")


@pytest.mark.parametrize("how", ["silent", "stopped"])
def test_what_a_node_that_is_gone_waited_for_is_not_told(how: str) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = MemoryStore(clock=lambda: now[0], ids=Ulids(lambda: 0, bytes))
    store.put_pool(pool("web", max_in_flight=4), actor="test")
    store.put_lane(lane("orders", pool="web", max_in_flight=2), actor="test")
    waits = '"limits": {"pool/web": "slots", "lane/orders": "slots"}, "queues": {"pool/web": 7}'
    node = store.register_node("a")
    store.beat(node, f"{{{waits}}}")
    with Client(store) as client, served(client) as http:
        before, page = row(http, "pool-web"), http.get("/pools").text
    if how == "stopped":
        store.beat(node, f'{{{waits}, "stops": true}}')
    else:
        now[0] += ALIVE
    with Client(store) as client, served(client) as http:
        after, page_after = row(http, "pool-web"), http.get("/pools").text

    assert before.endswith("at its limit 7 jobs wait on nodes")
    assert after.endswith("has room")
    assert page.count("at its limit") == 2
    assert "at its limit" not in page_after


def called(target: str | None, outcome: str, took: float) -> Called:
    return Called(lane="a", sink="http", jobs=1, outcomes={outcome: 1}, took=took, lag=0.0, target=target)


def test_targets_say_how_calls_to_them_went_those_in_trouble_first() -> None:
    store = memory_store()
    store.mark_target(
        "https://down.example", failed=5, ok=0, trip_after=3, open_for=TTL, slow_for=timedelta(0)
    )
    with Client(store) as client, served(client) as http:
        for outcome in ("accepted", "accepted", "tryagain", "throttled", "notcalled"):
            http.node.emit(called("https://up.example", outcome, 0.1))
        http.node.emit(called(None, "accepted", 0.1))
        first, second = row(http, "target-1"), row(http, "target-2")
        page = http.get("/pools").text

    assert first.startswith("https://down.example open 5 failures in a row")
    assert re.search(rf"({NONE} ){{4}}tried again in \d", first)
    assert re.fullmatch(rf"https://up\.example closed 4 1 25\.0 % 1 \d+ ms p99 \d+ ms {NONE}", second)
    assert "of this node alone" in page
    assert 'id="target-3"' not in page


def test_what_is_over_is_not_told_and_a_breaker_on_trial_waits_for_a_job() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    store = MemoryStore(clock=lambda: at, ids=Ulids(lambda: 0, bytes))
    store.mark_target("https://a.example:18443", failed=5, ok=0, trip_after=3, open_for=TTL, slow_for=TTL)
    at += timedelta(hours=1)
    with Client(store) as client, served(client) as http:
        found, page = row(http, "target-1"), http.get("/pools").text

    assert "trial 5 failures in a row" in found
    assert found.endswith("is tried with the next job")
    assert "go slow" not in found
    assert '<span class="nowrap">:18443</span>' in page


def test_a_time_that_ends_counts_no_further_than_its_end() -> None:
    store = memory_store()
    store.mark_target("https://a.example", failed=0, ok=0, trip_after=3, open_for=TTL, slow_for=TTL)
    with Client(store) as client, served(client) as http:
        page = http.get("/pools").text

    assert re.search(r"asked to go slow, ends <time [^>]* data-ago data-ends>in \d min</time>", page)
