"""A look at groups and jobs reads what it shows, whatever else there is: blocked groups, a hot one."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
import pytest

from penstock.domain.job import NewJob
from penstock.domain.ordering import Mode
from penstock.domain.outcomes import Returned
from penstock.domain.states import Verb
from penstock.ports.clock import SystemClock
from penstock.ports.store import Ask, Store
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from penstock.stores.sqlite.times import to_us
from tests.conftest import PgServer
from tests.plans.backlog import GROUPS, PLAIN, TENANT_GROUPS, Size, fill_postgres, fill_sqlite, put_lanes
from tests.plans.counting import steps_of
from tests.plans.explained import BIG_TABLES, Spy

SIZE: Final = Size(jobs=100_000, history=1_000)
HOT: Final = 20_000
PAGE: Final = 50
# A page looks at a hundred names; of each a group, a head, a context, and up to a thousand jobs behind it.
ROWS: Final = 2_500
STEPS: Final = 300_000
TABLES: Final = (*BIG_TABLES, "audit", "nodes")
_BIG: Final = "penstock_(jobs|groups|dead|history|contexts|attempts|audit)"
SCANNED: Final = re.compile(rf"SCAN ({_BIG}|[jgx])\b(?! VIRTUAL)")
Look = Callable[[SqlStore], object]


def _pages(store: SqlStore, **query: object) -> None:
    """Look at the first two pages."""
    page = store.list_groups(limit=PAGE, **query)  # type: ignore[arg-type]
    if page.next is not None:
        store.list_groups(limit=PAGE, after=page.next, **query)  # type: ignore[arg-type]


LOOKS: Final[dict[str, Look]] = {
    "groups": _pages,
    "groups of a lane": lambda store: _pages(store, lane=TENANT_GROUPS),
    "a group": lambda store: _pages(store, lane=GROUPS, group="group-00000007"),
    "blocked": lambda store: _pages(store, blocked=True),
    "blocked of a lane": lambda store: _pages(store, blocked=True, lane=GROUPS),
    "blocked of a lane in which none is": lambda store: _pages(store, blocked=True, lane=PLAIN),
    "the last of a hot group": lambda store: store.standing(f"hot-{HOT - 1}"),
    "behind a dead job": lambda store: store.standing(f"group-{SIZE.groups + 7}"),
    "a job in no group": lambda store: store.standing("due-77"),
    "nodes": lambda store: store.nodes(),
    "who leads": lambda store: store.leader(),
    "what pools put back": lambda store: store.vitals(),
}


def _prepare(store: Store) -> None:
    """Add a hot group, a held head, a paused group and one in flight to what there is."""
    for start in range(0, HOT, 5_000):
        jobs = [
            NewJob(lane=TENANT_GROUPS, group="a-hot-one", mode=Mode.BLOCK_ON_ERROR, id=f"hot-{n}")
            for n in range(start, start + 5_000)
        ]
        store.enqueue(jobs)
    store.claim_groups(Ask(lane=TENANT_GROUPS, node=1, limit=10))
    store.operate(Verb.HOLD, ["tgroup-700"], actor="ops", reason="because")
    store.pause_group(GROUPS, "group-00000001", paused=True, actor="ops", reason="because")
    for mark in ("waits for pool: web", "waits for pool: mail"):
        claim = store.claim(Ask(lane=PLAIN, node=1, limit=5_000))
        assert claim is not None
        back = Returned("limit", timedelta(minutes=1), mark)
        store.settle(claim, {each.job.arrival: back for each in claim.jobs})
    for n in range(200):
        store.beat(store.register_node(f"host-{n}"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("insight") / "penstock.db"
    with closing(SqliteStore(path)) as store:
        store.migrate()
        fill_sqlite(path, put_lanes(store), SIZE, to_us(SystemClock().now()))
        _prepare(store)
    return path


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def url(request: pytest.FixtureRequest, pg_server: PgServer) -> Iterator[str]:
    with pg_server(request.param).database() as url:
        with closing(PostgresStore(url)) as store:
            store.migrate()
            fill_postgres(url, put_lanes(store), SIZE)
            _prepare(store)
        yield url


def test_sqlite_takes_few_steps_for_a_look(path: Path) -> None:
    steps = {}
    with closing(SqliteStore(path)) as store:
        store.nodes()
        reader = store.db._readers.get()
        store.db._readers.put(reader)
        for name, look in LOOKS.items():
            steps[name] = steps_of(reader, lambda look=look: look(store))

    assert {name: n for name, n in steps.items() if n > STEPS} == {}


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_sqlite_scans_no_table_for_a_look(path: Path, statistics: str) -> None:
    complaints, shapes = [], dict[str, str]()

    def trace(statement: str) -> None:
        shapes.setdefault(re.sub(r"'(?:[^']|'')*'|\d+", "?", statement), statement)

    with closing(SqliteStore(path, trace=trace)) as store, closing(sqlite3.connect(path)) as plain:
        plain.create_function("now", 0, lambda: 0)
        if statistics == "fresh":
            plain.execute("ANALYZE")
        for name, look in LOOKS.items():
            shapes.clear()
            look(store)
            for statement in shapes.values():
                if statement.lstrip().startswith(("SELECT", "WITH")):
                    lines = [row[3] for row in plain.execute(f"EXPLAIN QUERY PLAN {statement}")]
                    complaints += [
                        f"{name}: {line} in {' '.join(statement.split())[:300]}"
                        for line in lines
                        if SCANNED.match(line)
                    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_postgres_reads_few_rows_for_a_look(url: str, statistics: str) -> None:
    if statistics == "fresh":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    spy, complaints = Spy(), []
    with closing(PostgresStore(url, max_connections=1)) as store:
        with store.db._pool.connection() as connection:
            spy.watch(connection)
        for name, look in LOOKS.items():
            spy.listens = True
            look(store)
            spy.listens = False
            for seen in spy.seen:
                complaints += [
                    f"{name}, {seen.plan} plan: {scan} in {' '.join(seen.sql.split())[:300]}"
                    for scan in seen.scans
                    if scan.table in TABLES and (scan.index is None or scan.rows > ROWS)
                ]
            spy.seen.clear()
    assert not complaints, "\n".join(complaints)
