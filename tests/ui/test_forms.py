"""Forms in a real browser: what was refused is kept, what was not touched stays as it is."""

from datetime import timedelta

from playwright.sync_api import Browser, expect

from penstock.domain.filter_line import quoted
from penstock.domain.lanes import lane
from penstock.domain.payloads import Json
from penstock.domain.pools import pool
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
    shop = seeded.client.store.lanes()["shop"]
    assert (shop["target"], shop["mode"], shop["rate"]) == (
        "https://shop.example/hook", "block_on_error", "5/s",
    )  # fmt: skip


def test_a_fold_with_something_in_it_is_open_when_a_new_lane_is_refused(
    browser: Browser, seeded: Seeded
) -> None:
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/new-lane")
        fold, lease, rate = page.locator("details"), page.locator("[name=lease]"), page.locator("[name=rate]")
        page.locator("[name=name]").fill("pleats")
        rate.fill("often")
        page.keyboard.press("Enter")
        expect(rate).to_be_focused()
        expect(fold).not_to_have_attribute("open", "")
        rate.fill("")
        page.locator("summary").click()
        lease.fill("soon")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("lease")
        expect(lease).to_be_visible()
        expect(lease).to_be_focused()
        assert serious(page) == []
        lease.fill("45s")
        rate.fill("often")
        page.keyboard.press("Enter")
        expect(rate).to_be_focused()  # it is the one that is refused, and the other is seen

        expect(lease).to_be_visible()
        expect(lease).to_have_value("45s")


def make_lane(seeded: Seeded, name: str, **settings: str) -> None:
    """Make a lane as the page does, which shows it at once."""
    made = seeded.http.request("POST", "/new-lane", data={"name": name, "sink": "console", **settings})
    assert made.status_code == 303


def test_limits_that_are_refused_are_kept_until_they_are_right(browser: Browser, seeded: Seeded) -> None:
    store = seeded.client.store
    make_lane(seeded, "kept", rate="50/s")
    with tab(browser, seeded.url, complaints=[]) as page:  # the browser complains of every 422
        opened(page, seeded, "/lanes/kept")
        rate, depth = page.locator("#limits [name=rate]"), page.locator("#limits [name=max_depth]")
        depth.fill("12")
        rate.fill("fast")
        page.keyboard.press("Enter")
        expect(page.locator("#limits").get_by_role("alert")).to_contain_text("rate")
        expect(rate).to_have_value("fast")
        expect(rate).to_be_focused()
        expect(page.locator("#limits label", has=page.locator("[name=rate]"))).to_contain_text("now 50/s")
        expect(page.locator("#live")).to_have_attribute("data-state", "paused")
        expect(depth).to_have_value("12")
        assert serious(page) == []
        rate.fill("20/s")
        page.keyboard.press("Enter")

        expect(page.locator("#toast")).to_contain_text("changed rate, max_depth")
        assert page.url.endswith("/lanes/kept")
    assert (store.lanes()["kept"]["rate"], store.lanes()["kept"]["max_depth"]) == ("20/s", 12)


def test_settings_that_are_refused_are_kept_in_their_open_fold(browser: Browser, seeded: Seeded) -> None:
    make_lane(seeded, "folded")
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/lanes/folded")
        page.locator("#rest summary").click()
        page.locator("#rest [name=timeout]").fill("99x")
        page.locator("#rest [name=lease]").fill("45s")
        page.locator("#rest [name=mode]").select_option("block_on_error")
        page.get_by_role("button", name="Change settings").click()
        expect(page.locator("#rest").get_by_role("alert")).to_contain_text("timeout")
        expect(page.locator("#rest [name=timeout]")).to_have_value("99x")
        expect(page.locator("#rest [name=lease]")).to_be_visible()
        expect(page.locator("#rest [name=lease]")).to_have_value("45s")
        expect(page.locator("#rest [name=mode]")).to_have_value("block_on_error")
        page.reload()  # the browser sends the form again
        expect(page.locator("#rest [name=lease]")).to_have_value("45s")
        page.goto(page.url)
        expect(page.locator("#rest [name=lease]")).not_to_have_value("45s")
        assert page.url.endswith("/lanes/folded")


