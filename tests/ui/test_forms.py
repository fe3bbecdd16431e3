"""Forms in a real browser: what was refused is kept, what was not touched stays as it is."""

from datetime import timedelta

from playwright.sync_api import Browser, expect

from penstock.domain.filter_line import quoted
from penstock.domain.payloads import Json
from tests.ui.browsing import serious, tab
from tests.ui.conftest import Seeded
from tests.ui.test_screens import opened


def test_what_was_written_for_a_new_job_is_kept_when_it_is_refused(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url, complaints=[]) as page:  # the browser complains of every 422
        opened(page, seeded, "/jobs/new?lane=pay")
        page.locator("[name=payload]").fill('{"amount": 1,\n "to": oops}')
        page.locator("[name=key]").fill("k-77")
        page.get_by_role("button", name="Enqueue").click()
        expect(page.get_by_role("alert")).to_contain_text("payload")
        expect(page.locator("[name=payload]")).to_have_value('{"amount": 1,\n "to": oops}')
        expect(page.locator("[name=key]")).to_have_value("k-77")
        expect(page.locator("[name=lane]")).to_have_value("pay")
        assert serious(page) == []
        page.locator("[name=payload]").fill('{"amount": 1,\n "to": "ann"}')
        page.get_by_role("button", name="Enqueue").click()

        expect(page.locator("#toast")).to_contain_text("The job was accepted.")
    [job] = seeded.client.list(filter="key:k-77", payloads=True).jobs
    assert job.payload == {"amount": 1, "to": "ann"}


def test_what_was_written_for_a_new_lane_is_kept_when_it_is_refused(browser: Browser, seeded: Seeded) -> None:
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/new-lane")
        page.locator("[name=name]").fill("shop")
        page.locator("[name=target]").fill("https://shop.example/hook")
        page.locator("[name=mode]").select_option("block_on_error")
        page.locator("[name=rate]").fill("often")
        page.get_by_role("button", name="Make the lane").click()
        expect(page.get_by_role("alert")).to_contain_text("rate")
        expect(page.locator("[name=mode]")).to_have_value("block_on_error")
        page.locator("[name=rate]").fill("5/s")
        page.get_by_role("button", name="Make the lane").click()
        expect(page.locator("h1")).to_contain_text("shop")
    lane = seeded.client.store.lanes()["shop"]
    assert (lane["target"], lane["mode"], lane["rate"]) == (
        "https://shop.example/hook", "block_on_error", "5/s",
    )  # fmt: skip


def test_a_lane_that_is_called_new_has_its_page(seeded: Seeded) -> None:
    form = seeded.http.get("/lanes/new", follow_redirects=True)  # a bookmark of the form
    assert (form.url.path, "<h1>New lane</h1>" in form.text) == ("/new-lane", True)
    fields = {"name": "new", "sink": "console"}
    made = seeded.http.request("POST", form.url.path, data=fields, follow_redirects=True)
    assert made.url.path == "/lanes/new"
    assert 'action="/lanes/new/set"' in made.text
    told = seeded.http.request("POST", "/lanes/new/disable?reason=x", follow_redirects=True).text
    assert "Lane &#34;new&#34; is disabled" in told
    seeded.client.store.delete_lane("new", actor="test")


def test_an_edit_leaves_a_payload_that_nobody_touched_byte_for_byte(browser: Browser, seeded: Seeded) -> None:
    """A browser sends lines with CR LF, and the page shows the payload on several."""
    text = '{"amount":1.10,"of":["a","b"]}'
    job = seeded.client.enqueue("pay", Json(text), run_at=seeded.client.store.now().replace(year=2099)).id
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, f"/jobs/{job}/edit")
        page.locator("[name=target]").fill("https://pay.example/new")
        page.locator("[name=run_at]").fill("whenever")
        page.locator("[name=reason]").fill("they moved")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("whenever")
        expect(page.locator("[name=reason]")).to_have_value("they moved")
        page.locator("[name=run_at]").fill("")
        page.get_by_role("button", name="Save").click()

        expect(page.locator("#toast")).to_contain_text("Edited.")
        edit = page.locator(".timeline li", has_text="edit")
        expect(edit).to_contain_text("target https://pay.example/new")
        expect(edit).not_to_contain_text("{")
    found = seeded.client.get(job)
    assert found.context is not None
    assert (found.context.payload, found.context.target) == (text, "https://pay.example/new")


def test_a_group_is_the_one_of_that_name_byte_for_byte(browser: Browser, seeded: Seeded) -> None:
    """A browser spells every end of a line CR LF in the fields of a form."""
    group = " a\r\nb\rc "
    client, orders = seeded.client, {"lane": "pay", "mode": "block_on_error"}
    later = client.store.now() + timedelta(days=1)
    job = client.enqueue(**orders, group=group, run_at=later).id
    client.enqueue(**orders, group=group.strip().replace("\r\n", "\n"), run_at=later)

    def paused() -> set[str]:
        return {each.group for each in client.store.list_groups(lane="pay").groups if each.state == "paused"}

    with tab(browser, seeded.url) as page:
        opened(page, seeded, f"/jobs/{job}")
        page.locator(".head a[href^='/groups']").click()
        page.get_by_role("button", name="Act…").click()
        page.locator("[name=reason]:visible").fill("test")
        page.get_by_role("button", name="Pause group").click()
        expect(page.locator("#toast")).to_contain_text("is paused")
        assert paused() == {group}
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#toast")).to_contain_text("goes on")
        assert paused() == set()

        page.locator("tbody th a").click()
        page.locator("a.button[href^='/bulk?verb=hold']").click()
        page.locator("[name=reason]").fill("test")
        page.get_by_role("button", name="Hold 1 job").click()
        expect(page.locator("#toast")).to_contain_text("It has begun.")
    [operation] = client.operations(limit=1).operations
    assert f"group:{quoted(group)}" in operation.filter
