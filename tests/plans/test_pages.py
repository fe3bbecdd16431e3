"""What a page of the dashboard asks of a store with 200,000 jobs: few statements, few rows.

What bigger stores cost is measured by `python -m bench --suites pages`.
"""

import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg
import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.domain.states import Verb
from penstock.ports.clock import SystemClock
from penstock.ports.store import Ask, Store
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sqlite.store import SqliteStore
from penstock.stores.sqlite.times import to_us
from penstock.ui import kept
from tests.api.node import Http, served
from tests.conftest import PgServer
from tests.plans.backlog import GROUPS, PLAIN, Size, fill_postgres, fill_sqlite, put_lanes
from tests.plans.counting import STEP, Statements, touched

SIZE: Final = Size(jobs=200_000, history=50_000)
STATEMENTS: Final = 6
# What the figures cost that all pages share, at most once a second however many look: with what is due in
# each lane that is behind.
SHARED: Final = 60
ROWS: Final = 2_500
# The backlog's dead jobs all died at one moment, which none do.
SPREAD: Final = "UPDATE penstock.dead SET finished_at = now() - (arrival % 600000) * interval '1 s'"
STEPS: Final = 600_000
PAGES: Final = {
    "overview": "/",
    "lanes": "/lanes",
    "a lane": f"/lanes/{PLAIN}",
    "a lane of groups": f"/lanes/{GROUPS}",
    "jobs": "/jobs",
    "jobs that are dead": "/jobs?q=state:dead",
    "jobs that are due": f"/jobs?q=lane:{PLAIN}+state:pending+run<0s",
    "a job behind others": "/jobs/{waits}",
    "a claimed job": "/jobs/{claimed}",
    "an edited job behind a claimed one": "/jobs/{edited}",
    "a dead job": "/jobs/{dead}",
    "a finished job": "/jobs/{finished}",
    "a job of a paused lane": "/jobs/{paused}",
    "a claimed job of a paused lane": "/jobs/{left claimed}",
    "an edited job behind a claimed one, lane and pool paused": "/jobs/{left edited}",
    "groups": "/groups",
    "all groups": "/groups?show=all",
    "dead letters": "/dead",
    "pools": "/pools",
    "nodes": "/nodes",
    "history": "/history",
    "history of a lane": f"/history?lane={PLAIN}&within=1d&state=succeeded",
    "audit": "/audit",
    "operations": "/operations",
}


def prepared(store: Store, fill: Callable[[dict[str, int]], None]) -> dict[str, str]:
    """Fill the store; return the ids of jobs that have something to tell."""
    store.migrate()
    fill(put_lanes(store))
    store.fold_counts()
    client = Client(store)
    store.put_pool(pool("stopped"), actor="test")
    for name in ("busy", "still"):
        store.put_lane(lane(name, mode="block_on_error"), actor="test")
    store.put_lane(lane("left", mode="block_on_error", pool="stopped"), actor="test")
    claimed, edited = _claimed_and_edited(client, "busy")
    left_claimed, left_edited = _claimed_and_edited(client, "left")
    store.pause_pool("stopped", paused=True, actor="test", reason="to look at it")
    store.pause_lane("left", paused=True, actor="test", reason="to look at it")
    client.enqueue(GROUPS, {"n": 1}, group="group-00000007", mode="block_on_error")
    paused = client.enqueue("still", {}).id
    store.pause_lane("still", paused=True, actor="test", reason="to look at it")
    return {
        "waits": client.enqueue(GROUPS, {"n": 2}, group="group-00000007", mode="block_on_error").id,
        "claimed": claimed,
        "edited": edited,
        "dead": _settled(client, Verb.SETTLE_DEAD),
        "finished": _settled(client, Verb.SETTLE_SUCCEEDED),
        "paused": paused,
        "left claimed": left_claimed,
        "left edited": left_edited,
    }


def _claimed_and_edited(client: Client, name: str) -> tuple[str, str]:
    claimed, edited = (client.enqueue(name, {"n": n}, group="g").id for n in range(2))
    client.edit(edited, payload={"n": 9}, reason="wrong")
    client.store.claim_groups(Ask(lane=name, node=1))
    return claimed, edited


def _settled(client: Client, verb: Verb) -> str:
    id_ = client.enqueue("busy", {}, group="ended").id
    for each in (Verb.HOLD, verb):
        client.operate(each, id_, reason="test")
    return id_


def shown(http: Http, jobs: dict[str, str], path: str) -> None:
    answer = http.get(path.format(**jobs), headers={"Accept": "text/html"})
    assert answer.status_code == 200, (path, answer.text[:500])


@pytest.fixture(autouse=True)
def _keep_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what all pages share stay as it is: a page is looked at twice, and the second look counts."""
    monkeypatch.setattr(kept, "FRESH_S", math.inf)


def _keep_figures(http: Http) -> None:
    http.node.figures.now()
    http.node.figures._stats._until = math.inf


def _too_many(counted: dict[str, int]) -> dict[str, int]:
    return {page: n for page, n in counted.items() if n > STATEMENTS}


def test_a_page_runs_few_statements_and_reads_few_rows_on_postgres(pg_server: PgServer) -> None:
    told, counted, rows = Statements(), dict[str, int](), dict[str, float]()
    with pg_server(18).database() as url, closing(PostgresStore(url, max_connections=1)) as store:
        jobs = prepared(store, lambda lanes: fill_postgres(url, lanes, SIZE))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SPREAD)
            connection.execute("ANALYZE")
        with store.db._pool.connection() as connection:
            told.watch(connection)
        with served(Client(store)) as http:
            _keep_figures(http)
            shared = len(told.ran)
            for name, page in PAGES.items():
                shown(http, jobs, page)
                before = touched(store)
                told.ran.clear()
                shown(http, jobs, page)
                counted[name] = len(told.ran)
                rows[name] = touched(store).since(before, 1).rows
    assert shared <= SHARED
    assert _too_many(counted) == {}
    assert {name: found for name, found in rows.items() if found > ROWS} == {}


def test_a_page_runs_few_statements_and_takes_few_steps_on_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, counted, steps, ticks = Statements(), dict[str, int](), dict[str, int](), [0]
    connect = sqlite3.connect

    def tick() -> int:
        ticks[0] += 1
        return 0

    def metered(*args: object, **options: object) -> sqlite3.Connection:
        connection = connect(*args, **options)  # type: ignore[call-overload]
        connection.set_progress_handler(tick, STEP)
        return connection  # type: ignore[no-any-return]

    path = tmp_path / "penstock.db"
    with closing(SqliteStore(path)) as store:
        jobs = prepared(store, lambda lanes: fill_sqlite(path, lanes, SIZE, to_us(SystemClock().now())))
    monkeypatch.setattr(sqlite3, "connect", metered)
    with closing(SqliteStore(path, trace=told.trace)) as store, served(Client(store)) as http:
        _keep_figures(http)
        for name, page in PAGES.items():
            shown(http, jobs, page)
            told.ran.clear()
            ticks[0] = 0
            shown(http, jobs, page)
            counted[name], steps[name] = len(told.kinds), ticks[0] * STEP
    assert _too_many(counted) == {}
    assert {name: found for name, found in steps.items() if found > STEPS} == {}