def test_who_comes_second_is_told_what_the_first_one_did(browser: Browser, seeded: Seeded) -> None:
    store = seeded.client.store
    make_lane(seeded, "both", rate="5/s")
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/lanes/both")
        rate = page.locator("#limits [name=rate]")
        rate.fill("9/s")
        store.put_lane(lane("both", rate="7/s"), actor="eve")
        page.keyboard.press("Enter")
        expect(page.locator("#limits").get_by_role("alert")).to_contain_text("version 2 now")
        expect(rate).to_have_value("9/s")
        expect(page.locator("#limits label", has=page.locator("[name=rate]"))).to_contain_text("now 7/s")
        assert store.lanes()["both"]["rate"] == "7/s"
        rate.press("Enter")

        expect(page.locator("#toast")).to_contain_text("changed rate")
    assert store.lanes()["both"]["rate"] == "9/s"


def test_a_lane_or_pool_made_anew_under_its_name_is_not_the_one_that_the_form_was_about(
    browser: Browser, seeded: Seeded
) -> None:
    store = seeded.client.store
    make_lane(seeded, "reborn", rate="5/s")
    store.put_pool(pool("reborn", rate="5/s"), actor="test")
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/lanes/reborn")
        rate = page.locator("#limits [name=rate]")
        rate.fill("9/s")
        before = store.lanes()["reborn"]
        store.delete_lane("reborn", actor="eve")
        again = store.put_lane(lane("reborn", sink="console", rate="7/s"), actor="eve")
        assert (again.version, again.id != before.id) == (before.version, True)
        page.keyboard.press("Enter")
        expect(page.locator("#limits").get_by_role("alert")).to_contain_text("somebody changed it")
        expect(rate).to_have_value("9/s")
        expect(page.locator("#limits label", has=page.locator("[name=rate]"))).to_contain_text("now 7/s")
        assert store.lanes()["reborn"]["rate"] == "7/s"
        rate.press("Enter")  # he has seen it
        expect(page.locator("#toast")).to_contain_text("changed rate")

        opened(page, seeded, "/pools")
        page.locator("#pool-reborn").get_by_role("button", name="Change").click()
        sheet = page.locator("#edit-reborn")
        sheet.locator("[name=rate]").fill("9/s")
        store.delete_pool("reborn", actor="eve")
        store.put_pool(pool("reborn", rate="7/s"), actor="eve")
        page.keyboard.press("Enter")
        expect(sheet.get_by_role("alert")).to_contain_text("somebody changed it")
        expect(sheet.locator("[name=rate]")).to_have_value("9/s")
    assert (store.lanes()["reborn"]["rate"], store.pools()["reborn"].rate) == ("9/s", "7/s")


def test_a_small_sheet_that_is_refused_stays_open_and_says_why(browser: Browser, seeded: Seeded) -> None:
    store = seeded.client.store
    make_lane(seeded, "sheets")
    seeded.client.enqueue("sheets", {}, run_at=store.now() + timedelta(days=1))
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/lanes/sheets")
        page.get_by_role("button", name="Pause").click()
        sheet = page.locator("#pause")
        sheet.locator("[name=until]").select_option("4h")
        sheet.locator("[name=reason]").fill("   ")  # which a browser takes for something
        page.keyboard.press("Enter")
        expect(sheet.get_by_role("alert")).to_contain_text("say why")
        expect(sheet.locator("[name=until]")).to_have_value("4h")
        expect(page.locator("#toast")).to_have_count(0)
        assert (store.lanes()["sheets"].paused, serious(page)) == (False, [])
        sheet.locator("[name=reason]").fill("they move")
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text('Lane "sheets" is paused until')
        assert page.url.endswith("/lanes/sheets")

        page.goto("/bulk?verb=hold&q=lane:sheets")  # no sheet, and it stays as well
        page.locator("[name=rate]").fill("fast")
        page.locator("[name=reason]").fill("not today")
        page.keyboard.press("Enter")
        expect(page.locator("main form").get_by_role("alert")).to_contain_text("rate")
        expect(page.locator("[name=reason]")).to_have_value("not today")
        page.locator("[name=rate]").fill("5")
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text("It has begun.")


