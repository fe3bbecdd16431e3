"""What is read through a frozen store is of one moment, whatever is written; nothing is written by it."""

from contextlib import closing
from pathlib import Path

import pytest

from penstock import Client
from penstock.domain.lanes import lane
from penstock.domain.states import JobState, Verb
from penstock.errors import StoreError
from penstock.ports.store import Store
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sqlite.store import SqliteStore


def _stands_still(store: Store) -> None:
    store.migrate()
    store.put_lane(lane("a"), actor="test")
    client = Client(store)
    id_ = client.enqueue("a", {}).id
    with store.frozen() as still:
        assert still.find([id_])[id_].state is JobState.PENDING
        client.operate(Verb.HOLD, id_, reason="meanwhile")
        store.put_lane(lane("b"), actor="test")
        assert still.find([id_])[id_].state is JobState.PENDING
        assert list(still.lanes()) == ["a"]
        with pytest.raises(StoreError, match="stands still"):
            still.operate(Verb.RELEASE, [id_], actor="test", reason="no")
        with still.frozen() as same:
            assert same.timeline(id_).audit == []
    assert store.find([id_])[id_].state is JobState.HELD


def test_a_frozen_store_stands_still_on_sqlite(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "penstock.db")) as store:
        _stands_still(store)


def test_a_frozen_store_stands_still_on_postgres(postgres_url: str) -> None:
    with closing(PostgresStore(postgres_url)) as store:
        _stands_still(store)
