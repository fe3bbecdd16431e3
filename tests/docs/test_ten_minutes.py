"""The first ten minutes of somebody new, by the page that leads through them, with a stopwatch.

What is run is what the page prints; only ports, ids and the database differ. Times are told, not judged: this
machine may be busy. `pytest -s` shows them. Judged is how long `penstock dev` computes until its page and
its first jobs are there: so long it takes on a machine that has nothing else to do.
"""

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.chaos.processes import Process, start
from tests.servers import free_port

T = TypeVar("T")
PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "ten-minutes.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITHIN_S = 90.0
STARTS_WITHIN_S = 5.0


class Newcomer:
    """Somebody with terminals in one folder, who types what the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        self.environment = kept | {"PATH": path, "PENSTOCK_PORT": str(self.port), "PYTHONUNBUFFERED": "1"}
        self.terminals: list[Process] = []
        self.typed: list[str] = []
        self._began = time.monotonic()

    def types(self, line: str, *, code: int = 0, **instead: str) -> "subprocess.CompletedProcess[str]":
        """Run a line of the page and wait for its end; `instead` are words that are the reader's own."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self._line(line, instead)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}{done.stderr}"
        return done

    def leaves_running(self, line: str, **instead: str) -> Process:
        """Run a line of the page in a terminal of its own."""
        command = self._line(line, instead).split()
        place = f"terminal-{len(self.terminals)}"
        process = start(place, self.folder, *command, environment=self.environment)
        self.terminals.append(process)
        return process

    def sees(self, what: str, look: Callable[[], T]) -> T:
        """Wait until there is something to see."""
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            found = look()
            if found:
                return found
            time.sleep(0.1)
        told = "\n".join(f"{one.name}: {one.said[-1500:]}{one.told[-1500:]}" for one in self.terminals)
        raise AssertionError(f"never saw {what}\n{told}")

    def changes(self, lane: str) -> int:
        """Count how often a node has said that new settings of a lane are in force."""
        return sum(f"{one.said}{one.told}".count(f"{lane}: version") for one in self.terminals)

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def presses(self, button: str, action: str) -> None:
        """Press a button of the dashboard that opens nothing else."""
        assert button in self.get(action.rpartition("/")[0])
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{action}", data=b"")
        request.add_header("Content-Type", "application/x-www-form-urlencoded")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
            assert answer.status == 200

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(json.loads(self.get(f"/api/jobs/{job_id}")))

    def lane(self, name: str) -> dict[str, Any]:
        lanes = json.loads(self.get("/api/stats"))["lanes"]
        return dict(next((lane for lane in lanes if lane["lane"] == name), {}))

    def left(self, name: str) -> int:
        lane = self.lane(name)
        return int(lane["pending"] + lane["claimed"])

    @contextmanager
    def minute(self, at: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        now = time.monotonic()
        print(f"{at:>6}  took {now - began:5.1f} s, {now - self._began:5.1f} s in all")  # noqa: T201

    def _line(self, line: str, instead: dict[str, str]) -> str:
        assert line in PAGE, f"not on the page: {line}"
        self.typed.append(line)
        for word, own in instead.items():
            line = line.replace(word, own)
        return line

    def leaves(self) -> None:
        for terminal in self.terminals:
            if terminal.alive:
                terminal.kill()


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    somebody = Newcomer(tmp_path)
    yield somebody
    somebody.leaves()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["most", "whole"])
def test_the_first_ten_minutes(newcomer: Newcomer, pg18_dsn: str, *, whole: bool) -> None:
    """The whole waits for the lease of a node that was killed; tests/chaos kills nodes all the time."""
    steps = [start_and_look, unstick, own_job, own_program, own_endpoint, own_rate]
    for step in (*steps, pull_the_plug) if whole else steps:
        with newcomer.minute(step.__name__):
            step(newcomer)
    with newcomer.minute("postgresql"):
        two_nodes(newcomer, pg18_dsn)

    printed = set(re.findall(r"^(?:penstock|seq|pkill) .*$", PAGE, re.MULTILINE))
    plug = PAGE.partition("## 8:00")[2].partition("## 10:00")[0]
    left = {line for line in printed if line not in newcomer.typed}
    assert left == set() if whole else all(line in plug for line in left)


