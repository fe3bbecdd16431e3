"""Every screen in a real browser: it shows what there is, fits, and keeps nobody out."""

import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from penstock import Client
from penstock.domain.access import Scope, hashed
from penstock.domain.lanes import lane
from penstock.ports.store import Ask
from penstock.stores.sqlite.store import SqliteStore
from tests.api.node import served
from tests.ui.browsing import broken, overflows, serious, tab, unseen
from tests.ui.conftest import Seeded
from tests.ui.seed import MARKUP

SCREENS = {
    "/": ("Overview", "Dead letters"),
    "/lanes": ("Lanes", "https://shop.example/hook"),
    "/lanes/orders": ("orders", "max_in_flight"),
    "/new-lane": ("New lane", "Target URL"),
    "/jobs": ("Jobs", "pending"),
    "/jobs?q=state:dead": ("Jobs", "sku is recalled"),
    "/jobs/new": ("New job", "Payload"),
    "/jobs/{dead}": ("{dead}", "HTTP 422"),
    "/jobs/{edited}": ("{edited}", "version 1"),
    "/jobs/{dead}/edit": ("Edit and retry", "ann@example"),
    "/groups": ("Groups", "blocked"),
    "/dead": ("Dead letters", "HTTP 422: sku is recalled"),
    "/pools": ("Pools and targets", "https://mail.example"),
    "/bulk?verb=retry&q=lane:mail": ("Replay all that match", "12"),
    "/operations": ("Bulk operations", "No bulk operation yet"),
    "/nodes": ("Nodes", "host-b:12"),
    "/history": ("History", "succeeded"),
    "/audit": ("Audit", "their API is down"),
    "/access": ("Keys and users", "No user yet"),
}

FRESH = re.compile("^(live|waits)$")  # the first field of a form has the focus: such a page waits at once
LEGIBLE = ("/", "/lanes/orders", "/jobs/{dead}", "/groups", "/audit")


def opened(page: Page, seeded: Seeded, path: str) -> None:
    answer = page.goto(path.format(**seeded.ids))
    assert answer is not None
    assert answer.status == 200
    expect(page.locator("#live")).to_have_attribute("data-state", FRESH)


def test_every_screen_shows_what_there_is_and_keeps_nobody_out(browser: Browser, seeded: Seeded) -> None:
    faults: dict[str, list[str]] = {}
    with tab(browser, seeded.url) as page:
        for path, says in SCREENS.items():
            title, text = (each.format(**seeded.ids) for each in says)
            opened(page, seeded, path)
            expect(page.locator("h1")).to_contain_text(title)
            expect(page.locator("main")).to_contain_text(text)
            faults[path] = serious(page) + (["too wide"] if overflows(page) else []) + broken(page)
            faults[path] += unseen(page, stops=16)

    assert {path: found for path, found in faults.items() if found} == {}


def test_everything_fits_on_a_phone_and_is_legible_in_the_dark(browser: Browser, seeded: Seeded) -> None:
    faults: dict[str, list[str]] = {}
    with tab(browser, seeded.url, width=390, theme="dark") as page:
        for path in SCREENS:
            opened(page, seeded, path)
            faults[path] = ["too wide"] if overflows(page) else []
            faults[path] += serious(page, only="color-contrast") if path in LEGIBLE else []
            faults[path] += unseen(page, stops=10)

    assert {path: found for path, found in faults.items() if found} == {}


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_fit(browser: Browser, tmp_path: Path, width: int) -> None:
    name, group, word = "lane-" + "x" * 58, "g" * 250, "w" * 300
    with closing(SqliteStore(tmp_path / "penstock.db")) as store, served(Client(store)) as http:
        store.migrate()
        store.put_lane(lane(name, mode="block_on_error", target=f"http://a.example/{word}"), actor="a" * 80)
        header = {f"X-{'h' * 60}": word}
        jobs = [http.node.client.enqueue(name, {word: word}, group=group, headers=header, key=f"{n}{group}")
                for n in range(2)]  # fmt: skip
        http.node.client.hold(jobs[0].id, reason=word)
        store.pause_lane(name, paused=True, actor="a" * 80, reason=word)
        places = [f"/jobs/{jobs[0].id}", f"/jobs/{jobs[1].id}", f"/lanes/{name}", "/bulk?verb=skip&q="]
        wide = []
        with tab(browser, http.node.url, width=width) as page:
            for path in (*places, "/", "/lanes", "/jobs", "/groups?show=all", "/audit"):
                page.goto(path)
                wide += [path] if overflows(page) else []
    assert wide == []


