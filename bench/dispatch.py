"""What an engine does with time: how late it sends, how well it keeps a rate, what a backlog costs.

Times are those of the machine's clock at the moment the sink is called, in the process of the node; stores
and nodes are on this machine, so there is one clock.
"""

import json
import statistics
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from bench.places import open_store
from bench.record import Record
from bench.shapes import Backlog
from bench.suites import Place
from penstock.client import Client
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.domain.states import JobState, Verb
from penstock.ports.store import Store

NOTHING = 0
EMPTY = Backlog()
SETTLE_S = 1.5


@dataclass
class Calls:
    """What the nodes of a run noted."""

    at: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)


@contextmanager
def nodes(url: str, number: int, calls: Calls, *, batch: int = 1) -> Iterator[None]:
    """Run so many nodes; what they noted is there afterwards."""
    address = url if url.startswith("postgresql:") else f"sqlite:///{url}"
    command = [sys.executable, "-m", "bench.node", address, str(batch)]
    running = [
        subprocess.Popen(  # noqa: S603 - our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(number)
    ]
    try:
        yield
    finally:
        noted = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
        for note in noted:
            calls.rss_mb.append(note["rss_mb"])
            for at, late, name in note["calls"]:
                calls.at.append(at)
                calls.late.append(late)
                calls.lanes.append(name)


def dispatch(record: Record, where: Place, *, full: bool) -> None:
    """Run all of it on one store."""
    with where.copy(EMPTY) as url:
        precision(record, where, url)
    with where.copy(EMPTY) as url:
        latency(record, where, url)
    with where.copy(EMPTY) as url:
        behind_blocked(record, where, url)
    if where.name != "SQLite":
        with where.copy(EMPTY) as url:
            pool_rate(record, where, url, seconds=60 if full else 30)
        with where.copy(EMPTY) as url:
            payments(record, where, url, jobs=500_000 if full else 100_000)


def precision(record: Record, where: Place, url: str) -> None:
    """How late jobs are called that were claimed ahead of their time."""
    with opened(url) as store:
        store.put_lane(lane("exact"), actor="bench")
        client, calls = Client(store), Calls()
        with nodes(url, 1, calls):
            time.sleep(SETTLE_S)
            start = store.now() + timedelta(seconds=3)
            client.enqueue_many(
                {"lane": "exact", "run_at": start + timedelta(milliseconds=4 * n)} for n in range(2_000)
            )
            wait_for(store, "exact", 2_000)
    late = [1000 * value for value in calls.late]
    record.verdict(
        f"{where.name}: look-ahead, call of the sink after run_at",
        f"p50 {quantile(late, 0.5):.1f} ms, p99 {quantile(late, 0.99):.1f} ms, min {min(late):.2f} ms",
        "p99 ≤ 15 ms, never early",
        ok=quantile(late, 0.99) <= 15 and min(late) >= 0,
    )


def latency(record: Record, where: Place, url: str) -> None:
    """From `Client.enqueue` to the call of the sink, at 50 jobs a second."""
    with opened(url) as store:
        store.put_lane(lane("now"), actor="bench")
        client, calls, asked = Client(store), Calls(), []
        with nodes(url, 1, calls):
            time.sleep(SETTLE_S)
            begin = time.monotonic()
            for number in range(1_000):
                time.sleep(max(0.0, begin + number / 50 - time.monotonic()))
                asked.append(time.time())
                client.enqueue("now", {"n": number})
            wait_for(store, "now", 1_000)
    took = [1000 * (at - began) for at, began in zip(sorted(calls.at), asked, strict=True)]
    record.verdict(
        f"{where.name}: Client.enqueue to the call of the sink, 50/s",
        f"p50 {quantile(took, 0.5):.1f} ms, p99 {quantile(took, 0.99):.1f} ms",
        "p50 ≤ 10 ms, p99 ≤ 40 ms",
        ok=quantile(took, 0.5) <= 10 and quantile(took, 0.99) <= 40,
    )


def behind_blocked(record: Record, where: Place, url: str) -> None:
    """A free job's way past 50,000 jobs of blocked groups, against an empty lane.

    A node looks at a SQLite file every 5 ms. Jobs at an even pace would meet it at the same point of that
    time again and again, at another one in each half: they come at an uneven one.
    """
    spread = Random(7)  # noqa: S311
    with opened(url) as store:
        store.put_lane(lane("mixed", mode="block_on_error", retry=["0s"]), actor="bench")
        client = Client(store)
        medians = []
        for blocked in (0, 50_000):
            if blocked:
                block(store, client, groups=5_000, behind=blocked // 5_000)
            calls, took = Calls(), []
            with nodes(url, 1, calls):
                time.sleep(SETTLE_S)
                for number in range(200):
                    took.append(time.time())
                    client.enqueue("mixed", {"n": number}, group=f"free-{blocked}-{number}")
                    time.sleep(spread.uniform(0.01, 0.03))
                wait_for(store, "mixed", 200 + (200 if blocked else 0))
            ways = [1000 * (at - began) for at, began in zip(sorted(calls.at), took, strict=True)]
            medians.append(statistics.median(ways))
    record.verdict(
        f"{where.name}: a free job behind 50,000 blocked ones, against an empty lane",
        f"{medians[1]:.1f} ms / {medians[0]:.1f} ms = {medians[1] / medians[0]:.2f}x",
        "≤ 1.5x",
        ok=medians[1] <= 1.5 * medians[0],
    )


def block(store: Store, client: Client, *, groups: int, behind: int) -> None:
    """Make groups whose first job is dead, with jobs behind it."""
    names = [f"blocked-{number}" for number in range(groups)]
    heads = client.enqueue_many({"lane": "mixed", "group": name} for name in names)
    ids = [answer.id for answer in heads]  # type: ignore[union-attr]
    for start in range(0, len(ids), 1_000):
        store.operate(Verb.HOLD, ids[start : start + 1_000], actor="bench", reason="blocked")
    client.enqueue_many({"lane": "mixed", "group": name} for _ in range(behind) for name in names)


def pool_rate(record: Record, where: Place, url: str, *, seconds: int) -> None:
    """A pool of 200/s with a burst of 20 over three nodes, then 400/s without a restart."""
    with opened(url) as store:
        store.put_pool(pool("web", rate="200/s", burst=20), actor="bench")
        store.put_lane(lane("limited", pool="web"), actor="bench")
        client, calls = Client(store), Calls()
        client.enqueue_many({"lane": "limited"} for _ in range(200 * seconds + 6_000))
        with nodes(url, 3, calls):
            time.sleep(seconds + SETTLE_S)
            changed = time.time()
            store.put_pool(pool("web", rate="400/s", burst=20), actor="bench")
            time.sleep(8)
    at = sorted(value for value in calls.at if value < changed)
    begin = at[0]
    worst = max(count_between(at, second, second + 1) for second in at)
    mean = count_between(at, begin + 2, begin + seconds) / (seconds - 2)
    record.verdict(
        f"{where.name}: pool 200/s burst 20 over 3 nodes, {seconds} s",
        f"mean {mean:.0f}/s, worst second {worst}",
        "mean ≥ 190/s, any 1 s ≤ 220",
        ok=mean >= 190 and worst <= 220,
    )
    after = sorted(value for value in calls.at if value >= changed)
    faster = next((at - changed for at in after if count_between(after, at, at + 1) >= 360), None)
    record.verdict(
        f"{where.name}: the pool changed to 400/s takes effect",
        "never" if faster is None else f"after {faster:.1f} s",
        "< 2 s",
        ok=faster is not None and faster < 2,
    )


def payments(record: Record, where: Place, url: str, *, jobs: int) -> None:
    """A herd due at one instant: two nodes hold a rate of 2,000/s, then go as fast as they can."""
    with opened(url) as store:
        store.put_lane(lane("payments", rate="2000/s", max_in_flight=2_000), actor="bench")
        client, calls = Client(store), Calls()
        due = store.now() + timedelta(seconds=10 + jobs / 20_000)
        client.enqueue_many({"lane": "payments", "run_at": due, "payload": {"n": n}} for n in range(jobs))
        held_s = 15
        with nodes(url, 2, calls, batch=100):
            time.sleep(max(0.0, due.timestamp() - time.time()) + held_s)
            changed = time.time()
            store.put_lane(lane("payments", max_in_flight=2_000), actor="bench")
            wait_for(store, "payments", jobs, seconds=600)
            done = time.time()
    at = sorted(calls.at)
    held = [value for value in at if value < changed]
    begin = held[0] + 2  # a second's worth may go at once
    mean = count_between(held, begin, held[0] + held_s) / (held_s - 2)
    worst = max(count_between(held, second, second + 1) for second in held if second >= begin)
    rest = [value for value in at if value >= changed + 2]
    record.verdict(
        f"{where.name}: {jobs:,} payments due at one instant, 2 nodes at 2,000/s",
        f"{mean:,.0f}/s, worst second {worst:,}, first after {1000 * min(calls.late):.1f} ms, "
        f"{max(calls.rss_mb):.0f} MB per node",
        "mean 1,900..2,200/s, any 1 s ≤ 2,200, never early, < 200 MB",
        ok=1_900 <= mean <= 2_200 and worst <= 2_200 and min(calls.late) >= 0 and max(calls.rss_mb) < 200,
    )
    record.verdict(
        f"{where.name}: the same without a limit", f"{len(rest) / (done - changed - 2):,.0f}/s", "", ok=None
    )


def wait_for(store: Store, name: str, number: int, *, seconds: float = 120) -> None:
    """Wait until so many jobs of a lane are done."""
    until = time.monotonic() + seconds
    while store.counts().get((name, JobState.SUCCEEDED), NOTHING) < number:
        if time.monotonic() > until:
            raise TimeoutError(f"{name}: {store.counts()}")
        time.sleep(0.05)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store: Any = open_store(url)
    try:
        yield store
    finally:
        store.close()


def count_between(at: list[float], begin: float, end: float) -> int:
    """Return how many of the sorted times are in [begin, end)."""
    return bisect_left(at, end) - bisect_left(at, begin)


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