def start_and_look(newcomer: Newcomer) -> None:
    dev = newcomer.leaves_running("penstock dev --demo")
    newcomer.sees("where the page is", lambda: "page   http://127.0.0.1:" in dev.said)
    assert "store  sqlite:///penstock.db (created)" in dev.said
    assert "none needed: only this machine can reach it" in dev.said
    assert [line.split()[1] for line in dev.said.splitlines() if line.startswith("  penstock ")] == [
        "enqueue",
        "jobs",
        "top",
    ]
    newcomer.sees("a first job", lambda: newcomer.lane("orders").get("succeeded"))
    assert computed(dev) < STARTS_WITHIN_S
    page = newcomer.sees("figures that move", lambda: moving(newcomer.get("/")))
    assert "Pause everything" in page
    failing = re.compile(r'^penstock_attempts_total\{lane="sms",outcome="retry"\}', re.MULTILINE)
    newcomer.sees("a lane that fails on purpose", lambda: failing.search(newcomer.get("/metrics")))
    assert "orders" in newcomer.types("penstock top --once").stdout


def computed(process: Process) -> float:
    """Return how many seconds of a processor a command has used."""
    fields = Path(f"/proc/{process.popen.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def moving(page: str) -> str | None:
    """Return a page whose chart of what was sent is not flat."""
    [chart] = re.findall(r'id="throughput" data-plot="([^"]*)"', page) or ["{}"]
    columns = json.loads(html.unescape(chart)).get("columns", [])
    return page if any(columns[1:2] and columns[1]) else None


def unstick(newcomer: Newcomer) -> None:
    newcomer.sees("a blocked group", lambda: json.loads(newcomer.get("/api/stats"))["blocked"])
    blocker = newcomer.types("penstock groups blocked").stdout.split()[-1]
    shown = newcomer.get("/groups?lane=orders&group=acme")
    assert all(word in shown for word in ("Resolve…", blocker, 'value="skip"', 'value="retry"'))
    assert "It is dead" in newcomer.get(f"/jobs/{blocker}")
    waiting = newcomer.types('penstock jobs list "lane:orders group:acme" --due --limit 1').stdout.split()[0]
    why = newcomer.types("penstock jobs explain ID", ID=waiting).stdout
    assert blocker in why
    assert "422" in why
    assert all(verb in why for verb in ("retry", "skip", "cancel"))

    skip = 'penstock groups skip orders acme --reason "recalled" --yes'
    assert f"{blocker}\tskipped" in newcomer.types(skip).stdout
    newcomer.sees("that the group went on", lambda: newcomer.job(waiting)["state"] == "succeeded")


def own_job(newcomer: Newcomer) -> None:
    done = newcomer.types("""penstock enqueue hello '{"n": 1}' --at +3s --wait""")

    assert "succeeded, sent " in done.stderr
    page = re.search(r"http://127\.0\.0\.1:(\d+)(/jobs/\w+)", done.stderr)
    assert page is not None
    assert (page[1], "succeeded" in newcomer.get(page[2])) == (str(newcomer.port), True)
    assert " ms after it was due" in done.stderr
    assert done.stdout.strip() in newcomer.terminals[0].said  # the lane prints


def own_program(newcomer: Newcomer) -> None:
    [code] = PYTHON.findall(PAGE)
    for _ in range(2):
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=newcomer.folder, check=True, timeout=WITHIN_S)

    assert newcomer.types("penstock jobs list --key order-1").stdout.count("\n") == 1


