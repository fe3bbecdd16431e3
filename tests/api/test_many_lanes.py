"""A store with more lanes than are listed: those left out are counted, known, and said to be left out."""

from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import pytest

from penstock import Client
from penstock.api.events import TOPICS
from penstock.api.stats import MOST_LANES
from penstock.domain.lanes import lane
from penstock.stores.memory import MemoryStore
from tests.api.conftest import memory_store
from tests.api.node import Http, served
from tests.ui.test_empty import words_of

MANY = MOST_LANES + 5
DEADLY, LAST = f"lane-{MANY - 2:03}", f"lane-{MANY - 1:03}"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Return a store with a job that waits in each lane, two in the last, and a dead one before that."""
    store = memory_store()
    for number in range(MANY):
        store.put_lane(lane(f"lane-{number:03}"), actor="test")
    with Client(store) as client:
        client.enqueue_many([{"lane": f"lane-{number:03}"} for number in range(MANY)])
        client.enqueue(LAST)
        hopeless = client.enqueue(DEADLY).id
        client.hold(hopeless, reason="test")
        client.settle(hopeless, "dead", reason="test")
    return store


@pytest.fixture(scope="module")
def crowd(store: MemoryStore) -> Iterator[Http]:
    with Client(store, actor="test") as client, served(client) as http:
        http.node.start()
        yield http


def test_the_overview_sums_up_all_lanes(crowd: Http) -> None:
    words = words_of(crowd, "/")

    assert f"{MANY + 1} pending in all" in words
    assert f"all {MANY} lanes" in words
    assert f"at least 20 of {MANY} lanes stand" in words


def test_what_is_left_out_of_the_lanes_is_not_said_to_be_idle(crowd: Http) -> None:
    words = words_of(crowd, "/lanes")

    assert f"and {MANY - MOST_LANES} lanes more: penstock lanes list" in words
    assert "idle" not in words
    assert f"and {MANY - MOST_LANES} lanes more" in words_of(crowd, "/pools")


@pytest.mark.parametrize("path", ["/history?lane={}", "/groups?show=all&lane={}", "/audit?lane={}"])
def test_a_lane_that_is_not_listed_is_known(crowd: Http, path: str) -> None:
    page = crowd.get(path.format(LAST)).text

    assert "nknown lane" not in page
    assert f"<option selected>{LAST}</option>" in page
    assert f"and {MANY - MOST_LANES - 1} lanes more: name one" in page


@pytest.mark.parametrize("path", ["/history?lane=lane-2o4", "/groups?show=all&lane=lane-2o4"])
def test_a_lane_that_nobody_knows_may_be_meant_for_one_that_is_not_listed(crowd: Http, path: str) -> None:
    assert f'Unknown lane "lane-2o4"; did you mean {LAST}, lane-124, lane-024? ' in unescape(
        words_of(crowd, path)
    )


def test_the_page_of_a_lane_that_is_not_listed_has_its_figures(crowd: Http) -> None:
    assert "2 pending in all" in words_of(crowd, f"/lanes/{LAST}")
    assert "2 jobs wait: at 5/s" in words_of(crowd, f"/lanes/{LAST}/effect?rate=5/s")
    assert crowd.get("/lanes/nobody/effect?rate=5/s").status_code == 422


def test_a_lane_with_dead_letters_is_listed_whatever_its_name(crowd: Http) -> None:
    stats = crowd.get("/api/stats").json()

    assert len(stats["lanes"]) == MOST_LANES
    assert [each["dead"] for each in stats["lanes"] if each["lane"] == DEADLY] == [1]
    assert f"{DEADLY} 1" in words_of(crowd, "/dead")


def test_sums_are_over_all_lanes(crowd: Http) -> None:
    stats = crowd.get("/api/stats").json()
    totals = stats["totals"]

    assert stats["more_lanes"] == MANY - MOST_LANES
    assert (totals["lanes"], totals["behind"], totals["pending"], totals["dead"]) == (MANY, MANY, MANY + 1, 1)
    assert totals["due_capped"]  # of most lanes nobody counted what is due


def test_through_an_api_the_counts_are_of_all_lanes(crowd: Http) -> None:
    with Client(crowd.node.url) as remote:
        assert remote.counts() == crowd.node.client.counts()


def test_listeners_hear_of_lanes_that_are_not_listed(crowd: Http) -> None:
    def told() -> Mapping[str, Any]:
        return TOPICS["lanes"](crowd.node.client)

    before = told()
    assert len(before["lanes"]) == MOST_LANES
    assert LAST not in before["lanes"]
    assert (before["more_lanes"], before["more"]["pending"]) == (MANY - MOST_LANES, MANY - MOST_LANES + 1)
    made = crowd.node.client.enqueue(LAST)
    assert told() != before
    crowd.node.client.cancel(made.id, reason="test")
