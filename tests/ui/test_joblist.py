"""The list of jobs: its columns, its time range, how many jobs there are."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock import Client
from penstock.domain.filters import JobQuery, Page
from penstock.domain.lanes import lane
from penstock.domain.queries import job_query
from penstock.domain.states import JobState
from penstock.stores.sqlite.store import SqliteStore
from penstock.ui import counting
from penstock.ui.columns import USUAL, chosen, said
from penstock.ui.counting import Count, count_of, count_to_the_cap
from penstock.ui.ranges import RANGES, ranged
from tests.api.node import Http, served
from tests.ui.test_empty import words_of


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Http]:
    """A node with 60 jobs of a lane in groups, and 5 of another."""
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store)) as http:
        store.migrate()
        store.put_lane(lane("orders", mode="block_on_error"), actor="test")
        store.put_lane(lane("mail"), actor="test")
        client = http.node.client
        client.enqueue_many(
            {"lane": "orders", "group": f"g{n % 3}", "sequence": n + 999, "key": f"k{n}", "payload": {"n": n}}
            for n in range(60)
        )
        client.enqueue_many({"lane": "mail", "payload": {"n": n}, "tenant": "acme"} for n in range(5))
        yield http


def heads(http: Http, path: str) -> list[str]:
    return re.findall(r'<th scope="col"(?: class="num")?>([^<]*)</th>', http.get(path).text)


def test_a_list_shows_the_usual_columns_with_the_sequence_or_those_in_the_address(busy: Http) -> None:
    usual = ["Job", "State", "Lane", "Group", "Sequence", "Due", "Attempts", "Reason, error"]
    assert heads(busy, "/jobs") == heads(busy, "/jobs?col=nonsense") == usual
    assert "1058" in words_of(busy, "/jobs?q=lane:orders")
    assert heads(busy, "/jobs?col=tenant&col=state&col=key") == ["Job", "State", "Tenant", "Key"]
    assert "acme" in words_of(busy, "/jobs?q=lane:mail&col=tenant")
    assert chosen([]) == USUAL
    assert said(USUAL) == ()


def test_columns_stay_while_the_filter_changes_and_pages_are_turned(busy: Http) -> None:
    page = busy.get("/jobs?q=lane:orders&col=state&col=key").text
    links = [address.replace("&amp;", "&") for address in re.findall(r'href="(/jobs\?[^"]*|\?[^"]*)"', page)]
    kept = [parse_qs(urlsplit(each).query).get("col") for each in links]

    assert kept.count(["state", "key"]) == len(kept) - 1  # all but the way back to the usual ones
    assert any("after=" in each for each in links)
    assert page.count('<input type="hidden" name="col" value="key">') == 2  # of the filter, of the time range


@pytest.mark.parametrize("term", [term for term, _ in RANGES])
def test_a_time_range_takes_the_place_of_the_one_before(term: str) -> None:
    line = ranged('lane:orders run_at<2h created>=2026-01-01T00:00:00Z error:"run<1h"', {"range": term})
    assert line == f'lane:orders error:"run<1h" {term}'
    assert ranged(line, {"range": ""}) == 'lane:orders error:"run<1h"'


def test_a_time_range_between_two_times_is_in_utc() -> None:
    asked = {"range": "run<0s", "about": "created", "from": "2026-01-01T10:00", "to": "2026-01-02T00:00:00Z"}
    assert ranged("lane:a", asked) == "lane:a created>=2026-01-01T10:00Z created<2026-01-02T00:00:00Z"
    assert ranged("lane:a", {"range": "id:x", "about": "lane", "from": "b"}) == "lane:a"


def test_the_time_range_goes_into_the_filter_line_and_the_address(busy: Http) -> None:
    asked = busy.get("/jobs?q=lane:mail&col=state&range=created<1h&about=created&from=&to=")
    assert asked.status_code == 303
    told = urlsplit(asked.headers["location"])
    assert (told.path, parse_qs(told.query)) == ("/jobs", {"q": ["lane:mail created<1h"], "col": ["state"]})
    assert "5 jobs match" in words_of(busy, asked.headers["location"])
    between = busy.get("/jobs?q=lane:mail&range=&about=created&from=2020-01-01T00:00&to=2020-01-02T00:00")
    assert "No job like that" in words_of(busy, between.headers["location"])
    wrong = busy.get("/jobs?q=lnae:a&range=created<1h").headers["location"]
    assert "did you mean lane?" in words_of(busy, wrong)
    unreadable = busy.get('/jobs?q=error:"a&range=created<1h').headers["location"]
    assert "this quote is not closed" in words_of(busy, unreadable)


def test_a_list_says_how_many_there_are_without_counting_beyond_what_it_shows(busy: Http) -> None:
    assert "65 jobs" in words_of(busy, "/jobs")
    assert "60 jobs match" in words_of(busy, "/jobs?q=lane:orders state:pending")
    assert "No job like that" in words_of(busy, "/jobs?q=lane:orders state!=pending")
    assert "20 jobs match" in words_of(busy, "/jobs?q=lane:orders group:g1")
    assert "1 job matches" in words_of(busy, "/jobs?q=key:k7")
    assert "50+ jobs match" in words_of(busy, "/jobs?q=lane:orders created<1h")
    assert "60 jobs match" in words_of(busy, "/jobs/count?q=lane:orders created<1h")
    assert "3 jobs match" in words_of(busy, "/jobs/count?q=payload.n>56")


def test_a_filter_that_is_costly_is_counted_on_demand_and_others_at_once(busy: Http) -> None:
    def trigger(path: str) -> list[str]:
        return re.findall(r'hx-get="/jobs/count\?[^"]*"[^>]*?(load)?(?:, click")?>', busy.get(path).text)

    assert trigger("/jobs?q=created<1h") == ["load"]
    assert trigger("/jobs?q=payload.n>=0") == [""]
    assert trigger("/jobs?q=lane:orders") == []


def test_nobody_counts_beyond_the_cap(busy: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    client, store = busy.node.client, busy.node.client.store
    client.enqueue_many({"lane": "mail", "payload": {"m": n}} for n in range(1200))
    query = job_query({"filter": "created<1h"}, now=store.now)
    monkeypatch.setattr(counting, "MOST", 1000)

    assert count_to_the_cap(store, query) == Count(1000, more=True)
    assert count_to_the_cap(store, job_query({"filter": "payload.m<700"}, now=store.now)) == Count(700)


def test_lanes_and_states_are_counted_by_the_counters_alone() -> None:
    counts = {("a", JobState.PENDING): 70_000, ("b", JobState.PENDING): 3, ("a", JobState.DEAD): 4}
    shown = Page([], "more")

    def of(**asked: object) -> Count:
        return count_of(JobQuery(**asked), shown, lambda: counts)  # type: ignore[arg-type]

    assert of() == Count(70_007)
    assert of(lane="a") == Count(70_004)
    assert of(lane="a", states=frozenset({JobState.DEAD}), line="lane:a state:dead") == Count(4)
    assert of(group="g") == Count(0, more=True)


def test_chosen_columns_stand_on_one_line_with_the_whole_in_the_title(busy: Http) -> None:
    assert '<table class="rows" data-keep-rows>' in busy.get("/jobs").text
    page = busy.get("/jobs?q=lane:mail&col=mode&col=tenant").text
    assert '<table class="rows lined" data-keep-rows>' in page
    assert '<td data-name="Mode" class="" title="immediate">immediate</td>' in page


def test_group_and_sequence_of_an_immediate_job_are_shown_as_given_and_order_nothing(busy: Http) -> None:
    made = busy.node.client.enqueue("mail", {"n": 1}, group="letters", sequence=7, key="only").id
    page = busy.get("/jobs?q=key:only").text

    assert 'title="letters: it does not order an immediate job"><span class="faint">letters</span>' in page
    assert 'title="7: it does not order an immediate job"><span class="faint">7</span>' in page
    facts = words_of(busy, f"/jobs/{made}")
    assert "group letters it does not order an immediate job" in facts
    assert "sequence 7 it does not order an immediate job" in facts
    ordered = busy.get("/jobs?q=key:k7").text
    assert ">g1</a>" in ordered
    assert "does not order" not in ordered
