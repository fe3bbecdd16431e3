"""A page whose reader is logged out, or whose subject is gone, says so: nothing old is shown as live."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from penstock import Client
from penstock.domain.access import hashed
from penstock.domain.lanes import lane
from penstock.ports.store import Ask
from penstock.stores.connect import connect
from tests.api.node import Http, served
from tests.security.conftest import PASSWORD, make_user
from tests.ui.browsing import serious, tab
from tests.ui.conftest import Seeded
from tests.ui.test_screens import FRESH, opened


def log_in(page: Page) -> None:
    page.locator("[name=name]").fill("ada")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_have_attribute("data-state", FRESH)


@contextmanager
def behind_a_login(folder: Path) -> Iterator[tuple[Client, Http]]:
    store = connect(f"sqlite:///{folder}/penstock.db")
    store.migrate()
    make_user(store)
    store.put_lane(lane("orders"), actor="test")
    with Client(store) as client, served(client, login=True) as http:
        yield client, http


@pytest.mark.parametrize("path", ["/nodes", "/jobs?q=lane:orders%20state:pending"])
def test_whoever_is_logged_out_is_led_to_the_login_and_back(
    browser: Browser, tmp_path: Path, path: str
) -> None:
    with behind_a_login(tmp_path) as (client, http):
        client.enqueue("orders", {"n": 1})
        with tab(browser, http.node.url, complaints=[]) as page:  # the browser complains of every 401
            page.goto(path)
            log_in(page)
            assert page.url == http.node.url + path
            [cookie] = [each for each in page.context.cookies() if each["name"] == "penstock_session"]
            client.store.close_session(hashed(cookie["value"]))  # in another tab, or by an admin

            expect(page.locator("[name=password]")).to_be_visible()
            assert serious(page) == []
            log_in(page)
            assert page.url == http.node.url + path


def test_whoever_is_logged_out_over_a_form_keeps_what_he_wrote_and_logs_in(
    browser: Browser, tmp_path: Path
) -> None:
    with behind_a_login(tmp_path) as (client, http):
        with tab(browser, http.node.url, complaints=[]) as page:
            page.goto("/jobs/new?lane=orders")
            log_in(page)
            page.locator("[name=payload]").fill('{"n": "<b>",\n "long": "text"}')
            page.context.clear_cookies()
            page.get_by_role("button", name="Enqueue").click()

            expect(page.locator("h1")).to_have_text("You are logged out")
            expect(page.locator("main pre").last).to_contain_text('{"n": "<b>",\n "long": "text"}')
            assert serious(page) == []
            expect(page.locator("#live")).to_have_count(0)
            page.get_by_role("link", name="Log in").click()
            log_in(page)
            assert page.url == http.node.url + "/jobs/new?lane=orders"

            page.goto("/lanes/orders")  # a sheet, which a script sends
            page.get_by_role("button", name="Pause").click()
            page.locator("#pause [name=reason]").fill("they move house")
            page.context.clear_cookies()
            page.keyboard.press("Enter")
            expect(page.locator("h1")).to_have_text("You are logged out")
            expect(page.locator("main pre").last).to_contain_text("they move house")
        assert (client.list().jobs, client.lane("orders").paused) == ([], False)


@pytest.mark.parametrize(
    ("path", "field"), [("/lanes/orders", "#limits [name=rate]"), ("/jobs?q=lane:orders", "#q")]
)
def test_whoever_is_logged_out_while_he_writes_is_led_to_the_login_when_he_is_done(
    browser: Browser, tmp_path: Path, path: str, field: str
) -> None:
    with behind_a_login(tmp_path) as (client, http):
        client.enqueue("orders", {"n": 1})
        with tab(browser, http.node.url, complaints=[]) as page:
            page.goto(path)
            log_in(page)
            page.locator(field).fill("10/s")
            page.context.clear_cookies()

            expect(page.locator("#live")).to_contain_text("live updates lost")
            expect(page.locator(field)).to_have_value("10/s")
            page.locator(field).blur()
            expect(page.locator("[name=password]")).to_be_visible()


def test_a_page_about_something_that_is_gone_says_so(browser: Browser, seeded: Seeded) -> None:
    seeded.client.store.put_lane(lane("brief"), actor="test")
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/lanes/brief")
        seeded.client.store.delete_lane("brief", actor="test")

        expect(page.locator("h1")).to_have_text("There is no such lane")
        expect(page.locator("main")).to_contain_text("brief")
        assert serious(page) == []
        expect(page.locator("#live")).to_have_attribute("data-state", "paused")


def test_the_page_of_an_error_asks_for_nothing_again(browser: Browser, tmp_path: Path) -> None:
    """The id that it shows is that of the request that failed, for whoever looks into the log."""
    asked: list[str] = []
    with behind_a_login(tmp_path) as (_, http), tab(browser, http.node.url, complaints=[]) as page:
        page.clock.install()
        page.goto("/nodes")
        log_in(page)
        page.on("request", lambda sent: None if sent.is_navigation_request() else asked.append(sent.url))
        with page.expect_request(lambda sent: sent.headers.get("hx-request") == "true"):
            page.clock.run_for(10_000)
        for path, missing in (("/nowhere", "page"), ("/lanes/nobody", "lane")):
            page.goto(path)
            expect(page.locator("h1")).to_have_text(f"There is no such {missing}")
            expect(page.locator("#live")).to_have_count(0)
            expect(page.locator("nav a[href='/access']")).to_have_count(1)
            request = page.locator("#request").text_content()
            asked.clear()
            page.clock.run_for(60_000)
            assert page.locator("#request").text_content() == request
            assert asked == []


def test_what_ended_well_is_not_struck_out_when_newer_ones_come(browser: Browser, seeded: Seeded) -> None:
    store = seeded.client.store
    store.put_lane(lane("brisk"), actor="test")

    def end(many: int) -> None:
        made = [seeded.client.enqueue("brisk", {"n": n}).id for n in range(many)]
        store.claim(Ask(lane="brisk", node=1, limit=many))
        for job in made:
            seeded.client.report(job, 1, "succeeded")

    end(3)
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/history?lane=brisk")
        rows = page.locator("[data-keep-rows] tbody tr")
        expect(rows).to_have_count(3)
        end(50)

        expect(page.locator("#fresh")).to_contain_text("50+ new")
        expect(page.locator("tbody tr.old")).to_have_count(0)
        expect(rows).to_have_count(3)
