"""The dashboard on a big store: how soon a page begins, how long its statements take, what dispatch loses.

A million jobs are alive in the unkind shape of tests/plans (blocked groups first, tenants, future jobs), and
millions have finished over the last week. Pages are asked of a real `penstock serve`; how long each statement
takes is learnt from a node within this process. What dispatch loses is found by delivering webhooks from the
same store while nobody looks, and while four browsers do.
"""

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bench.dispatch import opened, wait_for
from bench.finished import finish_on_postgres, finish_on_sqlite
from bench.hammer import BROWSERS, first_byte
from bench.places import Place, PostgresPlace
from bench.record import Record
from bench.shapes import Backlog
from bench.webhook import LANE, fill, penstock, serving
from penstock.client import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.ports.store import Store
from penstock.stores.postgres.database import PostgresTx
from penstock.stores.sqlite.database import SqliteTx
from tests.api.node import served
from tests.plans.backlog import LANES, Size, fill_postgres, fill_sqlite
from tests.plans.test_pages import PAGES, SPREAD, prepared

LOOKS = 15
FIRST_BYTE_MS = 150
STATEMENT_MS = 50
KEEPS = 0.7
ROUNDS = 3
WEBHOOKS = 6_000
WARM_UP_S = 2.0


@dataclass
class Timings:
    """How long statements took, in ms, by their text."""

    took: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Time whatever the stores of this process fetch."""
        places = [(kind, name) for kind in (PostgresTx, SqliteTx) for name in ("fetch", "fetch_each")]
        before = {place: getattr(*place) for place in places}
        for kind, name in places:
            setattr(kind, name, self._timed(before[kind, name]))
        try:
            yield
        finally:
            for (kind, name), method in before.items():
                setattr(kind, name, method)

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(tx: object, sql: str, *args: object, **params: object) -> Any:  # noqa: ANN401
            started = time.perf_counter()
            try:
                return method(tx, sql, *args, **params)
            finally:
                took = (time.perf_counter() - started) * 1000
                self.took.setdefault(" ".join(sql.split()), []).append(took)

        return timed


@dataclass(frozen=True)
class Big:
    """A big store, what it is called in the results, and where the dashboard's pages on it are."""

    record: Record
    where: Place
    url: str
    store: Store
    name: str
    paths: list[str] = field(default_factory=list)


