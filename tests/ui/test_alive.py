"""The dashboard of a whole node: its first run, a replay in bulk, and a node that dies and comes back."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from penstock import Client
from tests.ui.browsing import serious, tab

PENSTOCK = [sys.executable, "-m", "penstock"]


@contextmanager
def node(path: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `penstock dev` and yield its address."""
    command = [*PENSTOCK, "dev", "--port", str(port), "--store", f"sqlite:///{path}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("  page"):
                break
        yield process, line.split()[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_the_first_page_ticks_itself_until_there_is_an_overview(browser: Browser, tmp_path: Path) -> None:
    with node(tmp_path / "p.db") as (_, url), tab(browser, url) as page:
        page.goto("/")
        expect(page.locator("h1")).to_have_text("Your first job")
        expect(page.locator(".steps li.done")).to_have_count(3)
        assert f"curl {url}/api/jobs" in page.locator("main").inner_text()
        assert serious(page) == []
        page.get_by_role("button", name="Send a demo job").click()

        expect(page.locator("h1")).to_have_text("Overview")
        expect(page.locator("#lane-hello")).to_be_visible()


def test_dead_letters_of_one_cause_are_replayed_in_bulk(browser: Browser, tmp_path: Path) -> None:
    with node(tmp_path / "p.db") as (_, url), Client(f"sqlite:///{tmp_path}/p.db") as client:
        dead = killed(client, 7)
        with tab(browser, url) as page:
            page.goto("/dead")
            page.get_by_role("link", name="Replay…").click()
            expect(page.locator("#matched")).to_have_text("7")
            assert {client.get(job).state.label for job in dead} == {"dead"}
            page.locator("[name=reason]").fill("their API is back")
            page.get_by_role("button", name="Replay 7 jobs").click()

            expect(page.locator("h1 .state")).to_have_text("done")
            expect(page.locator("#done")).to_have_text("7")
            assert serious(page) == []
        for job in dead:
            assert client.wait(job, timedelta(seconds=60)).state.label == "succeeded"
        said = [entry.reason for entry in client.store.audit_log(limit=50).entries]
        assert "their API is back" in said


def killed(client: Client, count: int) -> list[str]:
    """Put jobs in and declare them dead."""
    later = client.store.now() + timedelta(hours=1)
    made = [client.enqueue("hello", {"n": n}, run_at=later).id for n in range(count)]
    for job in made:
        client.hold(job, reason="to kill it")
        client.settle(job, "dead", reason="the test says so")
    client.store.fold_counts()
    return made


def test_a_page_says_that_its_node_is_gone_and_when_it_is_back(browser: Browser, tmp_path: Path) -> None:
    path, complaints = tmp_path / "p.db", list[str]()
    with node(path) as (first, url):
        port = int(url.rpartition(":")[2])
        with tab(browser, url, complaints=complaints) as page:
            page.goto("/lanes")
            expect(page.locator("#live")).to_have_attribute("data-state", "live")
            expect(page.locator("#served")).to_contain_text(f":{first.pid}")
            first.kill()
            first.wait()

            expect(page.locator("#live")).to_contain_text("live updates lost")
            expect(page.locator("body")).to_have_class("stale")
            with node(path, port) as (second, _):
                expect(page.locator("#live")).to_have_attribute("data-state", "live")
                expect(page.locator("body")).not_to_have_class("stale")
                expect(page.locator("#served")).to_contain_text(f":{second.pid}")
    assert [said for said in complaints if "Failed to load resource" not in said] == []


def said_of(pages: Sequence[Page], *texts: str) -> None:
    """Wait until the chips of the pages say this; a page that is lost is dimmed, another is not."""
    for page, text in zip(pages, texts, strict=True):
        expect(page.locator("#live")).to_contain_text(text)
        body = expect(page.locator("body"))
        (body.to_have_class if "lost" in text else body.not_to_have_class)("stale")


def test_whoever_writes_is_told_that_the_node_is_gone_and_loses_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    path, fresh = tmp_path / "p.db", ("paused while you type", "paused while this is open", "live")
    with node(path) as (first, url), tab(browser, url, complaints=[]) as field:
        with Client(f"sqlite:///{path}") as client:
            client.enqueue("hello", {"n": 1}, run_at=client.store.now() + timedelta(hours=1))
        port = int(url.rpartition(":")[2])
        sheet, rows = field.context.new_page(), field.context.new_page()
        pages = [field, sheet, rows]
        field.goto("/lanes/hello")
        field.locator("#limits [name=rate]").fill("7/s")
        sheet.goto("/lanes/hello")
        sheet.get_by_role("button", name="Pause").click()
        sheet.locator("#pause [name=reason]").fill("they move house")
        rows.goto("/jobs")
        rows.locator("#q").fill("lane:he")
        said_of(pages, *fresh)
        first.kill()
        first.wait()

        said_of(pages, *["live updates lost"] * 3)
        sheet.keyboard.press("Enter")
        expect(sheet.locator("#pause").get_by_role("alert")).to_contain_text("No answer came")
        with node(path, port) as (second, _):
            said_of(pages, *fresh)
            expect(field.locator("#served")).to_contain_text(f":{second.pid}")
            expect(field.locator("#limits [name=rate]")).to_have_value("7/s")
            expect(sheet.locator("#pause [name=reason]")).to_have_value("they move house")
            expect(rows.locator("#q")).to_have_value("lane:he")
            sheet.get_by_role("button", name="Pause").last.click()
            expect(sheet.locator("main .notice")).to_contain_text("they move house")


def test_whoever_writes_is_told_that_the_node_does_not_answer(browser: Browser, tmp_path: Path) -> None:
    with node(tmp_path / "p.db") as (process, url), tab(browser, url, complaints=[]) as page:
        page.goto("/lanes/hello")
        page.locator("#limits [name=rate]").fill("7/s")
        said_of([page], "paused while you type")
        process.send_signal(signal.SIGSTOP)
        try:
            said_of([page], "live updates lost")
        finally:
            process.send_signal(signal.SIGCONT)
        said_of([page], "paused while you type")
        expect(page.locator("#limits [name=rate]")).to_have_value("7/s")
