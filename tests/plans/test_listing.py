"""No page of a list reads more than it shows, or than it says it tries, whatever else is in the tables."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from penstock.domain.states import JobState
from penstock.ports.clock import SystemClock
from penstock.ports.store import Ask, JobQuery, Order, Span
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.listing import TRIED
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from penstock.stores.sqlite.times import to_us
from tests.conftest import PgServer
from tests.plans.backlog import GROUPS, PLAIN, TENANTS, Size, fill_postgres, fill_sqlite, put_lanes
from tests.plans.counting import steps_of
from tests.plans.explained import BIG_TABLES, Spy

S = JobState
SIZE: Final = Size(jobs=50_000, history=50_000)
PAGE: Final = 50
# A page's worth of each of four lanes, in each of up to five states, and as much again for what goes with it.
ROWS_SHOWN: Final = 2_500
STEPS_SHOWN: Final = 100_000
STEPS_TRIED: Final = 1_500_000
NOW: Final = SystemClock().now()
UNUSUAL: Final = frozenset({S.CANCELLED, S.EXPIRED, S.SKIPPED})
SUCCEEDED: Final = frozenset({S.SUCCEEDED})

SERVED: Final[dict[str, dict[str, Any]]] = {
    "newest": {},
    "lane": {"lane": PLAIN},
    "pending": {"states": frozenset({S.PENDING})},
    "pending of a lane": {"states": frozenset({S.PENDING}), "lane": GROUPS},
    "claimed": {"states": frozenset({S.CLAIMED})},
    "held, of which there are none": {"states": frozenset({S.HELD})},
    "out": {"states": frozenset({S.DISPATCHED, S.RUNNING}), "lane": PLAIN},
    "dead": {"states": frozenset({S.DEAD})},
    "dead of a lane": {"states": frozenset({S.DEAD}), "lane": GROUPS},
    "dead of a group": {"states": frozenset({S.DEAD}), "lane": GROUPS, "group": "group-00000007"},
    "finished": {"states": SUCCEEDED | UNUSUAL},
    "finished of a lane": {"states": SUCCEEDED | UNUSUAL, "lane": PLAIN},
    "finished long ago": {"states": SUCCEEDED | UNUSUAL, "finished": Span(until=NOW - timedelta(seconds=40))},
    "cancelled, of which there are none": {"states": UNUSUAL},
    "due": {"order": Order.DUE},
    "due in a lane": {"order": Order.DUE, "lane": TENANTS},
    "due tomorrow": {"order": Order.DUE, "run": Span(since=NOW + timedelta(hours=12))},
    "due of a tenant": {"order": Order.DUE, "lane": TENANTS, "tenant": "tenant-7"},
    "due of a group": {"order": Order.DUE, "lane": GROUPS, "group": "group-00000007"},
    "a group": {"group": "group-00000007"},
    "a key": {"key": "nobody's"},
    "oldest": {"order": Order.OLDEST},
    "oldest pending of a lane": {"order": Order.OLDEST, "states": frozenset({S.PENDING}), "lane": PLAIN},
}
TRIED_ON_MANY: Final[dict[str, dict[str, Any]]] = {
    "a tenant": {"tenant": "tenant-7"},
    "created long ago": {"created": Span(until=NOW - timedelta(days=1))},
    "created of late": {"created": Span(since=NOW - timedelta(days=1)), "states": frozenset({S.PENDING})},
    "nobody's": {"tenant": "nobody"},
    "nobody's in a lane": {"tenant": "nobody", "lane": PLAIN},
    "nobody's finished": {"tenant": "nobody", "states": SUCCEEDED},
    "due by its end": {"run": Span(until=NOW - timedelta(days=1)), "lane": PLAIN},
    "succeeded": {"states": SUCCEEDED, "lane": PLAIN},
    "oldest dead of a lane": {"order": Order.OLDEST, "states": frozenset({S.DEAD}), "lane": GROUPS},
    "oldest of a tenant": {"order": Order.OLDEST, "tenant": "nobody"},
    "oldest that ended long ago": {"order": Order.OLDEST, "finished": Span(until=NOW - timedelta(days=1))},
}
ALL: Final = SERVED | TRIED_ON_MANY


def show(store: SqlStore, query: dict[str, Any]) -> None:
    """Look at the first two pages."""
    page = store.list_jobs(JobQuery(limit=PAGE, **query))
    if page.next is not None:
        store.list_jobs(JobQuery(limit=PAGE, **query, after=page.next))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lists") / "penstock.db"
    with closing(SqliteStore(path)) as store:
        store.migrate()
        lanes = put_lanes(store)
        fill_sqlite(path, lanes, SIZE, to_us(NOW))
        store.db.write(lambda tx: tx.execute("UPDATE penstock.dead SET finished_at = due_at"))
        store.claim(Ask(lane=PLAIN, node=1, limit=500))
    return path


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def url(request: pytest.FixtureRequest, pg_server: PgServer) -> Iterator[str]:
    with pg_server(request.param).database() as url:
        with closing(PostgresStore(url)) as store:
            store.migrate()
            fill_postgres(url, put_lanes(store), SIZE)
            store.db.write(lambda tx: tx.execute("UPDATE penstock.dead SET finished_at = due_at"))
            store.claim(Ask(lane=PLAIN, node=1, limit=500))
        yield url


def test_sqlite_takes_few_steps_for_a_page(path: Path) -> None:
    steps = {}
    with closing(SqliteStore(path)) as store:
        show(store, {})
        reader = store.db._readers.get()
        store.db._readers.put(reader)
        for name, query in ALL.items():
            steps[name] = steps_of(reader, lambda query=query: show(store, query))

    assert {name: n for name, n in steps.items() if name in SERVED and n > STEPS_SHOWN} == {}
    assert {name: n for name, n in steps.items() if name in TRIED_ON_MANY and n > STEPS_TRIED} == {}


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_sqlite_scans_no_table(path: Path, statistics: str) -> None:
    complaints, shapes = [], dict[str, str]()

    def trace(statement: str) -> None:
        shapes.setdefault(re.sub(r"'(?:[^']|'')*'|\d+", "?", statement), statement)

    with closing(SqliteStore(path, trace=trace)) as store, closing(sqlite3.connect(path)) as plain:
        if statistics == "fresh":
            plain.execute("ANALYZE")
        for name, query in ALL.items():
            shapes.clear()
            show(store, query)
            for statement in shapes.values():
                if statement.lstrip().startswith("SELECT"):
                    lines = [row[3] for row in plain.execute(f"EXPLAIN QUERY PLAN {statement}")]
                    complaints += [
                        f"{name}: {line} in {' '.join(statement.split())[:300]}"
                        for line in lines
                        if re.match(
                            r"SCAN (penstock_(jobs|dead|history|contexts|attempts|audit)|[jx])\b", line
                        )
                    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_postgres_reads_few_rows_for_a_page(url: str, statistics: str) -> None:
    if statistics == "fresh":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    spy, complaints = Spy(), []
    with closing(PostgresStore(url, max_connections=1)) as store:
        with store.db._pool.connection() as connection:
            spy.watch(connection)
        for name, query in ALL.items():
            spy.listens = True
            show(store, query)
            spy.listens = False
            limit = ROWS_SHOWN if name in SERVED else TRIED + ROWS_SHOWN
            for seen in spy.seen:
                complaints += [
                    f"{name}, {seen.plan} plan: {scan} in {' '.join(seen.sql.split())[:300]}"
                    for scan in seen.scans
                    if scan.table in BIG_TABLES and (scan.index is None or scan.rows > limit)
                ]
            spy.seen.clear()
    assert not complaints, "\n".join(complaints)
