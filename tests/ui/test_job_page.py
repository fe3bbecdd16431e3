"""One job: what came back of each try, its payload in folds, its trace, commands to copy."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, expect

from penstock import Client, __version__
from penstock.domain.lanes import lane
from penstock.domain.payloads import Json
from penstock.ports.events import NodeStarted
from penstock.ports.store import Ask
from penstock.stores.sqlite.store import SqliteStore
from penstock.ui.answers import Answer, answer_of
from penstock.ui.folding import MOST_LINES, folded
from penstock.ui.screens.job import MOST_SHOWN
from penstock.ui.site import SERVED_BY, tag_of
from penstock.ui.words import pretty
from tests.api.node import Http, served
from tests.security.conftest import PASSWORD, make_user
from tests.ui.browsing import tab
from tests.ui.test_empty import words_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Http]:
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store)) as http:
        store.migrate()
        store.put_lane(lane("orders", retry=["0s", "0s", "0s"]), actor="test")
        yield http


def text_of(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup))


@given(JSON.filter(lambda value: isinstance(value, dict | list) and value))
def test_the_text_of_folds_is_the_json_itself(value: object) -> None:
    text = json.dumps(value)
    shown = folded(text)
    assert shown is not None
    assert text_of(shown) == pretty(text) + "\n"


def test_what_is_no_json_or_short_or_too_long_is_not_folded() -> None:
    assert folded(None) is folded("17") is folded("[]") is folded("no json, and\ntwo lines") is None
    assert folded(json.dumps(list(range(MOST_LINES)))) is None
    assert folded("[" * 100_000) is None


def test_what_lies_deep_begins_folded_where_there_is_much_of_it() -> None:
    small, large = ({"a": {"b": {"c": list(range(many))}}} for many in (3, 200))
    assert str(folded(json.dumps(small))).count("<details open>") == 4
    shown = str(folded(json.dumps(large)))
    assert (shown.count("<details open>"), shown.count("<details>")) == (2, 2)
    assert 'data-holds="200"' in shown


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("HTTP 422: sku is recalled", Answer(422, "sku is recalled")),
        ("HTTP 503", Answer(503, "")),
        ('200 {"id": 7}', Answer(200, '{"id": 7}')),
        ("202", Answer(202, "")),
        ("no answer within 30 s", Answer(None, "no answer within 30 s")),
        ("2001: a message", Answer(None, "2001: a message")),
        ("", None),
        (None, None),
    ],
)
def test_an_answer_is_told_from_what_is_none(text: str | None, answer: Answer | None) -> None:
    assert answer_of(text) == answer


def test_each_attempt_shows_what_came_back(plain: Http) -> None:
    client = plain.node.client
    job = client.enqueue("orders", {"n": 1}).id
    for number, error in enumerate(("HTTP 503: a bad day <b>", "connection refused"), 1):
        client.store.claim(Ask(lane="orders", node=7))
        client.report(job, number, "failed", error=error)
    client.store.claim(Ask(lane="orders", node=7))
    client.report(job, 3, "succeeded")

    [table] = re.findall(r"<h2>Attempts</h2>.*?</table>", plain.get(f"/jobs/{job}").text, re.DOTALL)
    rows = [
        " ".join(text_of(row.replace("<", " <")).split())
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    ][1:]
    told = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", row) for row in rows]
    assert told == [
        "Attempt 1 failed HTTP 503 a bad day <b> TIME by node 7 next TIME",
        "Attempt 2 failed connection refused TIME by node 7 next TIME",
        "Attempt 3 succeeded – TIME by node 7",  # noqa: RUF001
    ]


def test_a_job_that_was_never_tried_shows_no_attempts(plain: Http) -> None:
    job = plain.node.client.enqueue("orders", {"n": 1}).id
    assert "Attempts" not in re.findall(r"<h2>([^<]*)", plain.get(f"/jobs/{job}").text)


def test_the_trace_of_a_job_is_shown(plain: Http) -> None:
    client = plain.node.client
    carries = client.enqueue("orders", {}, headers={"TraceParent": f"00-{TRACE}-00f067aa0ba902b7-01"}).id
    none = client.enqueue("orders", {}, headers={"traceparent": "nonsense"}).id
    assert f'<code id="trace">{TRACE}</code>' in plain.get(f"/jobs/{carries}").text
    assert 'id="trace"' not in plain.get(f"/jobs/{none}").text


def test_commands_name_the_address_that_the_page_was_asked_by(plain: Http) -> None:
    url = plain.node.url
    assert f"curl {url}/api/jobs -H &#39;Content-Type" in plain.get("/").text.replace("'", "&#39;")
    job = plain.node.client.enqueue("orders", {}).id
    assert f"curl {url}/api/jobs/{job} " in words_of(plain, f"/jobs/{job}")
    behind_tls = plain.get(f"/jobs/{job}", headers={"X-Forwarded-Proto": "https"}).text
    assert f"curl https{url.removeprefix('http')}/api/jobs/{job}<" in behind_tls


def test_commands_show_a_key_where_one_is_wanted(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store), login=True) as http:
        store.migrate()
        make_user(store)
        store.put_lane(lane("orders"), actor="test")
        http.request("POST", "/login", data={"name": "ada", "password": PASSWORD})
        first, shows_a_key = unescape(words_of(http, "/")), '-H "Authorization: Bearer $PENSTOCK_API_KEY"'
        assert f"curl {http.node.url}/api/jobs {shows_a_key}" in first
        assert "penstock access create" in first
        job = http.node.client.enqueue("orders", {}).id
        assert f"/api/jobs/{job} {shows_a_key}" in unescape(words_of(http, f"/jobs/{job}"))


def test_characters_that_turn_text_around_are_spelled_out_but_not_in_what_a_form_sends_back(
    plain: Http,
) -> None:
    turn = "a\u202eb\u2066c"
    said = {"group": turn, "tenant": turn, "key": turn, "entity": f"order/{turn}"}
    made = plain.node.client.enqueue("orders", {turn: [turn, "\u05d0"]}, **said).id
    for path in (f"/jobs/{made}", "/jobs?col=group&col=tenant&col=key&col=entity"):
        page = plain.get(path).text
        assert page.count(r"a\u202eb\u2066c") >= 4
        assert not re.search(r"[\u202e\u2066]", page)
    assert '"<bdi>\u05d0</bdi>"' in plain.get(f"/jobs/{made}").text
    assert turn in plain.get(f"/jobs/{made}/edit").text.partition("<textarea")[2]
    assert f'value="key:{turn}"' in plain.get(f"/jobs?q=key:{turn}").text


def test_of_what_can_be_done_to_a_held_job_releasing_it_stands_out(plain: Http) -> None:
    client = plain.node.client
    made = client.enqueue("orders", {"n": 1}).id

    def standing_out() -> list[str]:
        page = plain.get(f"/jobs/{made}").text
        return re.findall(r'<button type="button" class="go" popovertarget="act-(\w+)">', page)

    assert standing_out() == ["retry"]
    client.hold(made, reason="odd")
    assert standing_out() == ["release"]


def test_a_page_that_did_not_change_is_not_sent_again(plain: Http) -> None:
    client = plain.node.client
    job = client.enqueue("orders", {"n": 1}, run_at=client.store.now() + timedelta(hours=1)).id
    middle = {"HX-Request": "true"}
    first = plain.get(f"/jobs/{job}", headers=middle)
    known = middle | {"If-None-Match": first.headers["etag"]}

    again = plain.get(f"/jobs/{job}", headers=known)
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["cache-control"] == "no-store"
    assert plain.get(f"/jobs/{job}", headers={"If-None-Match": first.headers["etag"]}).status_code == 200
    client.hold(job, reason="a change")
    changed = plain.get(f"/jobs/{job}", headers=known)
    assert (changed.status_code, "a change" in changed.text) == (200, True)
    assert plain.get("/jobs/nobody", headers=middle | {"If-None-Match": "*"}).status_code == 404


def test_a_page_that_did_not_change_still_tells_which_node_it_comes_from(plain: Http) -> None:
    client = plain.node.client
    job = client.enqueue("orders", {"n": 1}, run_at=client.store.now() + timedelta(hours=1)).id
    middle = {"HX-Request": "true"}
    first = plain.get(f"/jobs/{job}", headers=middle)
    plain.node.emit(NodeStarted(node=8, name="höst\u202e:8", store="sqlite:///penstock.db"))

    again = plain.get(f"/jobs/{job}", headers=middle | {"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    told = unquote(again.headers[SERVED_BY])
    assert told == f"{__version__} · höst\\u202e:8"
    assert f'<p id="served">{told}</p>' in plain.get(f"/jobs/{job}").text


def test_a_page_asks_only_for_what_it_does_not_have(browser: Browser, plain: Http) -> None:
    client = plain.node.client
    job = client.enqueue("orders", {"n": 1}, run_at=client.store.now() + timedelta(hours=1)).id
    with tab(browser, plain.node.url) as page:
        with page.expect_response(lambda got: got.status == 304):
            page.goto(f"/jobs/{job}")
        client.hold(job, reason="a change")
        expect(page.locator("main")).to_contain_text("a change")


def test_how_long_ago_something_was_is_no_change() -> None:
    at = b'<time datetime="2026-01-01" data-ago>%s</time> %s'
    assert tag_of(at % (b"3 s ago", b"due")) == tag_of(at % (b"4 s ago", b"due"))
    assert tag_of(at % (b"3 s ago", b"due")) != tag_of(at % (b"3 s ago", b"held"))


def test_of_a_large_payload_the_page_has_the_beginning_and_the_way_to_all_of_it(plain: Http) -> None:
    large = json.dumps([{"n": n, "text": "<é>"} for n in range(8_000)], ensure_ascii=False)
    job = plain.node.client.enqueue("orders", Json(large)).id
    page = plain.get(f"/jobs/{job}").text
    assert len(page) < 4 * MOST_SHOWN < len(large.encode())
    assert f'<a href="/jobs/{job}/payload">All of it</a>' in page
    assert "&#34;n&#34;: 1," in page
    whole = plain.get(f"/jobs/{job}/payload")
    assert whole.content == large.encode()
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["cache-control"] == "no-store"
    assert whole.headers["x-content-type-options"] == "nosniff"

    small = plain.node.client.enqueue("orders", {"n": 1}).id
    assert "All of it" not in plain.get(f"/jobs/{small}").text
    none = plain.node.client.enqueue("orders").id
    assert plain.get(f"/jobs/{none}/payload").status_code == 404
