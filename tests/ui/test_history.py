"""What ended: by day and lane, what it came to, and the way to replay it."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.ports.store import Ask
from penstock.stores.sqlite.store import SqliteStore
from penstock.ui.screens.history import _kept, _line, _recent, _summary
from tests.api.node import Http, served
from tests.ui.test_empty import words_of

NOTHING = {"lane": "", "state": "", "within": "", "day": ""}


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Http]:
    """A node whose lane has three jobs that succeeded and one that did not."""
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store)) as http:
        store.migrate()
        store.put_lane(lane("orders"), actor="test")
        client = http.node.client
        made = [client.enqueue("orders", {"n": n}).id for n in range(4)]
        store.claim(Ask(lane="orders", node=1))
        for job in made[:3]:
            client.report(job, 1, "succeeded")
        client.report(made[3], 1, "failed", error="HTTP 422", retryable=False)
        yield http


def test_history_says_what_each_lane_came_to_and_what_the_page_shows(ended: Http) -> None:
    said = words_of(ended, "/history")
    assert "orders 4 3 1 0 0 0 75 %" in said
    assert re.search(r"On this page: 3 succeeded, 1 dead; half of them took [\d.]+ m?s or less", said)
    assert "What is kept" not in words_of(ended, "/history?lane=nobody")


def test_what_the_filter_finds_is_replayed_from_there(ended: Http) -> None:
    page = ended.get("/history?lane=orders&within=1d").text
    [link] = re.findall(r'href="(/bulk[^"]*)"', page)
    asked = parse_qs(urlsplit(link.replace("&amp;", "&")).query)
    assert asked == {"verb": ["retry"], "q": ["lane:orders finished<1d state:dead,cancelled,expired"]}
    assert "Replay 1 job" in words_of(ended, link.replace("&amp;", "&"))
    assert "Replay all dead, cancelled, expired…" in words_of(ended, "/history?lane=orders")
    assert "Replay all dead…" in words_of(ended, "/history?state=dead")


def test_what_cannot_be_replayed_is_neither_offered_nor_counted(ended: Http) -> None:
    """Jobs that succeeded are there, and retry refuses every one of them."""
    assert "HTTP 422" not in words_of(ended, "/history?state=succeeded")
    assert "/bulk" not in ended.get("/history?state=succeeded").text
    assert "/bulk" not in ended.get("/history?state=skipped").text
    both = words_of(ended, "/bulk?verb=retry&q=state:succeeded,dead")
    assert "without those that are succeeded: retry does nothing to them" in both
    assert "Replay 1 job" in both
    alone = words_of(ended, "/bulk?verb=retry&q=state:succeeded")
    assert "No job matches now" in alone
    assert "without those" not in words_of(ended, "/bulk?verb=retry&q=state:dead")
    asked = {"filter": "state:succeeded,dead", "reason": "r"}
    counted = ended.post("/api/replay", asked).json()
    assert (counted["dry_run"], counted["matched"], counted["states"]) == (True, 1, {"dead": 1})
    assert ended.post("/api/replay", asked | {"filter": "state:succeeded"}).json()["matched"] == 0


def test_history_is_read_day_by_day(ended: Http) -> None:
    today = ended.node.client.store.now().date()
    assert "orders" in words_of(ended, f"/history?day={today}")
    assert "Nothing ended like that" in words_of(ended, f"/history?day={today - timedelta(days=2)}")
    assert "HTTP 422" in words_of(ended, "/history?day=nonsense")  # every day
    assert "HTTP 422" in words_of(ended, "/history?day=9999-12-31")
    shown = ended.get("/history?lane=orders&within=1h").text
    yesterday = f"/history?lane=orders&amp;day={today - timedelta(days=1)}"
    assert f'href="{yesterday}"' in shown


def test_a_day_is_one_of_utc_and_takes_the_place_of_a_span() -> None:
    line = _line(NOTHING | {"lane": "a", "within": "1h", "day": "2026-02-28"})
    assert line == "lane:a finished>=2026-02-28T00:00:00Z finished<2026-03-01T00:00:00Z"
    assert _line(NOTHING | {"within": "1h"}) == "finished<1h"
    names = dict(_recent(date(2026, 3, 1)))
    assert [*names][:2] == ["2026-03-01", "2026-02-28"]
    assert (names["2026-03-01"], names["2026-02-27"]) == ("today", "Fri 27 Feb")


def test_lanes_with_most_come_first_and_what_has_not_ended_does_not_count() -> None:
    counts = {
        ("a", JobState.SUCCEEDED): 1, ("b", JobState.SUCCEEDED): 90, ("b", JobState.EXPIRED): 1,
        ("c", JobState.PENDING): 5, ("d", JobState.DEAD): 0,
    }  # fmt: skip
    assert [(row["lane"], row["total"], row["well"]) for row in _kept(counts, "")] == [
        ("b", 91, 98.9), ("a", 1, 100.0)
    ]  # fmt: skip
    assert [row["lane"] for row in _kept(counts, "a")] == ["a"]


def test_days_stand_apart_where_there_are_several(ended: Http, tmp_path: Path) -> None:
    assert 'class="day"' not in ended.get("/history").text
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as connection, connection:
        connection.execute("UPDATE penstock_history SET finished_at = finished_at - 86400000000")
    assert ended.get("/history").text.count('class="day"') == 2


def test_what_is_on_a_page_is_summed_up() -> None:
    shown = [{"state": "dead", "duration_ms": n} for n in (5, 1, 9, None)]
    assert _summary(shown) == {"outcomes": [("dead", 4)], "median": 5, "most": 9}
    assert _summary([]) == {"outcomes": [], "median": None, "most": None}
