"""The way in: one job, many jobs, the same job twice."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from penstock import (
    Client,
    Enqueued,
    InvalidJob,
    JobState,
    Json,
    KeyConflict,
    Mode,
    NewJob,
    NotFound,
    StoreUnavailable,
)
from penstock.domain.job import Context
from penstock.domain.states import Verb
from penstock.domain.ulid import is_valid
from penstock.errors import PenstockError, SchemaMismatch
from penstock.stores.memory import MemoryStore
from tests.client.conftest import LANE, put_lane

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_a_job_is_there_with_everything_that_was_said(client: Client) -> None:
    made = client.enqueue(
        LANE,
        {"n": 1},
        group="customer-7",
        sequence=5,
        mode="block_on_error",
        run_at=NOON,
        start_by=NOON + timedelta(hours=1),
        finish_by="2026-11-15T15:00:00+01:00",
        key="order-7",
        tenant="acme",
        target="https://example.com/hook",
        headers={"X-Trace": "abc"},
        max_attempts=3,
        entity="order/7",
        version=12,
        event={"id": "e1"},
        correlation="c1",
    )

    job = client.get(made.id)
    assert is_valid(made.id)
    assert not made.duplicate
    assert (job.id, job.lane, job.state, job.mode) == (made.id, LANE, JobState.PENDING, Mode.BLOCK_ON_ERROR)
    assert (job.live.grp, job.live.tenant, job.live.max_attempts) == ("customer-7", "acme", 3)
    assert (job.live.due_at, job.live.start_by) == (NOON, NOON + timedelta(hours=1))
    assert job.context is not None
    assert job.context == Context(
        id=made.id,
        message_group="customer-7",
        sequence=5,
        run_at=NOON,
        created_at=job.context.created_at,
        payload='{"n":1}',
        headers='{"X-Trace":"abc"}',
        target="https://example.com/hook",
        pool=None,
        key="order-7",
        finish_by=NOON + timedelta(hours=2),
        entity="order/7",
        version="12",
        event='{"id":"e1"}',
        correlation="c1",
    )


def test_a_target_that_its_lane_cannot_call_is_refused(client: Client) -> None:
    put_lane(client.store, "web", sink="http", target="https://shop.example/hook")
    job = client.enqueue("web", target="https://shop.example:8443/a@b?c=@").id
    for lane, target, problem in (
        ("web", "https://ann:pw42@shop.example/", "holds a user name"),
        ("web", "HTTP://ann@shop.example", "holds a user name"),
        (LANE, "https://ann:pw42@shop.example/", "holds a user name"),
        ("web", "nowhere", "is no URL to call"),
        ("web", "http://127.0.0.1:99999/", "has a port that cannot be"),
    ):
        for ask in (
            lambda lane=lane, target=target: client.enqueue(lane, target=target),
            lambda target=target: client.edit(job, reason="r", target=target),
        ):
            with pytest.raises(InvalidJob, match=f"target: .*{problem}") as refused:
                ask()
            assert "pw42" not in str(refused.value)
    with pytest.raises(InvalidJob, match="holds a user name"):
        client.start("edit", "", reason="r", change={"target": "http://ann:pw42@shop.example"})
    assert client.enqueue(LANE, target="a queue of its own@home")  # not called by us


def test_the_caller_may_choose_the_id(client: Client) -> None:
    chosen = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert client.enqueue(LANE, id=chosen).id == chosen

    with pytest.raises(InvalidJob, match=f"id: there is a job {chosen} already"):
        client.enqueue(LANE, id=chosen)
    assert client.get(chosen.lower()).id == chosen


def test_a_key_makes_one_job(client: Client) -> None:
    first = client.enqueue(LANE, {"n": 1}, key="k")

    assert client.enqueue(LANE, {"n": 1}, key="k") == Enqueued(first.id, duplicate=True)
    with pytest.raises(KeyConflict, match=f'key "k" already belongs to job {first.id}') as caught:
        client.enqueue(LANE, {"n": 2}, key="k")
    assert caught.value.job_id == first.id


def test_a_key_is_free_again_after_its_time(client: Client) -> None:
    put_lane(client.store, key_ttl="0s")
    first = client.enqueue(LANE, key="k")
    client.cancel(first.id, reason="test")

    second = client.enqueue(LANE, key="k")

    assert not second.duplicate
    assert second.id != first.id


def test_of_callers_with_one_key_at_once_one_makes_the_job(client: Client) -> None:
    barrier = Barrier(4)

    def enqueue(_: int) -> Enqueued:
        barrier.wait(timeout=30)
        return client.enqueue(LANE, {"n": 1}, key="same")

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(enqueue, range(4)))

    assert len({answer.id for answer in answers}) == 1
    assert sorted(answer.duplicate for answer in answers) == [False, True, True, True]


def test_many_get_one_answer_each_and_the_refused_hurt_nobody(client: Client) -> None:
    answers = client.enqueue_many(
        [
            {"lane": LANE, "payload": 1},
            {"lane": "order", "payload": 2},
            NewJob(lane=LANE, payload=" 3 ", key="k"),
            {"lane": LANE, "payload": float("nan")},
            {"lane": LANE, "payload": Json(" 3 "), "key": "k"},
            NewJob(lane=LANE, payload="{"),
        ]
    )

    assert [type(answer).__name__ for answer in answers] == [
        "Enqueued",
        "UnknownLane",
        "Enqueued",
        "InvalidJob",
        "Enqueued",
        "InvalidJob",
    ]
    assert str(answers[1]) == 'unknown lane "order"; did you mean orders?'
    assert isinstance(answers[2], Enqueued)
    assert answers[4] == Enqueued(answers[2].id, duplicate=True)
    assert sum(client.counts().values()) == 2


@pytest.mark.parametrize("one", [{"lane": LANE, "payload": 1}, NewJob(lane=LANE), "orders"])
def test_one_job_where_many_are_wanted_is_refused(client: Client, one: Any) -> None:  # noqa: ANN401 - wrong
    for way in (client.enqueue_many, client.enqueue_stream):
        with pytest.raises(InvalidJob, match=r"^jobs: is one .*: give a list of jobs, or use enqueue"):
            way(one)
    assert client.counts() == {}


def test_nothing_but_refused_ones_writes_nothing(client: Client) -> None:
    [answer] = client.enqueue_many([{"lane": "nowhere"}])

    assert isinstance(answer, PenstockError)
    assert client.enqueue_many([]) == []
    assert client.counts() == {}


class Counting(MemoryStore):
    """The memory store, and how many jobs each call brought."""

    def __init__(self, store: MemoryStore) -> None:
        self.__dict__.update(store.__dict__)
        self.sizes: list[int] = []

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | PenstockError]:
        self.sizes.append(len(jobs))
        return super().enqueue(jobs)


def test_many_are_written_ten_thousand_at_a_time(memory: MemoryStore) -> None:
    store = Counting(memory)

    answers = Client(store).enqueue_many({"lane": LANE} for _ in range(25_000))

    assert store.sizes == [10_000, 10_000, 5_000]
    assert len({answer.id for answer in answers if isinstance(answer, Enqueued)}) == 25_000


def test_a_stream_is_written_as_it_comes(memory: MemoryStore) -> None:
    store = Counting(memory)
    stream = Client(store).enqueue_stream(({"lane": LANE} for _ in range(10)), batch=3)

    assert isinstance(next(stream), Enqueued)
    assert store.sizes == [3]
    assert len(list(stream)) == 9
    assert store.sizes == [3, 3, 3, 1]


class TestOpening:
    def test_an_api_that_is_not_there_says_so(self) -> None:
        nowhere = "http://127.0.0.1:1"
        with pytest.raises(StoreUnavailable, match=re.escape(nowhere)), Client(nowhere) as client:
            client.list()

    def test_a_database_without_tables_says_what_to_do(self, tmp_path: Path) -> None:
        (tmp_path / "empty.db").touch()
        with pytest.raises(SchemaMismatch, match="penstock migrate"):
            Client(f"sqlite:///{tmp_path}/empty.db")


class TestLooking:
    @pytest.mark.parametrize("id_", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "nonsense", "", "\0", "\ud800"])
    def test_an_id_of_nothing_is_not_found(self, client: Client, id_: str) -> None:
        for look in (client.get, client.timeline, client.wait):
            with pytest.raises(NotFound):
                look(id_)  # type: ignore[operator]

    def test_the_timeline_tells_what_operators_did(self, client: Client) -> None:
        made = client.enqueue(LANE)
        client.hold(made.id, reason="wait for Bob")

        [entry] = client.timeline(made.id).audit

        assert (entry.actor, entry.action, entry.reason) == ("ann", Verb.HOLD, "wait for Bob")


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"there is no database .*typo\.db yet: run penstock migrate"):
        Client(f"sqlite:///{tmp_path}/typo.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fixture", ["sqlite_url", "pg_url"])
def test_a_closed_client_says_so(request: pytest.FixtureRequest, fixture: str) -> None:
    client = Client(request.getfixturevalue(fixture))
    job = client.enqueue(LANE).id
    client.close()

    with pytest.raises(StoreUnavailable, match="it was closed: open it again") as caught:
        client.enqueue(LANE)
    assert not caught.value.retryable
    with pytest.raises(StoreUnavailable, match="closed"):
        client.get(job)


def test_a_server_that_does_not_answer_is_named_with_its_own_words(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StoreUnavailable, match=r"(?i)connection refused"):
        Client("postgresql://nobody@127.0.0.1:1/none")
    assert capfd.readouterr().err == ""
