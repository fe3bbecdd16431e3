"""Enqueue in the caller's own transaction: committed, the job is there; rolled back, it never was."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

import psycopg
import pytest

from penstock import Client, Enqueued, InvalidJob, JobState, Json, KeyConflict, Mode, NotFound, UnknownLane
from penstock.domain.job import Context
from penstock.domain.pools import pool
from penstock.ports.store import Ask
from tests.client.callers import ON_POSTGRES, ON_SQLITE, Open, path
from tests.client.conftest import LANE

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ODD = """{"a": "ü 💧 '\\" \\\\ %s %% ? :p1 $1 ; --",  "n": 1.0}"""


class Place(NamedTuple):
    """A database, and how one kind of program opens its transaction there."""

    url: str
    open: Open


PLACES = [*(f"pg18-{name}" for name in ON_POSTGRES), *(f"sqlite-{name}" for name in ON_SQLITE)]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    dialect, _, name = request.param.partition("-")
    if dialect == "sqlite":
        return Place(request.getfixturevalue("sqlite_url"), ON_SQLITE[name])
    return Place(request.getfixturevalue("pg_url"), ON_POSTGRES[name])


@pytest.fixture(params=[f"{server}-{name}" for server in ("pg15", "pg18") for name in ON_POSTGRES])
def postgres_place(request: pytest.FixtureRequest, empty_postgres: Callable[[int], str]) -> Place:
    server, _, name = request.param.partition("-")
    return Place(empty_postgres(int(server.removeprefix("pg"))), ON_POSTGRES[name])


@pytest.fixture
def others(place: Place) -> Iterator[Client]:
    """Return the client of somebody else."""
    with Client(place.url) as client:
        yield client


def sold(url: str) -> int:
    opened: Any = sqlite3.connect(path(url)) if url.startswith("sqlite") else psycopg.connect(url)
    with closing(opened) as connection:
        count: int = connection.execute("SELECT count(*) FROM shop").fetchone()[0]
        return count


def test_the_job_is_there_when_the_transaction_commits(place: Place, others: Client) -> None:
    with place.open(place.url) as caller:
        made = caller.enqueue(LANE, {"n": 1})
        with pytest.raises(NotFound):
            others.get(made.id)
        assert sold(place.url) == 0
        caller.commit()

        assert others.get(made.id).state is JobState.PENDING
        assert sold(place.url) == 1
        claim = others.store.claim(Ask(lane=LANE, node=1))
    assert claim is not None
    assert [claimed.context.payload for claimed in claim.jobs if claimed.context] == ['{"n":1}']


def test_the_job_never_was_when_the_transaction_is_rolled_back(place: Place, others: Client) -> None:
    with place.open(place.url) as caller:
        made = caller.enqueue(LANE, {"n": 1}, key="k", group="g", mode="block_on_error")
        caller.rollback()

        with pytest.raises(NotFound):
            others.get(made.id)
        assert sold(place.url) == 0
        assert others.counts() == {}
        assert not others.enqueue(LANE, {"n": 2}, key="k").duplicate


def test_everything_that_can_be_said_arrives(place: Place, others: Client) -> None:
    others.store.put_pool(pool("web"), actor="test")
    with place.open(place.url) as caller:
        made = caller.enqueue(
            LANE,
            Json(ODD),
            group="customer 'ü' 7",
            sequence=5,
            mode="next_on_error",
            run_at=NOON.astimezone(timezone(timedelta(hours=9))),
            start_by=NOON + timedelta(hours=1, microseconds=1),
            finish_by="2026-11-15T15:00:00.25+01:00",
            key="order-7",
            tenant="acme",
            target="https://example.com/hook?a=%20b",
            headers={"X-Trace": "ab:c"},
            pool="web",
            max_attempts=3,
            id="01arz3ndektsv4rrffq69g5fav",
            entity="order/7",
            version=12,
            event={"id": "e1"},
            correlation="c1",
        )
        caller.commit()

    job = others.get(made.id)
    assert made == Enqueued("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert (job.mode, job.live.grp, job.live.tenant) == (Mode.NEXT_ON_ERROR, "customer 'ü' 7", "acme")
    assert (job.live.start_by, job.live.max_attempts) == (NOON + timedelta(hours=1, microseconds=1), 3)
    assert job.context is not None
    assert job.context == Context(
        id=made.id,
        message_group="customer 'ü' 7",
        sequence=5,
        run_at=NOON,
        created_at=job.context.created_at,
        payload=ODD,
        headers='{"X-Trace":"ab:c"}',
        target="https://example.com/hook?a=%20b",
        pool="web",
        key="order-7",
        finish_by=NOON + timedelta(hours=2, milliseconds=250),
        entity="order/7",
        version="12",
        event='{"id":"e1"}',
        correlation="c1",
        unchecked=True,  # written through the view, as plain SQL is
    )


def test_a_key_makes_one_job_here_too(place: Place, others: Client) -> None:
    first = others.enqueue(LANE, {"n": 1}, key="k")
    with place.open(place.url) as caller:
        assert caller.enqueue(LANE, {"n": 1}, key="k") == Enqueued(first.id, duplicate=True)
        own = caller.enqueue(LANE, {"n": 1}, key="own")
        assert caller.enqueue(LANE, {"n": 1}, key="own") == Enqueued(own.id, duplicate=True)
        caller.commit()
    assert sum(others.counts().values()) == 2


def test_a_key_with_another_payload_is_refused_with_the_job_that_has_it(place: Place, others: Client) -> None:
    first = others.enqueue(LANE, {"n": 1}, key='k"1')
    with place.open(place.url) as caller:
        with pytest.raises(KeyConflict) as caught:
            caller.enqueue(LANE, {"n": 2}, key='k"1')
        caller.rollback()

    assert (caught.value.key, caught.value.job_id) == ('k"1', first.id)
    assert caught.value.__cause__ is not None


def test_a_key_twice_in_one_call_with_two_payloads_is_a_conflict(place: Place) -> None:
    with place.open(place.url) as caller:
        with pytest.raises(KeyConflict) as caught:
            caller.enqueue_many([{"lane": LANE, "payload": n, "key": "k"} for n in (1, 2)])
        caller.rollback()

    assert (caught.value.key, len(caught.value.job_id)) == ("k", 26)


def test_bad_input_is_refused_before_it_can_spoil_the_transaction(place: Place, others: Client) -> None:
    with place.open(place.url) as caller:
        with pytest.raises(UnknownLane, match="did you mean orders"):
            caller.enqueue("order")
        with pytest.raises(InvalidJob, match="payload"):
            caller.enqueue(LANE, float("nan"))
        with pytest.raises(InvalidJob, match="has no time zone"):
            caller.enqueue(LANE, run_at="2026-11-15T12:00:00")
        made = caller.enqueue(LANE)
        caller.commit()

    assert others.get(made.id).state is JobState.PENDING
    assert sold(place.url) == 1


def test_many_go_together_or_not_at_all(place: Place, others: Client) -> None:
    jobs: list[Any] = [{"lane": LANE, "payload": n, "group": None if n % 3 else "g"} for n in range(501)]
    jobs[7] |= {"key": "k"}
    jobs[13] |= {"key": "k", "payload": 7, "run_at": NOON}
    with place.open(place.url) as caller:
        with pytest.raises(InvalidJob, match="payload") as caught:
            caller.enqueue_many([*jobs, {"lane": LANE, "payload": {1}}])
        assert caught.value.__notes__ == ["it is jobs[501] of those given"]
        answers = caller.enqueue_many(jobs)
        assert caller.enqueue_many([]) == []
        caller.commit()

    assert sum(others.counts().values()) == 500
    ids = [answer.id for answer in answers if isinstance(answer, Enqueued)]
    assert answers[13] == Enqueued(ids[7], duplicate=True)
    found = others.store.find(ids[:20])
    payloads = [job.context.payload for id_ in ids[:20] if (job := found[id_]).context]
    assert payloads == [str(7 if n == 13 else n) for n in range(20)]


def test_what_the_database_itself_refuses_is_said_in_the_same_words(place: Place) -> None:
    with place.open(place.url) as caller:
        made = caller.enqueue(LANE)
        with pytest.raises(InvalidJob, match="there is a job") as caught:
            caller.enqueue(LANE, id=made.id)
        caller.rollback()
    assert caught.value.field == "id"


def test_an_open_transaction_stalls_nobody(postgres_place: Place) -> None:
    """Neither its group, an existing one, nor its lane; what is waited for longer than two seconds fails."""
    impatient = f"{postgres_place.url}?options=-clock_timeout%3D2s%20-cstatement_timeout%3D5s"
    with Client(impatient) as others, postgres_place.open(postgres_place.url) as caller:
        before = others.enqueue(LANE, group="old", mode="block_on_error")
        waiting = [
            caller.enqueue(LANE, group="old", mode="block_on_error"),
            caller.enqueue(LANE, group="new", mode="block_on_error", key="k1"),
            caller.enqueue(LANE, key="k2"),
        ]

        meanwhile = [
            others.enqueue(LANE, group="old", mode="block_on_error"),
            others.enqueue(LANE, group="new", mode="block_on_error"),
            others.enqueue(LANE, key="k3"),
        ]
        assert sent(others) == {before.id, *(made.id for made in meanwhile)}

        caller.commit()
        assert sent(others) == {made.id for made in waiting}


def sent(client: Client) -> set[str]:
    """Dispatch everything that may go, ordered or not."""
    found: set[str] = set()
    store, ask = client.store, Ask(lane=LANE, node=1)
    while (claim := store.claim(ask) or store.claim_groups(ask)) is not None:
        found |= {claimed.context.id for claimed in claim.jobs if claimed.context}
        store.settle(claim)
    return found