def test_who_has_no_script_is_told_on_the_next_page_and_a_script_by_the_status(seeded: Seeded) -> None:
    make_lane(seeded, "plain")
    sent = {"data": {"reason": " ", "next": "/lanes"}}
    by_hand = seeded.http.request("POST", "/lanes/plain/pause", **sent)
    by_script = seeded.http.request("POST", "/lanes/plain/pause", headers={"HX-Request": "true"}, **sent)

    assert (by_hand.status_code, by_hand.headers["location"]) == (303, "/lanes")
    assert (by_script.status_code, by_script.text) == (422, "reason: say why: it is kept in the audit")
    assert by_script.headers["content-type"].startswith("text/plain")


def test_a_refused_form_says_so_by_its_status(seeded: Seeded) -> None:
    store, http = seeded.client.store, seeded.http
    make_lane(seeded, "told")
    store.put_pool(pool("told", rate="5/s"), actor="test")
    stale = {"name": "told", "tag": '"77"', "rate": "9/s"}
    user = {"name": "zoe", "role": "viewer", "password": "abc-short"}
    sent = {
        ("/lanes/told/set", 422): {"tag": f'"{store.lanes()["told"].version}"', "rate": "fast"},
        ("/lanes/told/set", 412): stale,
        ("/pools/set", 412): stale,
        ("/pools/set", 422): {"name": "told", "rate": "9/s"},
        ("/access", 422): {"name": "n\0n", "role": "viewer"},
        ("/access/users", 422): user,
        (f"/jobs/{seeded.ids['dead']}/edit", 422): {"payload": "[1, 2]", "reason": " "},
    }
    pages = {key: http.request("POST", key[0], data=fields) for key, fields in sent.items()}

    assert [page.status_code for page in pages.values()] == [status for _, status in sent]
    assert all(page.text.count('role="alert"') == 1 for page in pages.values())
    assert "[1, 2]</textarea>" in pages[f"/jobs/{seeded.ids['dead']}/edit", 422].text
    assert user["password"] not in pages["/access/users", 422].text
    assert 'value="zoe"' in pages["/access/users", 422].text
    assert "now 5/s" in pages["/pools/set", 412].text
    assert http.get("/pools/set", follow_redirects=True).url.path == "/pools"
    assert http.get("/access/users", follow_redirects=True).url.path == "/access"


def test_a_sheet_that_is_refused_is_open_again_with_what_was_written(
    browser: Browser, seeded: Seeded
) -> None:
    store = seeded.client.store
    with tab(browser, seeded.url, complaints=[]) as page:
        opened(page, seeded, "/pools")
        page.get_by_role("button", name="New pool").click()
        sheet = page.locator("#new-pool")
        sheet.locator("[name=name]").fill("mailers")
        sheet.locator("[name=key]").select_option("tenant")
        sheet.locator("[name=rate]").fill("fast")
        page.keyboard.press("Enter")
        expect(sheet.get_by_role("alert")).to_contain_text("rate")
        expect(sheet.locator("[name=name]")).to_have_value("mailers")
        expect(sheet.locator("[name=key]")).to_have_value("tenant")
        assert serious(page) == []
        sheet.locator("[name=rate]").fill("5/s")
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text("is as you said")

        page.locator("#pool-mailers").get_by_role("button", name="Change").click()
        sheet = page.locator("#edit-mailers")
        sheet.locator("[name=max_in_flight]").fill("4")
        store.put_pool(pool("mailers", rate="6/s"), actor="eve")
        page.keyboard.press("Enter")
        expect(sheet.get_by_role("alert")).to_contain_text("version 2 now")
        expect(sheet.locator("[name=max_in_flight]")).to_have_value("4")
        expect(sheet.locator("label", has_text="Rate")).to_contain_text("now 6/s")
        store.delete_pool("mailers", actor="eve")
        sheet.locator("[name=max_in_flight]").press("Enter")
        expect(page.locator("#new-pool").get_by_role("alert")).to_contain_text("is not there")
        expect(page.locator("#new-pool [name=max_in_flight]")).to_have_value("4")
        page.locator("#new-pool").get_by_role("link", name="Not now").click()
        page.wait_for_url("**/pools")
    assert "mailers" not in store.pools()


def test_a_lane_whose_retry_is_nested_too_deeply_is_refused(seeded: Seeded) -> None:
    fields = {"name": "deep", "sink": "console", "retry": "[" * 3_000}
    refused = seeded.http.request("POST", "/new-lane", data=fields)
    assert (refused.status_code, "it is nested too deeply" in refused.text) == (422, True)


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
