"""What pages show to whom: no button for what somebody may not do, no word that he may not read."""

import json
import re
from collections.abc import Callable

import pytest

from penstock import Client
from tests.api.node import Http, served
from tests.security.conftest import Bearer, csrf_of, log_in, make_user

Keys = Callable[..., Bearer]
POSTS = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]*)"')
MAKES = re.compile(r'href="(/(?:jobs|lanes)/new[^"]*)"')


@pytest.mark.parametrize("path", ["/", "/lanes", "/jobs", "/lanes/orders"])
def test_a_viewer_is_shown_nothing_that_would_be_refused(locked: Http, key: Keys, path: str) -> None:
    locked.node.client.enqueue("orders", {"n": 1})
    locked.node.figures.forget()
    page = locked.get(path, headers=key("viewer")).text

    assert set(POSTS.findall(page)) <= {"/logout"}
    assert MAKES.findall(page) == []
    assert 'data-may="read "' in page
    assert "/store/pause" in locked.get("/", headers=key("operator")).text


def test_the_first_page_offers_only_what_may_be_done(sqlite_url: str) -> None:
    """A lane is made by those who may make lanes, of a demonstration too."""
    with Client(sqlite_url) as client, served(client, login=True) as http:
        client.store.delete_lane("orders", actor="test")
        for role in ("admin", "operator"):
            make_user(client.store, role, role)
        http.node.start()
        assert "/demo" in http.get("/", headers=log_in(http, "admin")).text
        session = log_in(http, "operator")
        page = http.get("/", headers=session).text
        assert "Your first job" in page
        assert "/demo" not in page
        form = {"csrf": csrf_of(session)}
        assert http.request("POST", "/demo", data=form, headers=session).status_code == 303
        assert client.store.lanes() == {}


def test_filters_that_look_into_payloads_are_on_no_page_of_a_viewer(locked: Http, key: Keys) -> None:
    client = locked.node.client
    operation = client.start("hold", "lane:orders payload.card:4242", reason="look")
    pages = ("/", "/audit", "/audit?by=all", "/audit/export", "/operations", f"/operations/{operation.id}")
    for path in pages:
        assert "4242" not in locked.get(path, headers=key("viewer")).text, path
        assert "4242" in locked.get(path, headers=key("operator")).text, path


def test_an_export_of_the_audit_is_what_the_page_shows_to_the_last_row(locked: Http, key: Keys) -> None:
    store = locked.node.client.store
    for n in range(601):
        store.pause_lane("orders", paused=n % 2 == 0, actor="ann", reason=f"round {n}")
    store.pause_store(paused=True, actor="ann", reason="not about the lane")

    def exported(line: str) -> list[str]:
        text = locked.get(f"/audit/export{line}", headers=key("viewer")).text
        return [json.loads(row)["reason"] for row in text.splitlines()]

    assert set(exported("?lane=orders")) >= {f"round {n}" for n in range(601)}
    assert "not about the lane" not in exported("?lane=orders")
    assert "not about the lane" in exported("")
