"""Bytes that are no text, stored by plain SQL, do not stop the lane they are in."""

import sqlite3
from pathlib import Path

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.ports.store import Ask
from penstock.stores.sqlite.store import SqliteStore


def test_a_job_with_broken_text_is_claimed_with_its_bytes_beside_the_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "p.db")
    store.migrate()
    store.put_lane(lane("orders"), actor="test")
    store.enqueue([NewJob(lane="orders", payload="1"), NewJob(lane="orders", payload="2")])
    with sqlite3.connect(tmp_path / "p.db") as db:
        db.execute("UPDATE penstock_contexts SET payload = CAST(x'22f09f9222' AS TEXT) WHERE arrival = 1")
    db.close()
    claim = store.claim(Ask(lane="orders", node=1))

    assert claim is not None
    payloads = [claimed.context.payload for claimed in claim.jobs if claimed.context is not None]
    assert [payload.encode("utf-8", "surrogateescape") for payload in payloads if payload is not None] == [
        b"\x22\xf0\x9f\x92\x22",
        b"2",
    ]
    assert len(store.settle(claim).applied) == 2
    store.close()
