"""What need not survive the machine does not wait for the disk; everything else does."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.errors import StoreUnavailable
from penstock.ports.flow import Limit, Need
from penstock.stores.sqlite.store import SqliteStore

LIMIT = Limit("lane", "orders", max_in_flight=1)
SECOND = timedelta(seconds=1)


def test_only_what_nodes_agree_on_for_a_while_is_not_synced(tmp_path: Path) -> None:
    """And the next commit is durable again, also after a failure."""
    statements: list[str] = []
    path = tmp_path / "penstock.db"
    with closing(SqliteStore(path, trace=statements.append, busy_timeout=0.01)) as store:
        store.migrate()
        store.put_lane(lane("orders"), actor="test")
        node = store.register_node("a")
        statements.clear()
        store.enqueue([NewJob("orders")])
        assert not [text for text in statements if "synchronous" in text]
        for call in (
            lambda: store.permit(node, [Need(LIMIT, slots=1)], ttl=SECOND),
            lambda: store.renew([1], SECOND),
            lambda: store.beat(node),
        ):
            statements.clear()
            call()
            levels = [text.partition("=")[2] for text in statements if "synchronous" in text]
            assert levels[-2:] == ["NORMAL", "FULL"]
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            statements.clear()
            with pytest.raises(StoreUnavailable):
                store.beat(node)
        assert statements[-1] == "PRAGMA synchronous=FULL"
