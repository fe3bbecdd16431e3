"""A caller who enqueues and leaves his transaction open.

On PostgreSQL he holds up nobody: every call beside him ends within its statement timeout, which a wait would
not. On SQLite, where one writes at a time, others wait for him, and are told when it takes too long.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import Lane, lane
from penstock.domain.ordering import Mode
from penstock.domain.states import Effect, JobState, Verb
from penstock.domain.ulid import Ulids
from penstock.errors import StoreUnavailable
from penstock.stores.postgres.database import PostgresTx
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.enqueue import enqueue as enqueue_in
from penstock.stores.sql.store import SqlStore
from penstock.stores.sqlite.store import SqliteStore
from penstock.testing.store_suite.factories import HOUR, claim, claim_groups, drain, enqueue, ids, some
from tests.conftest import PgServer

PATIENCE = "2s"
STRICT = Mode.BLOCK_ON_ERROR
NUMBERS = count(1)
new_id = Ulids(lambda: time.time_ns() // 1_000_000, os.urandom)


class Late(NamedTuple):
    """The job in the open transaction, and others like it from somebody who is done at once."""

    mine: NewJob
    other: NewJob
    another: NewJob


# -- how a caller enqueues on his own connection


def insert_a_context(store: SqlStore, connection: psycopg.Connection[Any], job: NewJob) -> None:
    """As a bulk load does: straight into the write-once table."""
    lanes = store.lanes()
    connection.execute(
        """INSERT INTO penstock.contexts (keep, lane, mode, sequence, id, message_group, tenant, payload)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s)""",
        [
            *(lanes[job.lane].keep, lanes[job.lane].id, int(job.mode or 0), job.sequence, job.id),
            *(job.group, job.tenant, job.payload),
        ],
    )


def insert_into_the_view(_: SqlStore, connection: psycopg.Connection[Any], job: NewJob) -> None:
    """As a program in any language does."""
    mode = None if job.mode is None else job.mode.label
    connection.execute(
        """INSERT INTO penstock.enqueue (lane, mode, sequence, id, message_group, tenant, payload)
           VALUES (%s, %s, %s, %s, %s, %s, %s)""",
        [job.lane, mode, job.sequence, job.id, job.group, job.tenant, job.payload],
    )


def use_the_stores_own_words(store: SqlStore, connection: psycopg.Connection[Any], job: NewJob) -> None:
    """As the client library does inside the caller's transaction."""
    enqueue_in(PostgresTx(connection), store.hot, [job], store.ids)


Way = Callable[[SqlStore, psycopg.Connection[Any], NewJob], None]
WAYS = [insert_a_context, insert_into_the_view, use_the_stores_own_words]


# -- where the job goes


def in_a_new_group(lane: Lane) -> Late:
    return _late(lane, mode=STRICT, group="new")


def in_a_group_that_exists(lane: Lane) -> Late:
    return _late(lane, mode=STRICT, group="old")


def in_no_group(lane: Lane) -> Late:
    return _late(lane)


def for_a_tenant(lane: Lane) -> Late:
    return _late(lane, tenant="acme")


PLACES = [in_a_new_group, in_a_group_that_exists, in_no_group, for_a_tenant]


def _late(lane: Lane, **fields: Any) -> Late:  # noqa: ANN401
    fields |= {"lane": lane.name, "payload": "1"}
    return Late(*(NewJob(id=new_id(), sequence=sequence, **fields) for sequence in (5, 10, 20)))


# -- PostgreSQL


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def url(request: pytest.FixtureRequest, pg_server: PgServer) -> Iterator[str]:
    """A database with tables, in which no statement waits for long; each test has lanes of its own."""
    with pg_server(request.param).database() as address:
        with closing(PostgresStore(address)) as store:
            store.migrate()
        yield f"{address}?options={quote(f'-c statement_timeout={PATIENCE}')}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with closing(PostgresStore(url)) as opened:
        yield opened


@pytest.fixture
def own_lane(store: SqlStore) -> Lane:
    """A lane with a group `old`, in which one job was done before."""
    made = store.put_lane(lane(f"lane{next(NUMBERS)}"), actor="test")
    enqueue(
        store,
        NewJob(lane=made.name, mode=STRICT, group="old", sequence=0),
        NewJob(lane=made.name, tenant="acme"),
    )
    assert len(drain(store, made.name)) == 2
    enqueue(store, NewJob(lane=made.name, mode=STRICT, group="old", sequence=1, payload="1"))
    return made


@contextmanager
def left_open(
    url: str, enqueue_with: Callable[[psycopg.Connection[Any]], None]
) -> Iterator[psycopg.Connection]:
    """Give a connection on which something was enqueued and nothing ended; it is rolled back afterwards."""
    with closing(psycopg.connect(url)) as connection:
        enqueue_with(connection)
        yield connection


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_others_go_on_and_the_job_takes_its_place_once_committed(
    url: str, store: SqlStore, own_lane: Lane, way: Way, place: Callable[[Lane], Late]
) -> None:
    mine, other, another = place(own_lane)
    with left_open(url, lambda connection: way(store, connection, mine)) as connection:
        [first] = enqueue(store, other)
        done = _work(store, own_lane)
        [last] = enqueue(store, another)
        connection.commit()

    assert first in done
    assert mine.id not in done
    sent = drain(store, own_lane.name)
    assert sorted(sent) == sorted([mine.id or "", last])
    assert sent[0] == mine.id or mine.group is None  # only a group has places
    assert store.counts()[own_lane.name, JobState.SUCCEEDED] == 6
    assert (own_lane.name, JobState.PENDING) not in store.counts()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_remains_of_what_is_rolled_back(
    url: str, store: SqlStore, own_lane: Lane, way: Way, place: Callable[[Lane], Late]
) -> None:
    mine, other, _ = place(own_lane)
    with left_open(url, lambda connection: way(store, connection, mine)) as connection:
        [first] = enqueue(store, other)
        connection.rollback()

    assert first in drain(store, own_lane.name)
    assert store.find([mine.id or ""]) == {}
    assert store.counts()[own_lane.name, JobState.SUCCEEDED] == 4
    assert (own_lane.name, JobState.PENDING) not in store.counts()
    assert store.group(own_lane.name, mine.group or "none") is None


