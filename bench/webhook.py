"""Webhooks on this machine: `penstock serve` in one process, `penstock listen` in another.

The jobs are there before the lane is enabled. Rates are of the jobs' own times in the store, from the first
claim to the last answer on record; CPU is that of the processes over the same jobs.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.dispatch import opened, wait_for
from bench.record import Record
from bench.shapes import Backlog, payloads
from bench.suites import Place
from penstock.client import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.ports.store import Store

EMPTY = Backlog()
PENSTOCK = (sys.executable, "-m", "penstock")
CONFIG = '[http]\nallow_networks = ["127.0.0.0/8"]\n'
LANE = "webhooks"
GROUPS = 500
TARGETS = 9
ROUNDS = 3
ROUNDS_BESIDE = 5
SETTLE_S = 1.5
OTHERS_KEEP = 0.7


@dataclass(slots=True)
class Worker:
    """A process of Penstock that says where it listens, and what it has cost."""

    process: "subprocess.Popen[str]"
    url: str = ""

    def cpu(self) -> float:
        """Return its CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def penstock(folder: Path, *command: str) -> Iterator[Worker]:
    """Run a command until the block ends, and then until it has ended itself."""
    process = subprocess.Popen(  # noqa: S603 - our own
        [*PENSTOCK, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    worker = Worker(process)
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, f"{command} ended"
            found = re.search(r"http://[\d.]+:\d+", line)
        worker.url = found[0]
        yield worker
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def webhook(record: Record, where: Place, *, full: bool) -> None:
    """Run all of it on one store."""
    jobs = 50_000 if full else 15_000
    ways = {"without order": None, f"in {GROUPS} ordered groups": GROUPS}
    record.rounds(
        ROUNDS,
        [
            (f"{where.name}: webhooks {way}", lambda way=way: throughput(record, where, way, ways[way], jobs))
            for way in ways
        ],
    )
    for way in ways:
        record.rate(f"{where.name}: webhooks {way}", (where.name, "webhook", way))
        node, server, listener = (
            record.median(where.name, "webhook", way, side) for side in ("node", "server", "listener")
        )
        record.note(
            f"{where.name}: webhooks {way}, CPU of node, database, receiver",
            f"{node:.0f}, {server:.0f}, {listener:.0f} us/job",
        )
    hanging(record, where, jobs)


def throughput(record: Record, where: Place, way: str, groups: int | None, jobs: int) -> None:
    """Deliver so many jobs to one receiver, which checks that none is missing, repeated or out of order."""
    key = (where.name, "webhook", way)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        url = stack.enter_context(where.copy(EMPTY))
        store = stack.enter_context(opened(url))
        listener = stack.enter_context(penstock(folder, "listen", "--port", "0", "--quiet", "--json"))
        mode = "block_on_error" if groups else "immediate"
        settings = {"sink": "http", "target": listener.url, "mode": mode}
        store.put_lane(lane(LANE, enabled=False, **settings), actor="bench")
        fill(store, jobs, groups=groups)
        node = stack.enter_context(serving(folder, url))
        before = node.cpu(), where.cpu(url), listener.cpu()
        store.put_lane(lane(LANE, **settings), actor="bench")
        wait_for(store, LANE, jobs, seconds=600)
        after = node.cpu(), where.cpu(url), listener.cpu()
        seconds = took(where, url)
        end = listener.process
        end.send_signal(signal.SIGINT)
        assert end.stdout is not None
        summary = json.loads(end.stdout.read().splitlines()[-1])["summary"]
    wrong = {name: summary[name] for name in ("turned_down", "duplicates", "out_of_order")}
    assert (summary["taken"], set(wrong.values())) == (jobs, {0}), summary
    record.measured(*key, value=jobs / seconds, unit="jobs/s")
    for side, was, now in zip(("node", "server", "listener"), before, after, strict=True):
        record.measured(*key, side, value=(now - was) / jobs * 1e6, unit="us/job of CPU")


def hanging(record: Record, where: Place, jobs: int) -> None:
    """One target takes every request and never answers: what the others lose by it, against a run without."""
    ways = ("alone", "beside one that never answers")
    record.rounds(
        ROUNDS_BESIDE,
        [
            (
                f"{where.name}: webhooks to {TARGETS} targets, {way}",
                lambda way=way: beside(record, where, way, jobs),
            )
            for way in ways
        ],
    )
    for way in ways:
        record.rate(f"{where.name}: webhooks to {TARGETS} targets, {way}", (where.name, "webhook", way))
    alone, not_alone = ((where.name, "webhook", way) for way in ways)
    record.share(
        f"{where.name}: webhooks, {TARGETS} targets beside one that never answers / alone",
        not_alone,
        alone,
        OTHERS_KEEP,
    )


def beside(record: Record, where: Place, way: str, jobs: int) -> None:
    """Deliver to several targets of one lane, every tenth job to one that hangs where that is wanted."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        url = stack.enter_context(where.copy(EMPTY))
        store = stack.enter_context(opened(url))
        listen = ("listen", "--host", "0.0.0.0", "--port", "0", "--quiet")  # noqa: S104 - 127.0.0.1 to .9
        port = stack.enter_context(penstock(folder, *listen)).url.rpartition(":")[2]
        targets = [f"http://127.0.0.{number}:{port}/" for number in range(1, TARGETS + 1)]
        if way != "alone":
            targets.append(stack.enter_context(silence()))
        store.put_lane(lane(LANE, enabled=False, sink="http"), actor="bench")
        good = jobs // TARGETS * TARGETS
        fill(store, good // TARGETS * len(targets), targets=targets)
        stack.enter_context(serving(folder, url))
        store.put_lane(lane(LANE, sink="http"), actor="bench")
        wait_for(store, LANE, good, seconds=600)
        seconds = took(where, url)
        store.put_lane(lane(LANE, sink="http", enabled=False), actor="bench")
    record.measured(where.name, "webhook", way, value=good / seconds, unit="jobs/s")


def fill(store: Store, jobs: int, *, groups: int | None = None, targets: Sequence[str] = ()) -> None:
    """Enqueue the jobs, those of all groups and targets in turn."""
    made: Iterator[dict[str, Any]] = (
        {
            "lane": LANE,
            "payload": json.loads(payload),
            **({"group": f"group-{number % groups}", "sequence": number} if groups else {}),
            **({"target": targets[number % len(targets)]} if targets else {}),
        }
        for number, payload in enumerate(payloads(jobs))
    )
    Client(store).enqueue_many(made)


@contextmanager
def serving(folder: Path, url: str, *options: str) -> Iterator[Worker]:
    """Run a node on the store."""
    address = url if url.startswith("postgresql:") else f"sqlite:///{url}"
    (folder / "penstock.toml").write_text(CONFIG, encoding="utf-8")
    command = (
        "serve",
        "--store",
        address,
        "--config",
        "penstock.toml",
        "--port",
        "0",
        "--drain-timeout",
        "1s",
        *options,
    )
    with penstock(folder, *command) as node:
        time.sleep(SETTLE_S)
        yield node


@contextmanager
def silence() -> Iterator[str]:
    """Accept connections, read what comes, and never say a word."""
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.10", 0), backlog=1024) as server:

        def accept() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.10:{server.getsockname()[1]}/"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for connection in kept:
                connection.close()


def took(where: Place, url: str) -> float:
    """Return the seconds from the first claim to the end of the last job that succeeded."""
    state = JobState.SUCCEEDED.value
    sql = f"SELECT min(claimed_at), max(finished_at) FROM penstock.history WHERE state = {state}"
    [(first, last)] = where.rows(url, sql)
    return float((last - first).total_seconds() if isinstance(last, datetime) else (last - first) / 1e6)
