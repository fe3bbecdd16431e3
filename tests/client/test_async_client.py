"""AsyncClient: every word of Client's, awaited."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from penstock import AsyncClient, Client, Enqueued, InvalidJob, JobState, NotFound
from penstock.errors import PenstockError, SchemaMismatch
from penstock.ports.store import Ask
from penstock.stores.memory import MemoryStore
from tests.client.conftest import LANE

T = TypeVar("T")
MINUTE = timedelta(minutes=1)


def public(cls: type) -> dict[str, inspect.Signature]:
    methods = {name: getattr(cls, name) for name in vars(cls) if not name.startswith("_")}
    return {name: inspect.signature(method) for name, method in methods.items() if callable(method)}


def test_it_has_every_method_of_client() -> None:
    ours, theirs = public(AsyncClient), public(Client)
    inner = {"acting"}  # how the API speaks for somebody

    assert set(ours) == set(theirs) - inner
    for name in ours:
        assert list(ours[name].parameters) == list(theirs[name].parameters), name


@pytest.fixture(params=["sqlite_url", "pg_url"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


async def test_a_job_from_end_to_end(url: str) -> None:
    async with AsyncClient(url, actor="ann") as client:
        made = await client.enqueue(LANE, {"n": 1}, key="k")
        assert await client.enqueue(LANE, {"n": 1}, key="k") == Enqueued(made.id, duplicate=True)
        assert (await client.get(made.id)).state is JobState.PENDING
        assert [job.id for job in (await client.list(lane=LANE)).jobs] == [made.id]
        with pytest.raises(InvalidJob, match="payload"):
            await client.enqueue(LANE, float("nan"))
        with pytest.raises(NotFound):
            await client.get("nonsense")

        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(client.wait(made.id, MINUTE))
            await client.cancel(made.id, reason="r")
        assert waiting.result().state is JobState.CANCELLED
        [entry] = (await client.timeline(made.id)).audit
        assert (entry.actor, entry.reason) == ("ann", "r")


async def test_many(url: str) -> None:
    async with AsyncClient(url) as client:
        answers = await client.enqueue_many({"lane": lane} for lane in (LANE, "nowhere", LANE))
        assert [isinstance(answer, Enqueued) for answer in answers] == [True, False, True]

        stream = client.enqueue_stream(({"lane": LANE} for _ in range(7)), batch=3)
        assert [isinstance(answer, PenstockError) async for answer in stream] == [False] * 7
        assert sum((await client.counts()).values()) == 9


async def test_a_stream_comes_from_asyncio_code_too(url: str) -> None:
    async def arriving() -> AsyncIterator[dict[str, object]]:
        for n in range(7):
            yield {"lane": LANE, "payload": n}

    async with AsyncClient(url) as client:
        answers = [answer async for answer in client.enqueue_stream(arriving(), batch=3)]
        assert [isinstance(answer, Enqueued) for answer in answers] == [True] * 7
        with pytest.raises(InvalidJob, match="give a list of jobs"):
            await client.enqueue_many({"lane": LANE})  # type: ignore[arg-type]


async def test_waiting_ends_when_the_time_is_up(url: str) -> None:
    async with AsyncClient(url) as client:
        made = await client.enqueue(LANE)

        assert (await client.wait(made.id, timedelta(0))).state is JobState.PENDING
        assert (await client.wait(made.id, timedelta(milliseconds=1))).state is JobState.PENDING


async def test_without_a_context_the_first_call_opens_the_database(url: str) -> None:
    client = AsyncClient(url)
    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(client.enqueue(LANE)) for _ in range(4)]
    await client.close()

    assert len({task.result().id for task in made}) == 4


async def test_what_was_never_opened_can_be_closed() -> None:
    await AsyncClient("sqlite:///nowhere/at/all.db").close()


async def test_a_database_without_tables_is_refused_on_entering(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    client = AsyncClient(f"sqlite:///{tmp_path}/empty.db")
    with pytest.raises(SchemaMismatch):
        await client.__aenter__()
    await client.close()


class Inline:
    """An executor that runs calls on the spot, and notes where."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    async def run(self, call: Callable[[], T]) -> T:
        self.threads.append(threading.current_thread())
        return call()


async def test_an_executor_may_be_given(memory: MemoryStore) -> None:
    executor = Inline()
    async with AsyncClient(memory, executor=executor) as client:
        job = (await client.enqueue(LANE)).id
        memory.claim(Ask(lane=LANE, node=1))
        await client.report(job, 1, "started")
        assert (await client.lane(LANE)).name == LANE

    assert set(executor.threads) == {threading.main_thread()}
    assert memory.find([job])[job].state is JobState.RUNNING
