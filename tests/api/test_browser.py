"""The status page in a real browser, if this machine has one."""

import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.ports.store import Ask
from tests.api.node import Http
from tests.client.conftest import put_lane

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=3000",
]  # fmt: skip
MARKUP = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


def seen(http: Http, tmp_path: Path) -> str:
    """Return the page as it stands after three seconds; what the browser complained about fails the test."""
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path}/profile", "--dump-dom", http.node.url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done.stdout


def test_an_empty_node_shows_the_next_command(http: Http, tmp_path: Path) -> None:
    page = seen(http, tmp_path)

    assert re.search(r'<section id="empty">', page)
    assert 'penstock enqueue <span data-lane="">orders</span> \'{"n": 1}\'' in page
    assert '<p id="live" role="status" class="on">live</p>' in page


def test_numbers_jobs_and_blocked_groups_appear_as_text(http: Http, tmp_path: Path) -> None:
    client = http.node.client
    put_lane(client.store, "later")
    http.post("/api/jobs", {"jobs": [{"lane": "later"}] * 3})
    job = {"lane": "orders", "group": MARKUP, "mode": "block_on_error"}
    first = http.post("/api/jobs", job).json()["id"]
    http.post("/api/jobs", {"jobs": [job] * 4})
    claim = client.store.claim_groups(
        Ask(lane="orders", node=client.store.register_node("test"), lease=timedelta(minutes=5))
    )
    assert claim is not None
    client.report(first, 1, "failed", error=MARKUP, retryable=False)

    page = seen(http, tmp_path)

    assert '<section id="empty" hidden' in page
    row = re.search(r'<tr data-lane="later">(.*?)</tr>', page)
    assert row is not None
    assert '<td data-name="pending" class="">3</td><td data-name="due" class="">3</td>' in row[1]
    assert f'href="/api/jobs/{first}"' in page
    assert "4 wait for" in page
    assert "<img" not in page
    assert "&lt;img src=x" in page
