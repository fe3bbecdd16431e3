"""Partitions on PostgreSQL: made ahead, made when missing, dropped when over."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest

from penstock.domain.job import NewJob
from penstock.domain.lanes import lane
from penstock.domain.states import Verb
from penstock.ports.store import Ask
from penstock.stores.postgres.retention import NOTES
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore

TODAY = datetime.now(UTC).date()


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    store = PostgresStore(postgres_url)
    store.migrate()
    store.put_lane(lane("orders", retention="1d"), actor="test")
    yield store
    store.close()


@pytest.fixture
def db(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def partitions(db: psycopg.Connection, parent: str) -> set[str]:
    sql = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass"
    return {row[0].removeprefix("penstock.") for row in db.execute(sql, [f"penstock.{parent}"])}


def add_partition(db: psycopg.Connection, parent: str, day: date, low: str, high: str) -> None:
    """Make the partition of one day; the bounds are expressions, which DDL does not take."""
    low, high = (f"'{db.execute(f'SELECT ({bound})::text').fetchall()[0][0]}'" for bound in (low, high))
    db.execute("SELECT penstock.add_partition(%s, 1, %s, %s, %s)", [parent, f"{day:%Y%m%d}", low, high])


def finish_one(store: SqlStore) -> str:
    [made] = store.enqueue([NewJob(lane="orders", payload="1")])
    claim = store.claim(Ask(lane="orders", node=1))
    assert claim is not None
    assert len(store.settle(claim).applied) == 1
    return made.id  # type: ignore[union-attr]


def test_days_are_made_ahead(store: SqlStore, db: psycopg.Connection) -> None:
    ahead = {f"history_1_{TODAY + timedelta(days=n):%Y%m%d}" for n in range(8)}

    assert ahead <= partitions(db, "history")


def test_a_settle_makes_the_partition_that_is_missing(store: SqlStore, db: psycopg.Connection) -> None:
    """As after two weeks in which no node ran."""
    for name in partitions(db, "history"):
        db.execute(f"DROP TABLE penstock.{name}")
    job_id = finish_one(store)

    assert store.find([job_id])[job_id].finished_at is not None


def test_what_is_over_is_dropped_whole_and_no_more(store: SqlStore, db: psycopg.Connection) -> None:
    old = TODAY - timedelta(days=3)
    for parent, low, high in (
        ("history", f"'{old} 00:00+00'", f"'{old + timedelta(days=1)} 00:00+00'"),
        (
            "contexts",
            f"penstock.arrival_floor('{old}')",
            f"penstock.arrival_floor('{old + timedelta(days=1)}')",
        ),
    ):
        add_partition(db, parent, old, low, high)
    job_id = finish_one(store)

    assert store.retire(slice_rows=100) == 2
    assert not any(f"{old:%Y%m%d}" in name for name in partitions(db, "history") | partitions(db, "contexts"))
    assert job_id in store.find([job_id])


def test_dropped_history_no_longer_counts(store: SqlStore, db: psycopg.Connection) -> None:
    """Nor does a partition stay that a crash left detached."""
    old = TODAY - timedelta(days=3)
    add_partition(db, "history", old, f"'{old} 00:00+00'", f"'{old + timedelta(days=1)} 00:00+00'")
    gone = finish_one(store)
    finish_one(store)
    first = "(SELECT min(arrival) FROM penstock.history)"
    db.execute(f"UPDATE penstock.history SET finished_at = %s WHERE arrival = {first}", [old])
    db.execute(f"ALTER TABLE penstock.history DETACH PARTITION penstock.history_1_{old:%Y%m%d}")
    store.retire(slice_rows=100)

    assert list(store.counts().values()) == [1]
    assert store.find([gone]) == {}
    assert store.operate(Verb.CANCEL, [gone], actor="me", reason="test")[0].text == "no such job"
    assert db.execute("SELECT to_regclass(%s)", [f"penstock.history_1_{old:%Y%m%d}"]).fetchall() == [(None,)]


def test_a_context_outlives_the_rows_that_name_it(store: SqlStore, db: psycopg.Connection) -> None:
    """A job of last month that is still pending keeps its day's contexts."""
    old = TODAY - timedelta(days=30)
    floor = f"penstock.arrival_floor('{old}')"
    add_partition(db, "contexts", old, floor, f"penstock.arrival_floor('{old + timedelta(days=1)}')")
    low = db.execute(f"SELECT {floor}").fetchall()[0][0]
    db.execute(
        "INSERT INTO penstock.contexts (arrival, keep, lane, id, payload)"
        " SELECT %s, 1, id, '01KA0000000000000000000000', '1' FROM penstock.lanes",
        [low + 5],
    )
    store.retire(slice_rows=100)

    claim = store.claim(Ask(lane="orders", node=1))
    assert claim is not None
    assert claim.jobs[0].context is not None
    store.settle(claim)
    store.retire(slice_rows=100)
    assert f"contexts_1_{old:%Y%m%d}" in partitions(db, "contexts")  # its history is of today


def test_what_nodes_noted_goes_with_the_contexts_of_a_day(store: SqlStore, db: psycopg.Connection) -> None:
    """However much it is; what people did stays, and what was noted of jobs that are kept longer."""
    old = TODAY - timedelta(days=3)
    floor = f"penstock.arrival_floor('{old}')"
    add_partition(db, "contexts", old, floor, f"penstock.arrival_floor('{old + timedelta(days=1)}')")
    low = db.execute(f"SELECT {floor}").fetchall()[0][0]
    db.execute("ALTER TABLE penstock.contexts DISABLE TRIGGER contexts_enqueued")
    db.execute(
        "INSERT INTO penstock.contexts (arrival, keep, lane, id, payload)"
        " SELECT %s, 1, id, '01KA0000000000000000000000', '1' FROM penstock.lanes",
        [low + 5],
    )
    for arrival, actor, times in ((5, "penstock", 2 * NOTES + 1), (5, "ops", 2), (6, "penstock", 1)):
        db.execute(
            "INSERT INTO penstock.audit (arrival, actor, action)"
            " SELECT %s, %s, 'x' FROM generate_series(1, %s)",
            [low + arrival, actor, times],
        )
    store.retire(slice_rows=100)

    left = db.execute("SELECT arrival, actor FROM penstock.audit WHERE action = 'x' ORDER BY id").fetchall()
    assert left == [(low + 5, "ops"), (low + 5, "ops"), (low + 6, "penstock")]


def test_a_class_no_lane_has_any_more_is_still_prepared(store: SqlStore, db: psycopg.Connection) -> None:
    store.put_lane(lane("orders", retention="30d"), actor="test")
    tomorrow = f"history_1_{TODAY + timedelta(days=1):%Y%m%d}"
    db.execute(f"DROP TABLE penstock.{tomorrow}")
    store.retire(slice_rows=100)

    assert tomorrow in partitions(db, "history")
