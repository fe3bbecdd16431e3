"""Take a picture of every screen, in all sizes and themes, or with `--docs` those of docs/screens.

Runs `penstock dev --demo` on a store of its own until there is something to see, and the machine's Chromium.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any, cast

from playwright.sync_api import Browser, Page, sync_playwright

from penstock import Client
from penstock.granting import grant_key, grant_login
from penstock.stores.connect import connect

ROOT = Path(__file__).parent.parent
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
WIDTHS = (390, 1280, 1920)
TALLEST = 1500
SCREENS = {
    "overview": "/",
    "lanes": "/lanes",
    "lane": "/lanes/orders",
    "jobs": "/jobs",
    "job": "/jobs?q=lane:orders+state:dead",
    "groups": "/groups",
    "dead": "/dead",
    "bulk": "/bulk?verb=retry&q=lane:mail+state:dead",
    "operations": "/operations",
    "operation": "/operations",
    "pools": "/pools",
    "nodes": "/nodes",
    "history": "/history",
    "audit": "/audit",
    "access": "/access",
}
# To be looked at, not for the docs.
FORMS = {
    "new-job": "/jobs/new?lane=orders",
    "new-lane": "/new-lane",
    "edit": "/jobs?q=lane:orders+state:dead",
    "refused-lane": "/new-lane",
    "palette": "/lanes",
    "help": "/lanes",
    "menu": "/lanes",
    "sheet": "/lanes/orders",
    "pool-sheet": "/pools",
    "key-sheet": "/access",
    "range": "/jobs",
    "error": "/nowhere",
    "login": "/login",
}
SILENT = frozenset({"login", "error"})  # which nothing refreshes
SHEETS = {"sheet": "Pause", "pool-sheet": "New pool", "key-sheet": "New key", "range": "Time range"}
EMPTY = {"first": "/"}


@contextmanager
def node(*options: str) -> Iterator[tuple[str, str]]:
    """Run a node on a store of its own; yield its address and that of its store."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "penstock", "dev", *options, "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
        try:
            said = cast("IO[str]", process.stdout)
            url = next(line.split()[1] for line in said if line.startswith("  page"))
            Thread(target=said.read, daemon=True).start()  # a full pipe would stop the node
            yield url, f"sqlite:///{folder}/penstock.db"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def furnish(url: str) -> None:
    """Put in what the demonstration does without: keys, users, a paused target, a bulk operation at work."""
    with closing(connect(url)) as store:
        by: dict[str, Any] = {"actor": "ann", "entropy": os.urandom, "tenant": None}
        grant_key(store, "checkout", ["enqueue"], lasts=timedelta(days=90), **by)
        grant_key(store, "acme", ["read", "enqueue"], lasts=None, **by | {"tenant": "acme"})
        for name, role in (("ann", "admin"), ("bob", "operator"), ("eve", "viewer")):
            grant_login(store, name, password=f"{name} and a long word", roles=[role], **by)
        until = store.now() + timedelta(hours=2)
        why = {"actor": "ann", "reason": "they move house"}
        store.pause_target("https://api.example.org", paused=True, until=until, **why)
        ann = Client(store, actor="ann")
        ann.start("retry", "lane:mail state:dead", reason="the mailboxes are back", rate=1)


def pictured(page: Page, name: str, path: str, target: Path) -> None:
    """Open a screen and take its picture; the job, and the operation, is the first one of a list."""
    page.goto(path)
    if name in ("job", "operation", "edit"):
        page.locator("tbody tr a").first.click()
    if name == "edit":
        page.locator("main a.button", has_text="Edit").click()
    if name not in SILENT:
        page.wait_for_selector('#live:is([data-state="live"], [data-state="waits"])')
    opened(page, name)
    page.wait_for_timeout(700)
    height = min(TALLEST, int(page.evaluate("document.documentElement.scrollHeight")))
    width = page.viewport_size["width"] if page.viewport_size else 1280
    page.set_viewport_size({"width": width, "height": max(height, 800)})
    page.screenshot(path=target)
    page.set_viewport_size({"width": width, "height": 800})


def opened(page: Page, name: str) -> None:
    """Open what lies over a screen, or have its form refused."""
    if name in SHEETS:
        page.locator("main").get_by_role("button", name=SHEETS[name], exact=True).first.click()
    if name == "palette":
        page.keyboard.press("Control+k")
        page.keyboard.type("or")
    if name == "help":
        page.keyboard.press("?")
    if name == "menu" and (page.viewport_size or {"width": 0})["width"] == min(WIDTHS):
        page.get_by_role("button", name="Menu").click()
    if name == "refused-lane":
        page.locator("[name=name]").fill("invoices")
        page.locator("summary").click()
        page.locator("[name=lease]").fill("soon")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", action="store_true", help="1280 px, light, into docs/screens")
    parser.add_argument("--warm-up", type=float, default=100.0, metavar="SECONDS")
    parser.add_argument("--url", help="a node that runs already")
    options = parser.parse_args()
    folder = ROOT / ("docs/screens" if options.docs else "build/screens")
    folder.mkdir(parents=True, exist_ok=True)
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        sys.exit("there is no chromium on this machine")
    runs = [(1280, "light")] if options.docs else [(w, t) for w in WIDTHS for t in ("light", "dark")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        screens = SCREENS if options.docs else SCREENS | FORMS
        if options.url:
            taken(browser, options.url, screens, runs, folder, docs=options.docs)
        else:
            with node("--demo") as (url, store):
                Event().wait(options.warm_up)
                furnish(store)
                taken(browser, url, screens, runs, folder, docs=options.docs)
            if not options.docs:
                with node() as (url, _):
                    taken(browser, url, EMPTY, runs, folder, docs=False)
    size = sum(file.stat().st_size for file in folder.glob("*.png"))
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}, {size / 1e6:.1f} MB")


def taken(
    browser: Browser,
    url: str,
    screens: Mapping[str, str],
    runs: list[tuple[int, str]],
    folder: Path,
    *,
    docs: bool,
) -> None:
    """Take all pictures of some sizes and themes."""
    for width, theme in runs:
        context = browser.new_context(
            base_url=url, viewport={"width": width, "height": 800}, color_scheme=theme
        )
        page = context.new_page()
        for name, address in screens.items():
            suffix = "" if docs else f"-{width}-{theme}"
            pictured(page, name, address, folder / f"{name}{suffix}.png")
        context.close()


if __name__ == "__main__":
    main()