def test_what_callers_wrote_stays_text(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        for path in ("/", "/groups", "/jobs?q=lane:orders", "/jobs/{blocker}", "/dead", "/lanes/orders"):
            opened(page, seeded, path)
            expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(")
            assert page.locator("img").count() == 0


def test_a_job_says_why_it_waits_and_what_can_be_done(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/groups")
        page.get_by_role("row", name=re.compile("blocked")).get_by_role(
            "link", name=seeded.ids["blocker"]
        ).click()

        expect(page.locator(".why-box")).to_contain_text("retry, skip or cancel it")
        page.get_by_role("link", name=MARKUP).first.click()
        expect(page.get_by_role("row", name=re.compile("blocked"))).to_contain_text("3")


def test_a_change_appears_without_a_reload_and_rows_do_not_jump(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/jobs?q=lane:orders%20state:pending")
        page.evaluate("window.untouched = true")
        rows = page.locator("tbody tr")
        before = rows.count()
        late = seeded.client.enqueue("orders", {"n": 1}, group="late")

        expect(page.locator("#fresh")).to_have_text("1 new – show")  # noqa: RUF001
        assert rows.count() == before
        assert page.evaluate("window.untouched")
        page.locator("#fresh").click()
        expect(rows).to_have_count(before + 1)
        row = page.locator(f"#job-{late.id}")
        expect(row).not_to_have_class("old")
        seeded.client.cancel(late.id, reason="it left the list")
        expect(row).to_have_class("old")
        expect(row).to_have_attribute("title", re.compile("no longer matches"))


def test_rows_come_while_somebody_writes_a_filter(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/jobs?q=lane:orders%20state:pending")
        page.locator("#q").fill("lane:orders state:d")
        seeded.client.enqueue("orders", {"n": 1}, group="later")

        expect(page.locator("#fresh")).to_have_text("1 new – show")  # noqa: RUF001
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("#q")).to_be_focused()
        expect(page.locator("#q")).to_have_value("lane:orders state:d")


def test_a_page_waits_while_somebody_writes_in_it_and_says_so(browser: Browser, seeded: Seeded) -> None:
    chip, store = "#live [data-text]", seeded.client.store
    store.put_lane(lane("awaited", sink="console"), actor="test")
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/lanes/awaited")
        rate = page.locator("#limits [name=rate]")
        rate.fill("7/s")
        expect(page.locator(chip)).to_have_text("paused while you type")
        store.pause_lane("awaited", paused=True, actor="test", reason="they move")
        for _ in range(2):  # the first one may have been on its way
            with page.expect_response(lambda answer: answer.url.endswith("/lanes/awaited")):
                pass
        assert "they move" not in page.locator("main").inner_text()
        expect(rate).to_be_focused()
        expect(rate).to_have_value("7/s")
        assert serious(page) == []
        rate.blur()
        expect(page.locator("main .notice")).to_contain_text("they move")
        expect(page.locator(chip)).to_have_text("live")

        page.get_by_role("button", name="Disable").click()
        expect(page.locator(chip)).to_have_text("paused while this is open")
        page.keyboard.press("Escape")
        expect(page.locator(chip)).to_have_text("live")


def test_a_page_on_a_phone_stays_in_its_place_when_somebody_begins_to_write(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url, width=390) as page:
        opened(page, seeded, "/lanes/orders")
        before = page.locator("header.top").bounding_box()
        page.locator("#limits [name=rate]").focus()
        expect(page.locator("#live")).to_have_attribute("data-state", "waits")
        assert page.locator("header.top").bounding_box() == before
        assert not overflows(page)


# When a part of the page first says something, by the page's own clock.
SEEN = """([selector, text]) => {
  window.seen = null;
  const look = () => {
    const says = document.querySelector(selector)?.textContent.trim();
    if (window.seen === null && says === text) window.seen = Date.now();
  };
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
  return Date.now();
}"""
FRESH_MS = 2_000
# What a browser does when another tab is looked at: nothing that a script of ours could ask it for.
TURN = """(away) => {
  Object.defineProperty(document, 'hidden', {value: away, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def died(seeded: Seeded) -> None:
    """Let one more job of a lane die."""
    job = seeded.client.enqueue("pay", {"amount": 5}).id
    seeded.client.store.claim(Ask(lane="pay", node=1))
    seeded.client.report(job, 1, "failed", error="no", retryable=False)
    seeded.client.store.fold_counts()


def test_the_overview_counts_on_by_itself_within_two_seconds(browser: Browser, seeded: Seeded) -> None:
    place, took = "#lane-pay [data-name=Dead]", list[int]()
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/")
        page.evaluate("window.untouched = true")
        row = page.locator(place)
        before = int(row.inner_text())
        for dead in range(before + 1, before + 4):
            began = page.evaluate(SEEN, [place, str(dead)])
            died(seeded)

            expect(row).to_have_text(str(dead))
            took.append(page.evaluate("window.seen") - began)
        assert page.evaluate("window.untouched")
    assert min(took) < FRESH_MS, took  # a machine that is busy for a moment is no fault of the page


def test_a_tab_in_the_background_asks_for_nothing_until_it_is_looked_at(
    browser: Browser, seeded: Seeded
) -> None:
    place, asked = "#lane-pay [data-name=Dead]", list[str]()
    with tab(browser, seeded.url) as away, tab(browser, seeded.url) as there:
        for page in (away, there):
            opened(page, seeded, "/")
        before = int(away.locator(place).inner_text())
        away.evaluate(TURN, True)
        away.on("request", lambda request: asked.append(request.url))
        for dead in (before + 1, before + 2):
            died(seeded)
            expect(there.locator(place)).to_have_text(str(dead))
        assert away.locator(place).inner_text() == str(before)
        assert asked == []
        away.evaluate(TURN, False)

        expect(away.locator(place)).to_have_text(str(before + 2))
        expect(away.locator("#live")).to_have_attribute("data-state", "live")
    assert any(url.endswith("/api/events?topics=lanes,operations,audit,nodes") for url in asked)


def test_the_filter_survives_reload_and_the_way_back(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/jobs")
        page.locator("#q").fill("lane:mail state:dead")
        page.locator("#q").press("Enter")
        page.wait_for_url("**/jobs?q=lane*")
        expect(page.locator("tbody tr")).to_have_count(12)
        page.reload()
        expect(page.locator("#q")).to_have_value("lane:mail state:dead")
        page.locator("tbody tr a").first.click()
        expect(page.locator(".why-box")).to_be_visible()
        page.go_back()

        expect(page.locator("#q")).to_have_value("lane:mail state:dead")
        expect(page.locator("tbody tr")).to_have_count(12)


def test_times_and_columns_are_chosen_by_forms_and_matches_are_counted(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/jobs?q=lane:pay")
        page.get_by_role("button", name="Columns").click()
        page.get_by_label("Tenant").check()
        page.get_by_role("button", name="Show these").click()
        expect(page.get_by_role("columnheader", name="Tenant")).to_be_visible()
        page.get_by_role("button", name="Time range").click()
        page.locator("[name=range]").select_option("created<1d")
        page.get_by_role("button", name="Write into the filter").click()

        expect(page.locator("#q")).to_have_value("lane:pay created<1d")
        expect(page.get_by_role("columnheader", name="Tenant")).to_be_visible()
        matched = len(seeded.client.list(filter="lane:pay created<1d", limit=500).jobs)
        assert matched > 50
        expect(page.locator("#count")).to_have_text(f"{matched} jobs match")
        assert serious(page) == []
        assert not overflows(page)


def test_a_wrong_filter_says_where_and_how_to_write_it(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/jobs?q=lnae:mail")
        expect(page.locator("#problem")).to_contain_text("did you mean lane?")


def test_by_keyboard_alone_from_the_overview_to_a_held_job_that_goes_on(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/")
        page.keyboard.press("g")
        page.keyboard.press("j")
        page.wait_for_url("**/jobs")
        page.keyboard.press("/")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.type("state:held")
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs?q=*")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text(seeded.ids["held"])
        page.get_by_role("button", name="Hold").wait_for(state="detached")
        page.get_by_role("button", name="Release").first.focus()
        page.keyboard.press("Enter")
        page.keyboard.type("it is none")
        page.keyboard.press("Enter")

        expect(page.locator("#toast")).to_contain_text("Done: the job is pending.")
        expect(page.locator(".timeline")).to_contain_text("it is none")
        page.keyboard.press("Control+k")
        page.keyboard.type("busy")
        expect(page.get_by_role("option", name="Group: busy")).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url("**/groups?group=busy")
        expect(page.locator("tbody tr")).to_contain_text("block on error")
        page.keyboard.press("Control+k")
        page.keyboard.type("audit")
        page.keyboard.press("Enter")
        page.wait_for_url("**/audit")
        expect(page.locator("main")).to_contain_text("it is none")


def test_limits_change_with_a_preview_of_what_that_means(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url, complaints=[]) as page:  # the browser complains of every 422
        opened(page, seeded, "/lanes/pay")
        rate = page.locator("#limits [name=rate]")
        expect(rate).to_have_value("50/s")
        rate.fill("10/s")
        expect(page.locator("#effect")).to_contain_text("at 10/s they are gone in 7")
        page.get_by_role("button", name="Change limits").click()

        expect(page.locator("#toast")).to_contain_text("changed rate")
        assert seeded.client.store.lanes()["pay"]["rate"] == "10/s"
        seeded.client.store.pause_lane("pay", paused=True, actor="eve", reason="meanwhile")
        page.locator("#limits [name=rate]").fill("nonsense")
        page.get_by_role("button", name="Change limits").click()
        expect(page.locator("#limits [role=alert]")).to_be_visible()
        expect(rate).to_have_value("nonsense")


def test_a_target_is_paused_and_resumed(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/pools")
        page.get_by_role("button", name="Pause a target").click()
        sheet = page.locator("#pause-target")
        sheet.locator("[name=target]").fill("https://pay.example/hook")
        sheet.locator("[name=until]").select_option("1h")
        sheet.locator("[name=reason]").fill(MARKUP)
        sheet.get_by_role("button", name="Pause").click()

        expect(page.locator("#toast")).to_contain_text("https://pay.example is paused until")
        row = page.get_by_role("row", name=re.compile("pay.example"))
        expect(row).to_contain_text(f"dashboard: {MARKUP}")
        assert serious(page) == []
        row.get_by_role("button", name="Resume").first.click()
        row.locator("form:popover-open").get_by_role("button", name="Resume").click()
        expect(page.locator("#toast")).to_contain_text("https://pay.example goes on.")
        mail = page.get_by_role("row", name=re.compile("mail.example"))
        mail.get_by_role("button", name="Close the breaker").click()
        expect(page.locator("#toast")).to_contain_text("The breaker is closed")
    assert seeded.client.store.targets() == {}
    assert seeded.client.store.audit_log(limit=1).entries[0].action == "target.reset"


def test_a_node_is_drained_and_goes_on(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        seeded.client.store.beat(1)
        opened(page, seeded, "/nodes")
        row = page.locator("#node-1")
        row.get_by_role("button", name="Drain").first.click()
        sheet = row.locator("form:popover-open")
        sheet.locator("[name=reason]").fill(MARKUP)
        sheet.get_by_role("button", name="Drain").click()
        expect(page.locator("#toast")).to_contain_text("Node 1 claims nothing more.")
        expect(row).to_contain_text(f"it is being told; dashboard: {MARKUP}")
        seeded.client.store.beat(1, '{"drains": 2}')
        page.reload()
        expect(row).to_contain_text("2 batches left")
        seeded.client.store.beat(1, '{"drains": 0}')
        page.reload()
        expect(row).to_contain_text("it has nothing left and can be stopped")
        assert serious(page) == []
        row.get_by_role("button", name="Resume").first.click()
        row.locator("form:popover-open").get_by_role("button", name="Resume").click()
        expect(page.locator("#toast")).to_contain_text("Node 1 goes on.")
    assert seeded.client.store.draining(1) is None


def test_what_can_be_taken_back_is_taken_back_from_the_toast(browser: Browser, seeded: Seeded) -> None:
    store = seeded.client.store
    job = seeded.client.enqueue("pay", {"amount": 7}, run_at=store.now() + timedelta(hours=1)).id
    with tab(browser, seeded.url) as page:
        for path, verb, done, undone in (
            ("/lanes/orders", "Pause", "is paused", "goes on"),
            ("/lanes/orders", "Disable", "is disabled", "is enabled"),
            (f"/jobs/{job}", "Hold", "the job is held", "the job is pending"),
        ):
            opened(page, seeded, path)
            page.get_by_role("button", name=verb, exact=True).first.click()
            sheet = page.locator("form:popover-open")
            sheet.locator("[name=reason]").fill("by mistake")
            sheet.get_by_role("button", name=verb, exact=True).click()
            expect(page.locator("#toast")).to_contain_text(done)
            page.locator("#toast").get_by_role("button", name="Undo").click()
            expect(page.locator("#toast")).to_contain_text(undone)
            expect(page.locator("#toast").get_by_role("button", name="Undo")).to_have_count(0)
    lane = store.lanes()["orders"]
    assert (lane.paused, lane["enabled"], seeded.client.get(job).state.label) == (False, True, "pending")


def test_a_key_is_shown_once_and_revoked(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/access")
        page.get_by_role("button", name="New key").click()
        sheet = page.locator("#new-key")
        sheet.locator("[name=name]").fill("ci")
        sheet.get_by_label("enqueue").check()
        sheet.locator("[name=tenant]").fill(MARKUP)
        sheet.get_by_role("button", name="Make the key").click()

        shown = page.locator("#made pre")
        expect(shown).to_contain_text(re.compile("^pk_[\\w-]{43}$"))
        key = shown.inner_text()
        assert serious(page) == []
        row = page.get_by_role("row", name=re.compile("^ci "))
        expect(row).to_contain_text("valid")
        expect(row).to_contain_text(MARKUP)
        assert page.locator("img").count() == 0
        page.get_by_role("link", name="I have kept it").click()
        expect(page.locator("#made")).to_have_count(0)
        assert key not in page.content()
        row.get_by_role("button", name="Revoke").first.click()
        open_sheet = row.locator("form:popover-open")
        open_sheet.locator("[name=reason]").fill("it leaked")
        open_sheet.get_by_role("button", name="Revoke").click()
        expect(page.locator("#toast")).to_contain_text("Key ci opens nothing any more.")
        expect(row).to_have_count(0)
        page.get_by_role("link", name="revoked ones too").click()
        expect(row).to_contain_text("was revoked")
    known = seeded.client.store.known_key(hashed(key))
    assert known is not None
    assert (known.key.tenant, known.key.scopes) == (MARKUP, {Scope.ENQUEUE})


def test_somebody_is_let_in_and_removed(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url, complaints=[]) as page:  # the browser complains of every 422
        opened(page, seeded, "/access")
        page.get_by_role("button", name="New user").click()
        sheet = page.locator("#new-user")
        sheet.locator("[name=name]").fill("ann")
        sheet.locator("[name=password]").fill("short")
        sheet.get_by_role("button", name="Let in").click()
        expect(sheet.get_by_role("alert")).to_contain_text("password")
        expect(sheet.locator("[name=name]")).to_have_value("ann")
        expect(sheet.locator("[name=password]")).to_have_value("")
        expect(sheet.locator("[name=password]")).to_be_focused()
        assert serious(page) == []
        sheet.locator("[name=password]").fill("correct horse battery")
        sheet.locator("[name=role]").select_option("operator")
        sheet.get_by_role("button", name="Let in").click()

        expect(page.locator("#toast")).to_contain_text("ann is let in: operator.")
        row = page.get_by_role("row", name=re.compile("^ann "))
        expect(row).to_contain_text("operator")
        row.get_by_role("button", name="Remove").first.click()
        open_sheet = row.locator("form:popover-open")
        open_sheet.locator("[name=reason]").fill("she left")
        open_sheet.get_by_role("button", name="Remove").click()
        expect(page.locator("#toast")).to_contain_text("ann is let in no more.")
    assert seeded.client.store.users() == []


def test_a_job_is_edited_and_goes_again_and_the_versions_stay(browser: Browser, seeded: Seeded) -> None:
    job = seeded.ids["dead"]
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/jobs/{dead}/edit")
        page.locator("[name=payload]").fill('{"n": 1.10, "to": "bob@example"}')
        page.locator("[name=reason]").fill("wrong address")
        page.get_by_role("button", name="Save and retry").click()

        expect(page.locator("#toast")).to_contain_text("Edited; it goes again.")
        expect(page.locator("#payload")).to_contain_text("1.10")
        expect(page.locator("main")).to_contain_text("version 1")
    edited = seeded.client.get(job)
    assert edited.state.label == "pending"
    assert edited.context is not None
    assert edited.context.payload == '{"n": 1.10, "to": "bob@example"}'


def test_a_form_that_is_sent_twice_does_its_thing_once(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/bulk?verb=hold&q=lane:pay%20state:pending")
        key = page.locator("[name=key]").input_value()
        page.locator("#matched").click()  # nobody writes now: the page is refreshed around the form
        matched = int(page.locator("#matched").inner_text())
        seeded.client.enqueue("pay", {"amount": 8})
        expect(page.locator("#matched")).to_have_text(str(matched + 1))
        expect(page.locator("[name=key]")).to_have_value(key)
        page.locator("[name=reason]").fill("twice")
        with page.expect_request("**/bulk*") as held:
            page.get_by_role("button", name="Hold").dblclick()
        expect(page.locator("h1")).to_contain_text("collecting")
        opened(page, seeded, "/jobs/new?lane=pay")
        with page.expect_request("**/jobs/new") as made:
            page.get_by_role("button", name="Enqueue").dblclick()
        expect(page.locator(".why-box")).to_be_visible()
        shown, job = page.url, page.url.rpartition("/")[2]
        opened(page, seeded, f"/jobs/{job}/edit")
        page.locator("[name=payload]").fill('{"amount": 9}')
        page.locator("[name=reason]").fill("nine")
        with page.expect_request("**/edit") as edited:
            page.get_by_role("button", name="Save").click()
        expect(page.locator("#toast")).to_contain_text("Edited.")
        for sent in (held.value, edited.value, made.value):
            again = page.request.post(sent.url, data=sent.post_data or "", headers=sent.headers)
            assert again.ok

        assert again.url == shown
        opened(page, seeded, "/bulk?verb=hold&q=lane:pay")
        assert page.locator("[name=key]").input_value() != key
    assert [each.reason for each in seeded.client.operations().operations] == ["twice"]
    assert seeded.client.get(job).live.revision == 1
    other = {"payload": '{"amount": 10}', "reason": "ten", "revision": "0"}
    told = seeded.http.request("POST", f"/jobs/{job}/edit", data=other, follow_redirects=True)
    assert "the job was changed since the form was shown" in told.text


def test_a_tab_tells_light_from_dark_and_local_from_utc_and_remembers(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url, theme="light") as page:
        opened(page, seeded, "/nodes")
        page.locator("#theme").click()
        page.locator("#zone").click()
        page.goto("/audit")

        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        expect(page.locator("#zone")).to_have_text("local")
