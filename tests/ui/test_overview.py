"""What the overview says of what died lately, of targets and of what was recovered."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.ulid import Ulids
from penstock.ports.clock import SystemClock
from penstock.ports.events import TargetChanged
from penstock.ports.store import Ask
from penstock.stores.memory import MemoryStore
from penstock.ui.screens import overview
from penstock.ui.words import NONE
from tests.api.conftest import memory_store
from tests.api.node import Http, served

TTL = timedelta(minutes=5)


def shown(http: Http) -> str:
    """Return the text of the page."""
    page = http.get("/", headers={"HX-Request": "true"}).text
    page = re.sub(r"<form.*?</form>|<button.*?</button>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def store_with_a_job() -> MemoryStore:
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    Client(store).enqueue("orders", {})
    return store


def test_dead_letters_are_those_of_the_last_day_with_all_of_them_beside() -> None:
    clock = [SystemClock().now()]
    ids = Ulids(lambda: int(clock[0].timestamp() * 1000), bytes)
    store = MemoryStore(clock=lambda: clock[0], ids=ids)
    store.put_lane(lane("orders"), actor="test")
    client = Client(store)
    for jobs in (2, 3):
        made = [client.enqueue("orders", {"n": n}).id for n in range(jobs)]
        store.claim(Ask(lane="orders", node=1))
        for id_ in made:
            client.report(id_, 1, "failed", error="no", retryable=False)
        clock[0] += timedelta(hours=23)
    with served(client) as http:
        page = shown(http)

    assert "Dead letters, 24 h 3 5 in all" in page


def test_targets_are_those_that_all_nodes_leave_alone_not_what_this_one_heard_last() -> None:
    store = store_with_a_job()
    store.mark_target("https://a.example", failed=9, ok=0, trip_after=3, open_for=TTL, slow_for=timedelta(0))
    store.mark_target("https://b.example", failed=0, ok=0, trip_after=3, open_for=TTL, slow_for=TTL)
    store.mark_target("https://c.example", failed=1, ok=0, trip_after=3, open_for=TTL, slow_for=timedelta(0))
    store.pause_target("https://d.example", paused=True, actor="ann", reason="they move")
    with Client(store) as client, served(client) as http:
        http.node.emit(TargetChanged(target="https://closed.example", state="open", failures=9, wait=TTL))
        page = shown(http)

    assert re.search(r"open https://a\.example tried again in \d min 9 failures in a row", page)
    assert re.search(r"slow https://b\.example ends in \d min it asked to go slow", page)
    assert "paused https://d.example ann: they move" in page
    assert "c.example" not in page
    assert "closed.example" not in page


def test_dead_letters_are_counted_up_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "DIED_CAP", 2)
    store = memory_store()
    store.put_lane(lane("orders"), actor="test")
    client = Client(store)
    made = [client.enqueue("orders", {}).id for _ in range(3)]
    store.claim(Ask(lane="orders", node=1))
    for id_ in made:
        client.report(id_, 1, "failed", error="no", retryable=False)
    with served(client) as http:
        assert "Dead letters, 24 h 2+ 3 in all" in shown(http)


def test_all_groups_are_all_groups() -> None:
    with Client(store_with_a_job()) as client, served(client) as http:
        assert 'href="/groups?show=all">all groups' in http.get("/").text


def test_what_nodes_recovered_lately_is_said_and_what_was_long_ago_is_not() -> None:
    store = store_with_a_job()
    for ago, lanes, fates in (
        (1, ["orders"], {"unknown": 2}),
        (3, ["mail", "orders"], {"unknown": 1, "not_started": 4}),
        (20, ["old"], {"unknown": 90}),
    ):
        at = (store.now() - timedelta(minutes=ago)).isoformat()
        told = {"recovered": {"at": at, "lanes": lanes, "fates": fates}}
        store.beat(store.register_node(f"host-{ago}"), json.dumps(told))
    with Client(store) as client, served(client) as http:
        page = shown(http)

    assert re.search(
        r"Recovered 7 jobs that a node or an executor left, the last (60 s|1 min) ago : 4 not", page
    )
    assert "4 not sent yet, 3 of unknown fate; of orders , mail ." in page
    assert "Recovered 97" not in page


def test_where_nothing_was_recovered_nothing_is_said() -> None:
    with Client(store_with_a_job()) as client, served(client) as http:
        assert 'id="recovered"' not in http.get("/").text


def test_jobs_behind_a_blocked_group_are_not_nothing() -> None:
    store = memory_store()
    store.put_lane(lane("orders", mode="block_on_error"), actor="test")
    client = Client(store)
    made = [client.enqueue("orders", {"n": n}, group="g").id for n in range(5)]
    store.claim_groups(Ask(lane="orders", node=1))
    client.report(made[0], 1, "failed", error="no", retryable=False)
    with served(client) as http:
        page, of_lane = shown(http), http.get("/lanes/orders").text

    assert f"Oldest due {NONE} nothing is free to go: 4 wait behind blocked groups" in page
    assert "nothing is free to go: 4 behind blocked groups" in of_lane
    with Client(memory_store()) as idle, served(idle) as http:
        idle.store.put_lane(lane("orders"), actor="test")
        idle.enqueue("orders", {}, run_at=idle.store.now() + timedelta(days=1))
        assert f"Oldest due {NONE} nothing is due" in shown(http)