def pages(record: Record, where: Place, *, full: bool) -> None:
    """Run all of it on one store."""
    most = 2_000_000 if where.name == "SQLite" else 10_000_000
    live, ended = (1_000_000, most) if full else (100_000, most // 10)
    with where.copy(Backlog()) as url, opened(url) as store:
        name = f"{where.name}, {live / 1e6:g}M live and {ended / 1e6:g}M finished"
        record.say(f"{name}: filling")
        big = Big(record, where, url, store, name)
        jobs = filled(big, Size(jobs=live, history=0), ended)
        big.paths.extend(quote(path.format(**jobs), safe="/?=&:+") for path in PAGES.values())
        statements(big)
        first_bytes(big)
        beside_dispatch(big)


def filled(big: Big, size: Size, ended: int) -> dict[str, str]:
    """Fill the store; return the ids of the jobs that are looked at."""
    now, store, url = time.time_ns() // 1000, big.store, big.url
    on_postgres = isinstance(big.where, PostgresPlace)
    if on_postgres:
        jobs = prepared(store, lambda lanes: fill_postgres(url, lanes, size))
    else:
        jobs = prepared(store, lambda lanes: fill_sqlite(Path(url), lanes, size, now))
    if on_postgres:
        big.where.rows(url, f"{SPREAD} RETURNING 1")
    numbers = [store.lanes()[name].id for name in LANES]
    (finish_on_postgres if on_postgres else finish_on_sqlite)(url, numbers, ended, big.record.say)
    return jobs


def statements(big: Big) -> None:
    """Look at each page a few times, and find the slowest statement: by its median, and of all."""
    timings, record = Timings(), big.record
    with served(Client(big.store)) as http, timings.listening():
        for path in big.paths:
            for _ in range(LOOKS):
                assert http.get(path, headers={"Accept": "text/html"}).status_code == 200, path
    slowest = max(timings.took, key=lambda sql: statistics.median(timings.took[sql]))
    median = statistics.median(timings.took[slowest])
    single = max(timings.took, key=lambda sql: max(timings.took[sql]))
    record.say(f"slowest by its median: {slowest[:400]}")
    record.say(f"slowest of all: {single[:400]}")
    record.verdict(
        f"{big.name}: slowest statement of any page, median of its runs (slowest run of all)",
        f"{median:.1f} ms ({max(timings.took[single]):.1f} ms)",
        f"≤ {STATEMENT_MS} ms",
        ok=median <= STATEMENT_MS,
    )


def first_bytes(big: Big) -> None:
    """Ask a node of its own process for each page, a few times in a row."""
    took, record = dict[str, list[float]](), big.record
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        node = stack.enter_context(serving(folder, big.url, "--lanes", LANE))
        connection = http.client.HTTPConnection(urlsplit(node.url).netloc, timeout=30)
        before = node.cpu(), big.where.cpu(big.url)
        for path in big.paths:
            took[path] = [first_byte(connection, path) for _ in range(LOOKS)]
        spent = (node.cpu() - before[0], big.where.cpu(big.url) - before[1])
    medians = {path: statistics.median(times) for path, times in took.items()}
    slowest = max(medians, key=lambda path: medians[path])
    single = max(took, key=lambda path: max(took[path]))
    for path, median in sorted(medians.items(), key=lambda item: -item[1])[:4]:
        record.say(f"first byte of {path}: {median:.1f} ms, at most {max(took[path]):.1f} ms")
    record.verdict(
        f"{big.name}: first byte of the slowest page, median of {LOOKS} (slowest look of all)",
        f"`{slowest}` {medians[slowest]:.0f} ms (`{single}` {max(took[single]):.0f} ms)",
        f"< {FIRST_BYTE_MS} ms",
        ok=medians[slowest] < FIRST_BYTE_MS,
    )
    node_ms, server_ms = (1000 * cpu / LOOKS / len(big.paths) for cpu in spent)
    record.note(f"{big.name}: CPU of node and database per page, mean", f"{node_ms:.1f}, {server_ms:.1f} ms")


def beside_dispatch(big: Big) -> None:
    """Deliver webhooks alone, and while browsers ask for page after page without a pause, in turn."""
    record, key = big.record, (big.name, "pages")

    def run(way: str) -> None:
        rate, seen = delivered(big, looked_at=way == "beside")
        record.measured(*key, way, value=rate, unit="jobs/s")
        if seen:
            record.measured(*key, "pages", value=len(seen), unit="pages")
            record.measured(*key, "first byte", value=statistics.median(seen), unit="ms")

    ways = {"alone": "nobody looks", "beside": f"{BROWSERS} browsers never pause"}
    record.rounds(ROUNDS, [(f"{big.name}: webhooks {way}", lambda way=way: run(way)) for way in ways])
    for way, words in ways.items():
        record.rate(f"{big.name}: webhooks while {words}", (*key, way))
    seen, took = record.median(*key, "pages"), record.median(*key, "first byte")
    looked = f"{seen:,.0f} pages, first byte {took:.0f} ms"
    what = f"{big.name}: webhooks beside {BROWSERS} browsers ({looked}) / alone"
    record.share(what, (*key, "beside"), (*key, "alone"), KEEPS)


def delivered(big: Big, *, looked_at: bool) -> tuple[float, list[float]]:
    """Deliver some webhooks; return their rate, and the times to the first byte of pages seen meanwhile."""
    store = big.store
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        listener = stack.enter_context(penstock(folder, "listen", "--port", "0", "--quiet"))
        settings = {"sink": "http", "target": listener.url}
        store.put_lane(lane(LANE, enabled=False, **settings), actor="bench")
        done = store.counts().get((LANE, JobState.SUCCEEDED), 0)
        since = store.now()
        fill(store, WEBHOOKS)
        node = stack.enter_context(serving(folder, big.url, "--lanes", LANE))
        hammer = _hammer(node.url, big.paths) if looked_at else None
        store.put_lane(lane(LANE, **settings), actor="bench")
        wait_for(store, LANE, done + WEBHOOKS, seconds=600)
        seen = [] if hammer is None else json.loads(hammer.communicate()[0])
        store.put_lane(lane(LANE, enabled=False, **settings), actor="bench")
    return WEBHOOKS / _seconds(big, since), seen


def _hammer(url: str, paths: list[str]) -> "subprocess.Popen[str]":
    hammer = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-m", "bench.hammer", url, *paths],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(WARM_UP_S)
    return hammer


def _seconds(big: Big, since: datetime) -> float:
    """Return the seconds from the first claim to the end of the last webhook since a time."""
    on_postgres, number = isinstance(big.where, PostgresPlace), big.store.lanes()[LANE].id
    at = f"'{since.isoformat()}'" if on_postgres else int(since.timestamp() * 1e6)
    sql = f"""SELECT min(claimed_at), max(finished_at) FROM penstock.history
               WHERE lane = {number} AND finished_at >= {at}"""
    [(first, last)] = big.where.rows(big.url, sql)
    return float((last - first).total_seconds() if on_postgres else (last - first) / 1e6)
