"""What PostgreSQL stores is what it was given, however odd: we convert columns, not the driver."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest

from penstock.domain.job import Enqueued, NewJob
from penstock.domain.lanes import lane
from penstock.stores.postgres.arrays import array, listed
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sql.store import SqlStore
from tests.conftest import PgServer

ODD = [
    "", " ", "\\", "\\N", "\\.", "NULL", "null", "{}", "{a,b}", '"', '","', "'", "a\tb", "a\nb", "a\rb",
    "\\n", "é", "\U0001f600", "\u0001", "\x7f", "\u2028", ",", "a\\tb", "None", "x" * 100_000,
]  # fmt: skip
TIMES = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


@pytest.fixture(scope="module")
def store(pg_server: PgServer) -> Iterator[SqlStore]:
    with pg_server(18).database() as url, closing(PostgresStore(url)) as store:
        store.migrate()
        store.put_lane(lane("odd"), actor="test")
        yield store


@pytest.mark.parametrize("chosen", [False, True], ids=["own ids", "chosen ids"])
@pytest.mark.parametrize("gaps", [False, True], ids=["all filled", "some missing"])
def test_texts_come_back_as_they_went_in(store: SqlStore, *, chosen: bool, gaps: bool) -> None:
    jobs = [
        NewJob(lane="odd", payload=text, target=text[:50], id=f"{gaps}-{number}" if chosen else None)
        for number, text in enumerate(ODD)
    ] + [NewJob(lane="odd", id=f"{gaps}-last" if chosen else None)] * gaps

    answers = [answer.id for answer in store.enqueue(jobs) if isinstance(answer, Enqueued)]
    found = store.find(answers)

    assert len(answers) == len(jobs)
    stored = [(found[id_].context.payload, found[id_].context.target) for id_ in answers]
    assert stored == [(job.payload, job.target) for job in jobs]


def test_times_come_back_as_they_went_in(store: SqlStore) -> None:
    jobs = [NewJob(lane="odd", run_at=at, finish_by=at) for at in TIMES] + [NewJob(lane="odd")]

    answers = [answer.id for answer in store.enqueue(jobs) if isinstance(answer, Enqueued)]
    found = store.find(answers)

    assert [found[id_].context.run_at for id_ in answers[:-1]] == TIMES
    assert [found[id_].context.finish_by for id_ in answers] == [*TIMES, None]
    assert found[answers[-1]].context.run_at == found[answers[-1]].context.created_at


def test_one_job_and_many_alike_are_copied(store: SqlStore) -> None:
    for count in (1, 2, 1000):
        answers = store.enqueue([NewJob(lane="odd", payload="same")] * count)
        assert len({answer.id for answer in answers if isinstance(answer, Enqueued)}) == count


@pytest.mark.parametrize("chosen", [False, True], ids=["own ids", "chosen ids"])
def test_nul_is_refused_and_never_shifts_what_comes_behind(store: SqlStore, *, chosen: bool) -> None:
    jobs = [
        NewJob(lane="odd", payload=text, id=f"nul-{i}" if chosen else None)
        for i, text in enumerate(["a", "b\0c"])
    ]

    with pytest.raises(psycopg.DataError):
        store.enqueue(jobs)


def test_ids_drawn_twice_are_drawn_again(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["twice", "once", "twice", "another"])
    monkeypatch.setattr(store, "ids", lambda: next(drawn))

    first = store.enqueue([NewJob(lane="odd"), NewJob(lane="odd")])
    second = store.enqueue([NewJob(lane="odd")])

    assert first == [Enqueued("twice"), Enqueued("once")]
    assert second == [Enqueued("another")]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", ODD), ("text", [*ODD, None]), ("bigint", [1, -(2**63), 2**63 - 1]), ("int", [1, None, 3]),
        ("boolean", [True, False, None]), ("timestamptz", [*TIMES, None]), ("bytea", [b"\0\\x", None]),
    ],
)  # fmt: skip
def test_an_array_reads_as_the_values_it_was_made_of(
    store: SqlStore, kind: str, values: list[object]
) -> None:
    [(read,)] = store.db.single(
        lambda tx: tx.cursor.execute(f"SELECT %s::{kind}[]".encode(), [array(kind, values)]).fetchall()
    )

    assert read == values


@pytest.mark.parametrize("values", [[], ["a", '"', "\\"], [1, 2]])
def test_a_list_matches_what_it_holds(store: SqlStore, values: list[object]) -> None:
    kind = "int" if values and isinstance(values[0], int) else "text"
    [(count,)] = store.db.single(
        lambda tx: tx.cursor.execute(
            f"SELECT count(*) FROM unnest(%s::{kind}[]) v WHERE v = ANY(%s)".encode(),
            [array(kind, values) or "{}", listed(values)],
        ).fetchall()
    )

    assert count == len(values)
