"""Pages with nothing on them say why, and what to do."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.stores.sqlite.store import SqliteStore
from tests.api.node import Http, served


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Http]:
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store)) as http:
        store.migrate()
        yield http


def words_of(http: Http, path: str) -> str:
    """Return what the middle of a page says."""
    page = http.get(path, headers={"HX-Request": "true"})
    assert page.status_code == 200, page.text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.text))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "Your first job"),
        ("/lanes", "No lane yet"),
        ("/jobs", "No job yet"),
        ("/jobs/new", "There is no lane yet"),
        ("/groups", "No ordered group has anything to do"),
        ("/groups?show=blocked", "No group is blocked"),
        ("/groups?group=zz", "No group of that name has anything to do"),
        ("/dead", "No dead letter"),
        ("/pools", "No target is in trouble or was called lately"),
        ("/operations", "No bulk operation yet"),
        ("/nodes", "No node is alive"),
        ("/history", "Nothing ended like that"),
        ("/audit", "Nobody has done anything by hand here yet"),
        ("/access", "No key yet"),
    ],
)
def test_an_empty_page_says_so(bare: Http, path: str, says: str) -> None:
    assert says in words_of(bare, path)
    assert "Limits of lanes" not in words_of(bare, "/pools")


def test_a_list_for_a_name_that_nobody_knows_says_which_is_near(bare: Http) -> None:
    bare.node.client.store.put_lane(lane("orders"), actor="test")
    bare.node.figures.forget()

    for path in ("/jobs?q=lane:oders", "/groups?lane=oders", "/history?lane=oders"):
        assert "did you mean orders?" in words_of(bare, path)
    assert "No ordered job of group A-1" in words_of(bare, "/jobs?q=lane:orders+group:A-1")
    assert "Show all jobs" in words_of(bare, "/jobs?q=lane:orders")


def test_part_of_a_name_leads_to_the_groups_that_begin_like_it(bare: Http) -> None:
    client = bare.node.client
    for name in ("orders", "pay"):
        client.store.put_lane(lane(name, mode="block_on_error"), actor="test")
        for group in ("acme", "acme-1", "acne", "zeta"):
            client.enqueue(name, {}, group=group)
    bare.node.figures.forget()

    both = words_of(bare, "/groups?group=%20acm")
    assert "begin like it: acme orders , acme-1 orders , acme pay , acme-1 pay" in both
    one = words_of(bare, "/groups?group=acm&lane=pay")
    assert "begin like it: acme pay , acme-1 pay" in one
    assert 'href="/groups?lane=pay&amp;group=acme-1"' in bare.get("/groups?group=acm").text
    assert "begin like" not in words_of(bare, "/groups?group=acme")
    assert "begin like" not in words_of(bare, "/groups?group=cme")

    def offered(begin: str) -> list[tuple[str, str]]:
        found = bare.get("/ui/groups", params={"begin": begin}).json()["groups"]
        return [(one["group"], one["lane"]) for one in found]

    whole = [("acme", "orders"), ("acme", "pay")]
    assert offered(" acme ") == [*whole, ("acme-1", "orders"), ("acme-1", "pay")]
    assert offered("zet") == [("zeta", "orders"), ("zeta", "pay")]
    assert offered("a") == offered("") == offered("cme") == []
    assert bare.get("/ui/groups", params={"begin": "a\0b"}).status_code == 422


def test_an_operation_that_was_stopped_leads_to_what_is_left(bare: Http) -> None:
    client = bare.node.client
    client.store.put_lane(lane("orders"), actor="test")
    client.enqueue("orders", {"n": 1})
    begun = client.start("hold", "lane:orders state:pending", reason="look")
    assert "Go on with what is left" not in words_of(bare, f"/operations/{begun.id}")
    client.stop(begun.id, reason="wrong")

    page = bare.get(f"/operations/{begun.id}").text
    [link] = re.findall(r'href="(/bulk\?verb=hold[^"]*)"', page)
    assert "Hold 1 job" in words_of(bare, link.replace("&amp;", "&"))
