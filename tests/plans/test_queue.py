"""The embedded queue costs what a batch costs, with a hundred thousand messages in it as with none."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
import pytest

from penstock.ports.queue import Message
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from tests.conftest import PgServer
from tests.plans.counting import CountingConnection, on_the_wire, steps_of
from tests.plans.explained import Spy

Q: Final = "q"
BATCH: Final = 10
DEEP: Final = 100_000
GROUPS: Final = 10_000
HOUR: Final = timedelta(hours=1)
# Of each of a batch: its row, its group's, its successor's, its name, and as much again that is swept.
ROWS: Final = 10 * BATCH
STEPS: Final = 20_000
TABLES: Final = ("queue", "queue_groups", "queue_dedups")

# A hot group in front, many groups behind it, messages without one that are hidden or visible, old names.
_MESSAGES: Final = """
    INSERT INTO {p}queue (queue, grp, dedup_id, body, visible_at, created_at)
    SELECT 'q', {group}, '{name}-' || i, 'body', {at}, {at} FROM {series}"""
_HEADS: Final = """
    INSERT INTO {p}queue_groups (queue, grp, head, visible_at)
    SELECT queue, grp, min(id), min(visible_at) FROM {p}queue WHERE grp IS NOT NULL GROUP BY queue, grp"""
_NAMES: Final = """
    INSERT INTO {p}queue_dedups (queue, dedup_id, until) SELECT 'q', 'old-' || i, {at} FROM {series}"""


def _statements(p: str, series: str, past: str, later: str) -> list[str]:
    kinds = [
        ("hot", "'a-hot-one'", past, DEEP),
        ("many", "'group-' || i", past, GROUPS),
        ("hidden", "NULL", later, DEEP),
        ("free", "NULL", past, GROUPS),
    ]
    return [
        *(
            _MESSAGES.format(p=p, name=name, group=group, at=at, series=series.format(n=n))
            for name, group, at, n in kinds
        ),
        _HEADS.format(p=p),
        _NAMES.format(p=p, at=later, series=series.format(n=DEEP)),
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queue") / "penstock.db"
    with closing(SqliteStore(path)) as store:
        store.migrate()
    series = (
        "(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {n}) SELECT i FROM s)"
    )
    with closing(sqlite3.connect(path)) as connection:
        for statement in _statements("penstock_", series, "0", "9999999999999999"):
            connection.execute(statement)
        connection.commit()
    return path


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def url(request: pytest.FixtureRequest, pg_server: PgServer) -> Iterator[str]:
    with pg_server(request.param).database() as url:
        with closing(PostgresStore(url)) as store:
            store.migrate()
        with psycopg.connect(url, autocommit=True) as connection:
            series = "generate_series(1, {n}) i"
            times = ("now() - interval '1 hour'", "now() + interval '1 hour'")
            for statement in _statements("penstock.", series, *times):
                connection.execute(statement.encode())
        yield url


def work(store: SqlStore, batch: int = BATCH) -> Iterator[str]:
    """Make every call once."""
    messages = [Message("body", f"new-{n}" if n % 2 else None, f"new-{n}") for n in range(batch)]
    store.push(Q, [*messages, Message("body", "a-hot-one"), Message("body", "x", "old-1")])
    yield "push"
    for _ in range(2):
        received = store.receive(Q, batch, visibility=HOUR)
        assert len(received) == batch
        yield "receive"
        store.nack(received[: batch // 2], delay=HOUR)
        yield "nack"
        store.ack(received[batch // 2 :])
        yield "ack"
    store.queued(Q, [f"hot-{n}" for n in range(batch)])
    yield "queued"


def test_sqlite_takes_few_steps_for_a_batch(path: Path) -> None:
    steps: dict[str, int] = {}
    with closing(SqliteStore(path)) as store:
        calls, names = work(store), list[str]()
        while "" not in names:
            taken = steps_of(store.db._writer, lambda: names.append(next(calls, "")))
            steps[f"{len(names)}: {names[-1]}"] = taken

    assert {call: n for call, n in steps.items() if n > STEPS} == {}


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_sqlite_scans_no_queue(path: Path, statistics: str) -> None:
    complaints, shapes = [], dict[str, str]()

    def trace(statement: str) -> None:
        shapes.setdefault(re.sub(r"'(?:[^']|'')*'|\d+", "?", statement), statement)

    with closing(SqliteStore(path, trace=trace)) as store, closing(sqlite3.connect(path)) as plain:
        plain.create_function("now", 0, lambda: 0)
        if statistics == "fresh":
            plain.execute("ANALYZE")
        for _ in work(store):
            pass
        for statement in shapes.values():
            if statement.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
                lines = [row[3] for row in plain.execute(f"EXPLAIN QUERY PLAN {statement}")]
                complaints += [
                    f"{line} in {' '.join(statement.split())[:300]}"
                    for line in lines
                    if re.match(r"SCAN (penstock_queue\w*|[qgd])\b", line)
                ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("statistics", ["none", "fresh"])
def test_postgres_reads_few_rows_for_a_batch(url: str, statistics: str) -> None:
    if statistics == "fresh":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    spy, complaints = Spy(), []
    with closing(PostgresStore(url, max_connections=1)) as store:
        with store.db._pool.connection() as connection:
            spy.watch(connection)
        spy.listens = True
        for name in work(store):
            complaints += [
                f"{name}, {seen.plan} plan: {scan} in {' '.join(seen.sql.split())[:300]}"
                for seen in spy.seen
                for scan in seen.scans
                if scan.table in TABLES and (scan.index is None or scan.rows > ROWS)
            ]
            spy.seen.clear()
        spy.listens = False
    assert not complaints, "\n".join(complaints)


def test_a_batch_is_a_handful_of_statements_however_large(url: str, path: Path) -> None:
    counts: dict[str, list[int]] = {"postgres": [], "sqlite": []}
    for batch in (4, 40):
        with closing(PostgresStore(url, max_connections=1)) as store:
            with store.db._pool.connection() as connection:
                pass
            with on_the_wire(connection) as wire:
                for _ in work(store, batch):
                    pass
            counts["postgres"].append(wire.statements)
        with closing(SqliteStore(path)) as store:
            store.db._writer = counting = CountingConnection(store.db._writer)  # type: ignore[assignment]
            for _ in work(store, batch):
                pass
            counts["sqlite"].append(counting.statements)

    assert all(few == many for few, many in counts.values()), counts
