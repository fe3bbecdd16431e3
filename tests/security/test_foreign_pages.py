"""A real browser, logged in, opens a page of somebody else: it can make the browser ask, and gets nothing."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Page

from penstock import Client
from penstock.domain.lanes import lane
from penstock.stores.connect import connect
from tests.api.node import Http, served
from tests.security.conftest import PASSWORD, make_user
from tests.ui.browsing import chromium, tab

# What a page can do to another origin: a form of either kind, a fetch with the cookies, a frame.
EVIL = """<!doctype html><title>evil</title><iframe id="frame" src="{node}/jobs"></iframe>
<form id="form" method="post" action="{node}/jobs/new">
  <input name="lane" value="orders"><input name="payload" value="{{}}"></form>
<form id="text" method="post" enctype="text/plain" action="{node}/api/jobs">
  <input name='{{"lane":"orders","payload":"' value='"}}'></form>"""
FETCH = """async ([url, method, type]) => {
  const body = method === "POST" ? '{"lane":"orders"}' : undefined;
  const headers = type ? {"Content-Type": type} : {};
  try { return (await fetch(url, {method, headers, body, credentials: "include"})).status + ""; }
  catch (error) { return "refused"; }
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for which evil.example has this machine's address, as a rebound name would."""
    with chromium("--host-resolver-rules=MAP *.example 127.0.0.1") as browser:
        yield browser


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    with closing(connect(f"sqlite:///{tmp_path_factory.mktemp('foreign')}/penstock.db")) as store:
        store.migrate()
        store.put_lane(lane("orders"), actor="test")
        make_user(store)
        with Client(store, actor="api") as client, served(client, login=True) as http:
            yield http


@contextmanager
def evil_page(node: str) -> Iterator[str]:
    class Evil(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(EVIL.format(node=node).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://evil.example:{server.server_port}/"
        finally:
            server.shutdown()


@contextmanager
def victim(browser: Browser, node: Http) -> Iterator[Page]:
    """Open a tab that is logged in."""
    with tab(browser, node.node.url, complaints=[]) as page:
        page.goto("/login")
        page.fill("[name=name]", "ada")
        page.fill("[name=password]", PASSWORD)
        page.click("button")
        page.wait_for_url(lambda url: "/login" not in url)
        yield page


def test_no_form_of_a_foreign_page_changes_anything(browser: Browser, node: Http) -> None:
    with victim(browser, node) as page, evil_page(node.node.url) as evil:
        for form in ("#form", "#text"):
            page.goto(evil)
            with page.expect_navigation() as gone:
                page.eval_on_selector(form, "form => form.submit()")
            assert gone.value is not None
            assert gone.value.status == 403
    assert node.node.client.list().jobs == []


def test_no_fetch_of_a_foreign_page_changes_or_reads_anything(browser: Browser, node: Http) -> None:
    asked = [
        ("/api/jobs", "GET", ""),
        ("/api/jobs", "POST", "text/plain"),
        ("/api/jobs", "POST", "application/json"),
        ("/jobs/new", "POST", "application/x-www-form-urlencoded"),
        ("/api/events", "GET", ""),
        ("/metrics", "GET", ""),
    ]
    with victim(browser, node) as page, evil_page(node.node.url) as evil:
        page.goto(evil)
        told = [page.evaluate(FETCH, [node.node.url + path, *rest]) for path, *rest in asked]
    assert told == ["refused"] * len(asked)
    assert node.node.client.list().jobs == []


def test_no_page_of_ours_is_shown_in_a_foreign_frame(browser: Browser, node: Http) -> None:
    with (
        victim(browser, node) as page,
        evil_page(node.node.url) as evil,
        page.expect_console_message(lambda message: "frame-ancestors" in message.text),
    ):
        page.goto(evil)


def test_a_name_that_was_rebound_to_us_is_told_nothing(browser: Browser, node: Http) -> None:
    port = node.node.url.rpartition(":")[2]
    with tab(browser, node.node.url, complaints=[]) as page:
        for path in ("/", "/login", "/api/jobs", "/metrics"):
            answer = page.goto(f"http://evil.example:{port}{path}")
            assert answer is not None
            assert answer.status == 403
            assert "orders" not in page.content()
