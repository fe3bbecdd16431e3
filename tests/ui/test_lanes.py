"""What the list of lanes, and the page of one, say beyond depths: breaker, next fire, pool use, errors."""

import re
from datetime import timedelta
from html import unescape

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.limits import Limit
from penstock.domain.pools import pool
from penstock.domain.settlement import NODE_ACTOR
from penstock.domain.states import Verb
from penstock.ports.events import Called
from penstock.ports.flow import Need
from penstock.ui.screens.lanes import TRAIL
from penstock.ui.words import NONE
from tests.api.conftest import memory_store
from tests.api.node import Http, served

TTL = timedelta(minutes=5)


def shown(http: Http, path: str, *, part: str = ".*") -> str:
    """Return the text of a page, or of what the part matches of it."""
    page = http.get(path, headers={"HX-Request": "true"}).text
    [found] = re.findall(part, page, re.DOTALL)[:1]
    found = re.sub(r"<form.*?</form>|<button.*?</button>", "", found, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found)).split())


def row(http: Http, name: str) -> str:
    return shown(http, "/lanes", part=rf'<tr id="lane-{name}".*?</tr>')


def test_the_list_says_what_the_breaker_of_each_lane_is_and_when_it_next_fires() -> None:
    store = memory_store()
    for name in ("down", "up"):
        store.put_lane(lane(name, sink="http", target=f"https://{name}.example/hook"), actor="test")
    store.put_lane(lane("none"), actor="test")
    store.mark_target(
        "https://down.example", failed=5, ok=0, trip_after=3, open_for=TTL, slow_for=timedelta(0)
    )
    client = Client(store)
    client.enqueue("up", {}, run_at=store.now() + timedelta(hours=3))
    client.enqueue("down", {})
    with client, served(client) as http:
        down, up, none = row(http, "down"), row(http, "up"), row(http, "none")

    assert "breaker open , tried again in 5 min" in down
    assert " now empty: stands oldest" in down
    assert "breaker closed" in up
    assert up.endswith("in 3 h")
    assert none.endswith(NONE)
    assert "breaker" not in none


def test_the_list_has_the_kill_switch() -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    with Client(store) as client, served(client) as http:
        assert 'action="/lanes/orders/disable"' in http.get("/lanes").text
        http.request("POST", "/lanes/orders/disable", data={"next": "/lanes"})
        assert store.lanes()["orders"]["enabled"]  # nobody said why
        fields = {"next": "/lanes", "reason": "on fire"}
        answer = http.request("POST", "/lanes/orders/disable", data=fields)

        assert store.audit_log(limit=1).entries[0].reason == "on fire"
        assert answer.headers["location"] == "/lanes"
        assert not store.lanes()["orders"]["enabled"]
        page = http.get("/lanes").text
        assert ('action="/lanes/orders/enable"' in page, 'action="/lanes/orders/disable"' in page) == (
            True,
            False,
        )


def called(outcome: str, error: str | None) -> Called:
    return Called(
        lane="orders", sink="http", jobs=1, outcomes={outcome: 1}, took=0.1, lag=0.0, error=error
    )  # fmt: skip


def test_a_lane_says_how_full_its_pool_is_what_calls_failed_of_and_that_its_target_is_left_alone() -> None:
    store = memory_store()
    store.put_pool(pool("web", max_in_flight=4, key="tenant"), actor="test")
    store.put_lane(lane("orders", sink="http", target="https://down.example/x", pool="web"), actor="test")
    store.mark_target(
        "https://down.example", failed=5, ok=0, trip_after=3, open_for=TTL, slow_for=timedelta(0)
    )
    for key, slots in (("acme", 4), ("zeta", 1)):
        store.permit(1, [Need(Limit("pool", "web", key, max_in_flight=4), slots=slots)], ttl=TTL)
    with Client(store) as client, served(client) as http:
        for error in (
            "HTTP 503: card 4711 is declined",
            "HTTP 503: card 4712 is declined",
            "connection refused",
        ):
            http.node.emit(called("tryagain", error))
        http.node.emit(called("accepted", None))
        page = shown(http, "/lanes/orders")
        misses = shown(http, "/lanes/orders", part=r'<ul class="lines" id="misses">.*?</ul>')

    assert "https://down.example: the breaker is open after 5 failures in a row, tried again in 5 min" in page
    assert "100 % of the fullest tenant · 5 in flight in all" in page
    assert "1 of 2 keys at the limit: acme" in page
    assert misses.startswith("2 HTTP 503 retry 1 ")
    assert "declined" not in page


def test_who_changed_a_setting_is_not_lost_among_what_nodes_did() -> None:
    store = memory_store()
    store.put_lane(lane("orders", rate="5/s"), actor="ann")
    client = Client(store)
    job = client.enqueue("orders", {}, run_at=store.now() + timedelta(hours=1)).id
    for _ in range(TRAIL // 2):
        for verb in (Verb.HOLD, Verb.RELEASE):
            store.operate(verb, [job], actor=NODE_ACTOR, reason="it is to be so")
    with client, served(client) as http:
        page = shown(http, "/lanes/orders", part=r'<table class="rows settings">.*?</table>')

    assert "rate 5/s database ann, " in page


def test_a_lane_without_pool_or_trouble_says_nothing_of_them() -> None:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    with Client(store) as client, served(client) as http:
        page = http.get("/lanes/orders").text

    assert 'id="pool-use"' not in page
    assert 'id="target"' not in page
    assert "No dead letter, and no call failed lately" in page


def test_a_paused_lane_does_not_say_when_it_fires_and_held_jobs_have_a_number() -> None:
    store = memory_store()
    store.put_lane(lane("orders", retry=["0s"]), actor="test")
    client = Client(store)
    client.enqueue("orders", {}, run_at=store.now() + timedelta(minutes=55))
    client.hold(client.enqueue("orders", {}).id, reason="odd")
    until = store.now() + timedelta(hours=4)
    store.pause_lane("orders", paused=True, actor="ann", reason="they move", until=until)
    with client, served(client) as http:
        listed, page = row(http, "orders"), shown(http, "/lanes/orders")

    assert listed.endswith("paused")
    assert " 0 1 held " in listed
    assert "1 attempt; then it is dead." in page