def _work(store: SqlStore, own_lane: Lane) -> list[str]:
    """Claim, confirm, renew and settle everything that may go."""
    done: list[str] = []
    while batch := claim(store, own_lane.name) or claim_groups(store, own_lane.name):
        assert store.confirm(batch).asked == {}
        assert store.renew([batch.epoch], HOUR) == {batch.epoch}
        store.settle(batch)
        done += ids(batch)
    return done


@pytest.mark.parametrize("way", WAYS)
def test_housekeeping_and_configuration_go_on(url: str, store: SqlStore, own_lane: Lane, way: Way) -> None:
    """Partitions are made beside the open transaction, for a retention class that is new too."""
    mine = in_a_new_group(own_lane).mine
    classes = iter(["90d", "1y"])
    with left_open(url, lambda connection: way(store, connection, mine)) as connection:
        with psycopg.connect(url, autocommit=True) as plain:
            plain.execute("SELECT penstock.prepare()")
        store.retire(slice_rows=100)
        store.put_lane(lane(own_lane.name, weight=2), actor="test")
        for retention in classes:
            store.put_lane(lane(f"lane{next(NUMBERS)}", retention=retention), actor="test")
        store.fold_counts()
        store.expire(100)
        store.takeover(1, HOUR, 100)
        store.lapse(1, HOUR, 100)
        store.migrate()
        connection.commit()

    assert mine.id in drain(store, own_lane.name)


@pytest.mark.parametrize("way", WAYS)
def test_operators_go_on(url: str, store: SqlStore, own_lane: Lane, way: Way) -> None:
    """They pause, cancel and replay in the very group that the open transaction adds to."""
    mine, other, _ = in_a_group_that_exists(own_lane)
    with left_open(url, lambda connection: way(store, connection, mine)) as connection:
        [first] = enqueue(store, other)
        for paused in (True, False):
            store.pause_group(own_lane.name, "old", paused=paused, actor="ops", reason="because")
        for verb in (Verb.HOLD, Verb.RELEASE, Verb.CANCEL, Verb.RETRY):
            [done] = store.operate(verb, [first], actor="ops", reason="because")
            assert done.effect is Effect.NOW
        connection.commit()

    assert drain(store, own_lane.name)[1:] == [mine.id, first]


def test_only_the_same_key_waits(url: str, store: SqlStore, own_lane: Lane) -> None:
    """Nobody can know whose the key is before the first caller is done; other keys do not care."""
    said = NewJob(lane=own_lane.name, key="k", payload="1")

    def enqueue_keyed(connection: psycopg.Connection[Any]) -> None:
        use_the_stores_own_words(store, connection, said)

    with left_open(url, enqueue_keyed) as connection:
        enqueue(store, NewJob(lane=own_lane.name, key="l", payload="1"))
        with pytest.raises(StoreUnavailable):
            store.enqueue([said])
        connection.rollback()

    assert len(enqueue(store, said)) == 1


# -- SQLite


@contextmanager
def sqlite_left_open(path: Path, job: NewJob) -> Iterator[sqlite3.Connection]:
    """Give a connection with a job enqueued on it and the transaction open."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "INSERT INTO penstock_enqueue (lane, id, message_group, mode) VALUES (?, ?, ?, ?)",
            [job.lane, job.id, job.group, STRICT.label],
        )
        yield connection
        with suppress(sqlite3.OperationalError):  # it may have been ended
            connection.execute("ROLLBACK")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqlStore]:
    """A store that gives up soon."""
    with closing(SqliteStore(tmp_path / "penstock.db", busy_timeout=0.1)) as opened:
        opened.migrate()
        opened.put_lane(lane("orders"), actor="test")
        yield opened


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_on_sqlite_writers_are_told_and_readers_go_on(sqlite: SqlStore, tmp_path: Path, end: str) -> None:
    [first] = enqueue(sqlite, NewJob(lane="orders", mode=STRICT, group="g"))
    batch = some(claim_groups(sqlite))
    mine = NewJob(lane="orders", id=new_id(), group="g")
    writes: list[Callable[[], object]] = [
        lambda: sqlite.enqueue([NewJob(lane="orders")]),
        lambda: claim(sqlite),
        lambda: claim_groups(sqlite),
        lambda: sqlite.settle(batch),
        lambda: sqlite.expire(10),
    ]
    with sqlite_left_open(tmp_path / "penstock.db", mine) as connection:
        for write in writes:
            with pytest.raises(StoreUnavailable):
                write()
        assert sqlite.find([first, mine.id or ""])[first].state is JobState.CLAIMED
        assert sqlite.counts() == {("orders", JobState.CLAIMED): 1}
        assert sqlite.timeline(first).attempts == []
        connection.execute(end)

    assert sqlite.settle(batch).applied
    assert drain(sqlite) == ([mine.id] if end == "COMMIT" else [])
