"""`AsyncClient`: the same as `Client` for asyncio code; its calls run in a few threads of its own.

No logic of its own: every method is `Client`'s, awaited. What differs is what cannot be in a thread, the
caller's own asyncio connection and the pauses of `wait`.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from datetime import timedelta
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, Unpack

from penstock import integrations
from penstock.client import BATCH, Answer, Answers, Client, looks
from penstock.domain.arguments import check_batch, check_several, check_timeout
from penstock.domain.intake import Fields, Given
from penstock.domain.job import Enqueued, Job
from penstock.domain.states import TERMINAL
from penstock.errors import PenstockError
from penstock.ports.clock import Clock, SystemClock
from penstock.ports.executor import Executor, ThreadExecutor
from penstock.ports.store import Store

P = ParamSpec("P")
R = TypeVar("R")
THREADS: Final = 4


def awaited(
    method: Callable[Concatenate[Client, P], R],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, R]]:
    """Return the same method for an AsyncClient."""

    @wraps(method)
    async def call(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(method, *args, **kwargs)

    return call


class AsyncClient:
    """Jobs in a database, for asyncio code: `async with AsyncClient("postgresql://user@host/db") as client`.

    The database is opened by the first call, or on entering `async with`. An `executor` that is given is not
    closed with the client.
    """

    def __init__(
        self,
        store: str | Store,
        *,
        actor: str = "client",
        clock: Clock | None = None,
        executor: Executor | None = None,
        notify: bool = True,
        api_key: str | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._open = partial(Client, store, actor=actor, clock=self._clock, notify=notify, api_key=api_key)
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._executor: Executor
        self._release: Callable[[], None] | None = None
        if executor is None:
            threads = ThreadExecutor(THREADS, name="penstock-client")
            self._executor, self._release = threads, threads.close
        else:
            self._executor = executor

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give up connections and threads."""
        if self._client is not None:
            await self._executor.run(self._client.close)
        if self._release is not None:
            self._release()

    async def _opened(self) -> Client:
        async with self._opening:
            if self._client is None:
                self._client = await self._executor.run(self._open)
            return self._client

    async def _run(self, method: Callable[Concatenate[Client, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        client = await self._opened()
        return await self._executor.run(partial(method, client, *args, **kwargs))

    # -- the way in
    async def enqueue(
        self, lane: str, payload: object = None, *, connection: object = None, **fields: Unpack[Fields]
    ) -> Enqueued:
        """Write one job and return its id, or raise what is wrong with it.

        As `Client.enqueue`; `connection` is one of psycopg (async), asyncpg or SQLAlchemy (async).
        """
        given = [{"lane": lane, "payload": payload, **fields}]
        [answer] = await self.enqueue_many(given, connection=connection)
        if isinstance(answer, PenstockError):
            raise answer
        return answer

    async def enqueue_many(self, jobs: Iterable[Given], *, connection: object = None) -> Answers:
        """Write many jobs, as `Client.enqueue_many`; `connection` as for `enqueue`."""
        check_several(jobs)
        if connection is None:
            return await self._run(Client.enqueue_many, [*jobs])
        admitted = await self._run(Client.admitted, [*jobs])
        home = await self._run(lambda client: client.home)
        return await integrations.enqueue_async(connection, admitted, home=home)

    def enqueue_stream(
        self, jobs: Iterable[Given] | AsyncIterable[Given], *, batch: int = BATCH
    ) -> AsyncIterator[Answer]:
        """Write jobs as they come, a batch at a time, and yield the answers; memory stays flat."""
        check_several(jobs)
        return self._stream(jobs, check_batch(batch))

    async def _stream(
        self, jobs: Iterable[Given] | AsyncIterable[Given], batch: int
    ) -> AsyncIterator[Answer]:
        async for part in _parts(jobs, batch):
            for answer in await self.enqueue_many(part):
                yield answer

    admitted = awaited(Client.admitted)

    # -- looking
    get = awaited(Client.get)
    list = awaited(Client.list)
    timeline = awaited(Client.timeline)
    explain = awaited(Client.explain)
    groups = awaited(Client.groups)
    group = awaited(Client.group)
    counts = awaited(Client.counts)
    lane = awaited(Client.lane)

    async def wait(self, id: str, timeout: timedelta | float | None = None) -> Job:  # noqa: A002, ASYNC109 - as Client
        """Return the job once it has ended, or as it is when the time is up; no thread waits for it."""
        time, job = check_timeout(timeout), await self.get(id)
        for pause in looks(self._clock, time):
            if job.state in TERMINAL:
                break
            await asyncio.sleep(pause)
            job = await self.get(id)
        return job

    # -- operators and executors
    operate = awaited(Client.operate)
    cancel = awaited(Client.cancel)
    skip = awaited(Client.skip)
    hold = awaited(Client.hold)
    release = awaited(Client.release)
    retry = awaited(Client.retry)
    settle = awaited(Client.settle)
    edit = awaited(Client.edit)
    report = awaited(Client.report)
    preview = awaited(Client.preview)
    start = awaited(Client.start)
    stop = awaited(Client.stop)
    operation = awaited(Client.operation)
    operations = awaited(Client.operations)


async def _parts(jobs: Iterable[Given] | AsyncIterable[Given], size: int) -> AsyncIterator[list[Given]]:
    if not isinstance(jobs, AsyncIterable):
        source = iter(jobs)
        while part := [*islice(source, size)]:
            yield part
        return
    part = []
    async for job in jobs:
        part.append(job)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
