"""Chromium, driven by Playwright, with an ear for everything that it complains about."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.servers import missing

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
AXE = Path(__file__).parent / "vendor" / "axe-4.14.0.min.js"
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """Start the machine's Chromium, or skip with the reason."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("there is no chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(
    browser: Browser,
    base: str,
    *,
    width: int = 1280,
    theme: str = "light",
    complaints: list[str] | None = None,
) -> Iterator[Page]:
    """Open a tab in a profile of its own; at the end nothing may have been complained about."""
    heard: list[str] = [] if complaints is None else complaints
    context = browser.new_context(
        base_url=base,
        viewport={"width": width, "height": 844},
        color_scheme=theme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)

    def noted(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            heard.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    page.on("console", noted)
    page.on("pageerror", lambda error: heard.append(f"script: {error}"))
    try:
        yield page
    finally:
        context.close()
    if complaints is None:
        assert heard == [], heard


def serious(page: Page, *, only: str | None = None) -> list[str]:
    """Return what axe-core finds that keeps people out; `only` one of its rules is asked."""
    page.evaluate(AXE.read_text(encoding="utf-8"))  # not as a script of the page: its CSP forbids that
    found = page.evaluate(
        "async only => (await axe.run(document, {resultTypes: ['violations'],"
        " ...(only ? {runOnly: [only]} : {})})).violations"
        ".filter(v => ['serious', 'critical'].includes(v.impact))"
        ".map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.target.join(' ')).join(' | '))",
        only,
    )
    return [str(each) for each in found]


def overflows(page: Page) -> bool:
    """Say whether the page is wider than the window, or a table than its place."""
    return bool(
        page.evaluate(
            "[document.documentElement, ...document.querySelectorAll('.scroll')]"
            ".some(each => each.scrollWidth > each.clientWidth)"
        )
    )


# Short words of tables that stand on two lines: "order" and below it "s".
BROKEN = """() => [...document.querySelectorAll('main td, main th')].flatMap((cell) => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[\\w.:]{2,10}/g)) {
      const place = document.createRange();
      place.setStart(texts.currentNode, word.index);
      place.setEnd(texts.currentNode, word.index + word[0].length);
      const [before, after] = [word.index - 1, word.index + word[0].length];
      const around = (texts.currentNode.data[before] ?? ' ') + (texts.currentNode.data[after] ?? ' ');
      const lines = new Set([...place.getClientRects()].map((each) => Math.round(each.top)));
      if (!/[\\w./-]/.test(around) && lines.size > 1) found.push(word[0]);
    }
  }
  return found;
})"""


def broken(page: Page) -> list[str]:
    """Return short words of tables that do not stand on one line."""
    return [str(word) for word in page.evaluate(BROKEN)]


# What has the focus, and why nobody would see it; null = Tab has left the page.
FOCUS = """() => {
  const one = document.activeElement;
  if (one === document.body) return null;
  const [style, place] = [getComputedStyle(one), one.getBoundingClientRect()];
  const [x, y] = [place.left + Math.min(place.width / 2, 20), place.top + place.height / 2];
  const there = document.elementFromPoint(x, y);
  const faults = [];
  if (style.outlineStyle === 'none' || style.outlineWidth === '0px') faults.push('no outline');
  if (place.width < 2 || place.height < 2) faults.push('no size');
  if (!there || !(one.contains(there) || there.contains(one))) faults.push('covered');
  return [`${one.tagName} ${one.id || one.textContent.trim().slice(0, 30)}`, faults];
}"""


def unseen(page: Page, *, stops: int) -> list[str]:
    """Return the first stops of the Tab key that nobody would see, and why."""
    faults = []
    page.locator("#main").focus()
    for _ in range(stops):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUS)
        if found is None:
            break
        faults += [f"{found[0]}: {fault}" for fault in found[1]]
    return faults
