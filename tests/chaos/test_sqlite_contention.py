"""R5: four processes write one SQLite file while a reader keeps a snapshot: nobody sees a lock."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from penstock.testing.invariants.received import read_lines
from tests.chaos.bench import bench
from tests.chaos.processes import PENSTOCK, eventually, start
from tests.chaos.traffic import MAIL, offers

MOST_WAL = 8 * 1024 * 1024  # two checkpoints' worth


@contextmanager
def pinned(file: Path) -> Iterator[None]:
    """Read one snapshot for as long as this lasts, as a backup or a forgotten shell does."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM penstock_jobs").fetchone()
        yield
        db.execute("ROLLBACK")


@pytest.mark.timeout(120)
async def test_writers_wait_for_each_other_and_nobody_is_told_of_locks(tmp_path: Path) -> None:
    file, wal = tmp_path / "penstock.db", tmp_path / "penstock.db-wal"
    async with bench(tmp_path, f"sqlite:///{file}", seed=7, listen=("--delay", "5ms")) as it:
        await it.start("a", "b", "c")
        jobs = offers(it.rng, groups=40, per_group=6, unordered=200, ahead=4)
        with pinned(file):
            stream = start(
                "stream",
                tmp_path,
                "sh", "-c", "seq 1 600 | sed 's/.*/{\"payload\": &}/' | \"$@\"", "sh",
                *PENSTOCK, "enqueue", MAIL, "-", "--store", it.cluster.store,
            )  # fmt: skip
            producer = it.producer()
            await producer.produce(jobs, per_second=150)
            assert await stream.ended(within=30) == 0, stream.told
        at_most = wal.stat().st_size
        await it.all_done(jobs, within=45)

        await eventually("a WAL that is used again", lambda: wal.stat().st_size <= at_most + MOST_WAL)
        await it.cluster.stop()
        assert producer.refused == []
        assert "600 enqueued, 0 already there, 0 refused" in stream.told
        told = "".join(process.told for process in it.cluster.everything)
        assert "locked" not in told
        streamed = {line["id"] for line in read_lines(it.listener.log)} - it.ledger.accepted.keys()
        assert len(streamed) == 600
        it.judge(others=sorted(streamed))
        assert it.listener.arrived() == len(jobs) + 600
        assert it.cluster.troubles() == []