def own_endpoint(newcomer: Newcomer) -> None:
    port = str(free_port())
    listener = newcomer.leaves_running(
        "penstock listen --port 9000 --store sqlite:///penstock.db", **{"9000": port}
    )
    newcomer.sees("the receiver", lambda: "signatures checked" in listener.said)
    newcomer.types(
        "penstock lanes set shop --create sink=http target=http://127.0.0.1:9000/hook", **{"9000": port}
    )
    newcomer.types("""penstock enqueue shop '{"n": 1}' --group customer-7 --wait""")
    line = newcomer.sees("the request", lambda: listener.said.splitlines()[1:])[0]
    assert "customer-7" in line
    assert "bad signature" not in line
    newcomer.presses("Send a test job", "/lanes/shop/test")
    newcomer.sees("the test job", lambda: listener.said.splitlines()[2:])


def own_rate(newcomer: Newcomer) -> None:
    told = newcomer.changes("hello")
    newcomer.types("penstock lanes set hello rate=5/s")
    newcomer.sees("the new rate in force", lambda: newcomer.changes("hello") > told)
    before = newcomer.lane("hello")["succeeded"]
    newcomer.types("""seq 20 | sed 's/.*/{"payload": {"n": &}}/' | penstock enqueue hello -""")
    newcomer.types("penstock top --once")
    newcomer.sees("all twenty", lambda: newcomer.lane("hello")["succeeded"] >= before + 20)
    ended = json.loads(newcomer.get("/api/jobs?lane=hello&state=succeeded&limit=20"))["jobs"]
    sent = sorted(datetime.fromisoformat(job["claimed_at"]) for job in ended)
    finished = sorted(datetime.fromisoformat(job["finished_at"]) for job in ended)
    assert (finished[-1] - sent[0]).total_seconds() >= 2.9  # 15 more than the burst, at five a second


def pull_the_plug(newcomer: Newcomer) -> None:
    newcomer.types("penstock lanes set hello lease=3s rate=50/s")
    newcomer.types("""seq 20 | sed 's/.*/{"payload": {"n": &}}/' | penstock enqueue hello - --at +3s""")
    newcomer.sees(
        "claims", lambda: newcomer.lane("hello")["claimed"] or newcomer.lane("hello")["pending"] < 20
    )
    newcomer.typed.append('pkill -9 -f "penstock dev"')  # there may be others of that name on this machine
    newcomer.terminals[0].kill()
    assert newcomer.terminals[0].popen.returncode == -signal.SIGKILL

    dev = newcomer.leaves_running("penstock dev --demo")
    newcomer.sees("where the page is", lambda: "page   http://127.0.0.1:" in dev.said)
    newcomer.sees("what was recovered", lambda: "hello: recovered what a node" in dev.told)
    newcomer.sees("that nothing is left", lambda: newcomer.left("hello") == 0)
    assert newcomer.types('penstock jobs list "lane:hello state:pending,claimed"').stdout == ""


def two_nodes(newcomer: Newcomer, url: str) -> None:
    assert "export PENSTOCK_STORE=postgresql://" in PAGE
    for terminal in newcomer.terminals:
        if terminal.alive:
            terminal.signal(signal.SIGINT)
    newcomer.sees("that all stopped", lambda: not any(one.alive for one in newcomer.terminals))
    newcomer.environment["PENSTOCK_STORE"] = url
    newcomer.types("penstock migrate")
    newcomer.types("penstock lanes set hello --create")
    first = newcomer.leaves_running("penstock serve")
    newcomer.sees("the first node", lambda: "http://127.0.0.1:" in first.said)
    second = newcomer.leaves_running("penstock serve --port 7071", **{"7071": "0"})
    newcomer.sees("the second node", lambda: "http://127.0.0.1:" in second.said)

    def two() -> bool:
        stats = json.loads(newcomer.get("/api/stats"))
        return len(stats["nodes"]) == 2 and stats["leader"] is not None

    newcomer.sees("two nodes and a leader", two)
    newcomer.types("penstock top --once")
