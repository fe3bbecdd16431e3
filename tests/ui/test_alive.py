"""The dashboard of a whole node: its first run, a replay in bulk, and a node that dies and comes back."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Browser, expect

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
