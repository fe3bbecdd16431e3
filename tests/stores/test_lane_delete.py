"""A lane goes only when nothing of it is left to be done, whoever deletes it."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.ports.store import Ask, Store
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sqlite.store import SqliteStore


def with_a_job(store: Store) -> None:
    store.migrate()
    store.put_lane(lane("orders"), actor="test")
    store.enqueue([NewJob(lane="orders")])


def finish(store: Store) -> None:
    claim = store.claim(Ask(lane="orders", node=1))
    assert claim is not None
    store.settle(claim)


def test_on_sqlite(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "p.db")
    with_a_job(store)
    db = sqlite3.connect(tmp_path / "p.db", isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="still has live or dead jobs"):
        db.execute("DELETE FROM penstock_lanes")
    finish(store)

    assert db.execute("DELETE FROM penstock_lanes").rowcount == 1
    db.close()
    store.close()


def test_on_postgres(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with_a_job(store)
    with psycopg.connect(postgres_url, autocommit=True) as db:
        with pytest.raises(
            psycopg.errors.RestrictViolation, match='lane "orders" still has live or dead jobs'
        ):
            db.execute("DELETE FROM penstock.lanes")
        finish(store)

        assert db.execute("DELETE FROM penstock.lanes").rowcount == 1
    store.close()
