"""Without a mouse: rows are walked, sheets keep the focus, Enter does its word."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from penstock.ui.rendering import TURNS
from tests.ui.browsing import serious, tab
from tests.ui.conftest import Seeded
from tests.ui.seed import MARKUP
from tests.ui.test_screens import opened

# What of an open sheet is out of place: it lies in the middle, and all that can be pressed lies within it.
ASKEW = """() => {
  const sheet = document.querySelector('.sheet:popover-open');
  const place = sheet.getBoundingClientRect();
  const aside = Math.abs(place.left + place.right - document.documentElement.clientWidth);
  const off = aside > 20 ? ['not in the middle'] : [];
  const out = [...sheet.querySelectorAll('button, input, select')].filter((one) => {
    const part = one.getBoundingClientRect();
    return part.left < place.left || part.right > place.right + 1;
  });
  return [...off, ...out.filter((one) => one.checkVisibility()).map((one) => one.outerHTML)];
}"""

# What of the palette is wider than its place; a name that is cut short is not.
WIDER = """() => [document.querySelector('#palette'), ...document.querySelectorAll('#places, #places li')]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.outerHTML)"""


def test_rows_are_walked_on_from_where_one_is_though_the_page_changes(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/lanes")
        rows = page.locator("tbody tr")
        page.keyboard.press("j")
        page.keyboard.press("j")
        before = page.locator("#lane-pay [data-name=Pending]").inner_text()
        seeded.client.enqueue("pay", {"amount": 3})
        seeded.client.store.fold_counts()
        expect(page.locator("#lane-pay [data-name=Pending]")).not_to_have_text(before)
        expect(rows.nth(1)).to_have_class("at")

        page.keyboard.press("j")
        expect(rows.nth(2).locator("a").first).to_be_focused()
        rows.nth(0).locator("a").first.focus()  # by Tab, say
        page.keyboard.press("j")
        expect(rows.nth(1).locator("a").first).to_be_focused()


def test_escape_closes_what_is_offered_and_keeps_what_was_written(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/lanes")
        page.keyboard.press("/")
        field = page.locator("#find")
        page.keyboard.type("lane:orders sta")
        expect(page.get_by_role("option", name="state:")).to_be_visible()
        expect(field).to_have_attribute("aria-expanded", "true")
        assert serious(page) == []
        page.keyboard.press("Escape")

        expect(page.get_by_role("option", name="state:")).to_have_count(0)
        expect(field).to_have_value("lane:orders sta")
        expect(field).to_be_focused()


def test_the_palette_has_what_begins_with_a_word_before_what_has_it_inside(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/lanes")
        page.keyboard.press("Control+k")
        page.keyboard.type("or")
        expect(page.locator("#places li").nth(1)).to_contain_text("History")
        expect(page.locator("#places li").first).to_contain_text("orders")


def test_the_palette_finds_groups_by_how_they_begin(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/lanes")
        page.keyboard.press("Control+k")
        page.keyboard.type("bus")
        group = page.get_by_role("option", name="busy group of orders")
        expect(group).to_be_visible()
        expect(group).to_have_attribute("aria-selected", "true")
        assert serious(page) == []
        page.keyboard.press("Enter")
        page.wait_for_url("**/groups?lane=orders&group=busy")
        expect(page.locator("tbody tr")).to_have_count(1)

        page.keyboard.press("Control+k")
        page.keyboard.type(MARKUP[:6])
        group = page.get_by_role("option").filter(has_text="group of orders")
        expect(group).to_contain_text(MARKUP)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_palette_has_each_place_on_one_line_whatever_it_is_called(
    browser: Browser, seeded: Seeded, width: int
) -> None:
    turns = re.findall(f"[{TURNS}]", "".join(map(chr, range(0x2100))))
    for name in (f"zz{''.join(turns)}evil", f"zy{'x' * 200}"):
        seeded.client.enqueue("orders", {"n": 1}, group=name)
    with tab(browser, seeded.url, width=width) as page:
        opened(page, seeded, "/lanes")
        page.keyboard.press("Control+k")
        page.keyboard.type("zz")
        group = page.get_by_role("option").filter(has_text="group of orders")
        expect(group).to_contain_text("zz" + "".join(f"\\u{ord(turn):04x}" for turn in turns) + "evil")
        page.locator("#goto").fill("zy")
        expect(group).to_contain_text("zyxxx")
        assert page.evaluate(WIDER) == []
        assert group.locator(".faint").evaluate("hint => hint.scrollWidth <= hint.clientWidth")
        tall = "all => new Set(all.map(one => Math.round(one.getBoundingClientRect().height))).size"
        assert page.locator("#places li").evaluate_all(tall) == 1


def test_the_palette_takes_what_is_longer_than_any_name(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:  # which complains of whatever is refused
        opened(page, seeded, "/lanes")
        page.keyboard.press("Control+k")
        with page.expect_response("**/ui/groups?*") as answer:
            page.locator("#goto").fill("x" * 3000)
        assert (answer.value.status, answer.value.json()) == (200, {"groups": []})
        page.keyboard.press("Enter")
        page.wait_for_url("**/groups?group=xxx*")
        expect(page.locator("h1")).to_have_text("Groups")


@pytest.mark.parametrize(
    ("path", "name", "first"),
    [
        ("/", "Pause everything", "[name=reason]"),
        ("/pools", "Pause a target", "[name=target]"),
        ("/groups", "Resolve…", "[name=reason]"),
        ("/lanes/orders", "Disable", "[name=reason]"),
        ("/lanes", "Keyboard help", "button"),
    ],
)
def test_a_sheet_has_the_focus_until_it_is_closed(
    browser: Browser, seeded: Seeded, path: str, name: str, first: str
) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, path)
        button = page.get_by_role("button", name=name, exact=True).first
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator(f".sheet:popover-open {first}").first).to_be_focused()
        for key in ("Tab", "Shift+Tab"):
            for _ in range(7):
                page.keyboard.press(key)
                assert _in_sheet(page), key
        assert page.evaluate(ASKEW) == []
        page.keyboard.press("g")  # keys of the page wait as well
        page.keyboard.press("Escape")

        expect(button).to_be_focused()
        expect(page.locator(".sheet:popover-open")).to_have_count(0)


def _in_sheet(page: Page) -> bool:
    return bool(page.evaluate("() => document.activeElement.closest('[popover]:popover-open') !== null"))


def test_the_menu_of_a_phone_has_the_focus_until_it_is_closed(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url, width=390) as page:
        opened(page, seeded, "/lanes")
        button = page.get_by_role("button", name="Menu")
        button.focus()
        page.keyboard.press("Enter")
        for _ in range(20):
            page.keyboard.press("Tab")
            assert _in_sheet(page)
        page.keyboard.press("Escape")
        expect(button).to_be_focused()


def test_all_rows_of_a_page_are_selected_on_a_phone_and_counted_before_anything_happens(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url, width=390) as page:
        opened(page, seeded, "/jobs?q=state:dead lane:mail")
        boxes = [box.bounding_box() for box in page.get_by_role("checkbox").all()]
        assert {(box["width"], box["height"]) for box in boxes if box} == {(16, 16)}
        page.get_by_label("Select all on this page").focus()
        page.keyboard.press("Space")
        expect(page.locator("#bulk")).to_contain_text("12 selected")
        page.locator("#bulk").get_by_role("button", name="Retry").focus()
        page.keyboard.press("Enter")

        expect(page.locator("#matched")).to_have_text("12")
        expect(page.locator("[name=reason]")).to_be_focused()
        page.go_back()
    assert len(seeded.client.list(lane="mail", state="dead").jobs) == 12


def test_enter_retries_the_job_that_blocks_a_group(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url) as page:
        opened(page, seeded, "/groups")
        page.get_by_role("button", name="Resolve…").first.focus()
        page.keyboard.press("Enter")
        page.keyboard.type("the shop is fixed")
        page.keyboard.press("Enter")

        expect(page.locator("#toast")).to_contain_text("Done: the job is pending.")
    assert seeded.client.get(seeded.ids["blocker"]).state.label == "pending"
    assert [g.state for g in seeded.client.store.list_groups(group=MARKUP).groups] != ["paused"]
