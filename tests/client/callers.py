"""Programs that enqueue inside their own transaction, each with another driver or framework.

All speak the same few words, so that every test runs for all of them. Those written for asyncio have a loop
of their own that runs while they speak.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg
import django
import psycopg
import psycopg2
import sqlalchemy as sa
import sqlalchemy.ext.asyncio as sa_async
from django.conf import settings
from django.db import connections
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from penstock import AsyncClient, Client, Enqueued
from penstock.client import Answers
from penstock.domain.intake import Given

T = TypeVar("T")


@dataclass
class Caller:
    """A program with an open transaction that has written a row of its own, `n`, into the table `shop`."""

    _enqueue: Callable[..., Enqueued]
    _enqueue_many: Callable[..., Answers]
    connection: Any
    commit: Callable[[], object]
    rollback: Callable[[], object]

    def enqueue(self, lane: str, payload: object = None, **fields: Any) -> Enqueued:  # noqa: ANN401
        return self._enqueue(lane, payload, connection=self.connection, **fields)

    def enqueue_many(self, jobs: Iterable[Given]) -> Answers:
        return self._enqueue_many(jobs, connection=self.connection)


Open = Callable[[str], AbstractContextManager[Caller]]
WRITE = "INSERT INTO shop VALUES (1)"


@contextmanager
def blocking(
    url: str,
    connection: Any,  # noqa: ANN401
    commit: Callable[[], object],
    rollback: Callable[[], object],
) -> Iterator[Caller]:
    with Client(url) as client:
        yield Caller(client.enqueue, client.enqueue_many, connection, commit, rollback)


def path(url: str) -> str:
    return url.removeprefix("sqlite:///")


# -- drivers
@contextmanager
def with_psycopg(url: str) -> Iterator[Caller]:
    with closing(psycopg.connect(url)) as connection:
        connection.execute(WRITE)
        with blocking(url, connection, connection.commit, connection.rollback) as caller:
            yield caller


@contextmanager
def with_psycopg2(url: str) -> Iterator[Caller]:
    with closing(psycopg2.connect(url)) as connection:
        connection.cursor().execute(WRITE)
        with blocking(url, connection, connection.commit, connection.rollback) as caller:
            yield caller


@contextmanager
def with_sqlite3(url: str) -> Iterator[Caller]:
    with closing(sqlite3.connect(path(url))) as connection:
        connection.execute(WRITE)
        with blocking(url, connection, connection.commit, connection.rollback) as caller:
            yield caller


# -- SQLAlchemy
def engine_url(url: str, driver: str) -> str:
    return url if url.startswith("sqlite") else url.replace("postgresql://", f"postgresql+{driver}://", 1)


@contextmanager
def engine(url: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(engine_url(url, "psycopg"))
    try:
        yield made
    finally:
        made.dispose()


@contextmanager
def with_sqlalchemy_connection(url: str) -> Iterator[Caller]:
    with engine(url) as made, made.connect() as connection:
        connection.execute(sa.text(WRITE))
        with blocking(url, connection, connection.commit, connection.rollback) as caller:
            yield caller


@contextmanager
def with_sqlalchemy_session(url: str) -> Iterator[Caller]:
    with engine(url) as made, Session(made) as session:
        session.execute(sa.text(WRITE))
        with blocking(url, session, session.commit, session.rollback) as caller:
            yield caller


@contextmanager
def with_sqlalchemy_scoped_session(url: str) -> Iterator[Caller]:
    with engine(url) as made:
        session = scoped_session(sessionmaker(made))
        session.execute(sa.text(WRITE))
        with blocking(url, session, session.commit, session.rollback) as caller:
            yield caller
        session.remove()


# -- Django
@contextmanager
def django_default(url: str) -> Iterator[Any]:
    """Make this database Django's default for a while; Django has one set of databases per process."""
    if not settings.configured:
        settings.configure(USE_TZ=True)
        django.setup()
    if url.startswith("sqlite"):
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": path(url)}
    else:
        parts = psycopg.conninfo.conninfo_to_dict(url)
        named = {"HOST": "host", "PORT": "port", "USER": "user", "NAME": "dbname", "PASSWORD": "password"}
        database = {"ENGINE": "django.db.backends.postgresql"}
        database |= {ours: str(parts[theirs]) for ours, theirs in named.items() if theirs in parts}
    connections.settings = connections.configure_settings({"default": database})
    try:
        yield connections["default"]
    finally:
        connections["default"].close()
        del connections["default"]


@contextmanager
def with_django(url: str) -> Iterator[Caller]:
    with django_default(url) as connection:
        connection.set_autocommit(False)
        with connection.cursor() as cursor:
            cursor.execute(WRITE)
        with blocking(url, connection, connection.commit, connection.rollback) as caller:
            yield caller


# -- asyncio
@contextmanager
def in_a_loop(url: str, program: Callable[[str], Awaitable["Spoken"]]) -> Iterator[Caller]:
    """Run an asyncio program bit by bit in a loop of its own."""
    with asyncio.Runner() as runner:
        client = AsyncClient(url)
        spoken = runner.run(_await(program(url)))

        def run(call: Callable[..., Awaitable[T]]) -> Callable[..., T]:
            return lambda *args, **kwargs: runner.run(_await(call(*args, **kwargs)))

        try:
            yield Caller(
                run(client.enqueue),
                run(client.enqueue_many),
                spoken.connection,
                run(spoken.commit),
                run(spoken.rollback),
            )
        finally:
            run(spoken.close)()
            run(client.close)()


async def _await(what: Awaitable[T]) -> T:
    return await what


@dataclass
class Spoken:
    connection: Any
    commit: Callable[[], Awaitable[object]]
    rollback: Callable[[], Awaitable[object]]
    close: Callable[[], Awaitable[object]]


async def _psycopg(url: str) -> Spoken:
    connection = await psycopg.AsyncConnection.connect(url)
    await connection.execute(WRITE)
    return Spoken(connection, connection.commit, connection.rollback, connection.close)


async def _asyncpg(url: str) -> Spoken:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(WRITE)
    return Spoken(connection, transaction.commit, transaction.rollback, connection.close)


async def _asyncpg_pool(url: str) -> Spoken:
    pool = await asyncpg.create_pool(url, min_size=1)
    connection = await pool.acquire()
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(WRITE)

    async def close() -> None:
        await pool.release(connection)
        await pool.close()

    return Spoken(connection, transaction.commit, transaction.rollback, close)


def _sqlalchemy(driver: str, *, session: bool) -> Callable[[str], Coroutine[Any, Any, Spoken]]:
    async def program(url: str) -> Spoken:
        made = sa_async.create_async_engine(engine_url(url, driver))
        connection: Any = sa_async.AsyncSession(made) if session else await made.connect()
        await connection.execute(sa.text(WRITE))

        async def close() -> None:
            await connection.close()
            await made.dispose()

        return Spoken(connection, connection.commit, connection.rollback, close)

    return program


def looped(program: Callable[[str], Awaitable[Spoken]]) -> Open:
    return lambda url: in_a_loop(url, program)


ON_POSTGRES: dict[str, Open] = {
    "psycopg": with_psycopg,
    "psycopg2": with_psycopg2,
    "sqlalchemy-connection": with_sqlalchemy_connection,
    "sqlalchemy-session": with_sqlalchemy_session,
    "sqlalchemy-scoped-session": with_sqlalchemy_scoped_session,
    "django": with_django,
    "psycopg-async": looped(_psycopg),
    "asyncpg": looped(_asyncpg),
    "asyncpg-pool": looped(_asyncpg_pool),
    "sqlalchemy-async-connection": looped(_sqlalchemy("psycopg", session=False)),
    "sqlalchemy-async-session": looped(_sqlalchemy("psycopg", session=True)),
    "sqlalchemy-asyncpg-connection": looped(_sqlalchemy("asyncpg", session=False)),
    "sqlalchemy-asyncpg-session": looped(_sqlalchemy("asyncpg", session=True)),
}
ON_SQLITE: dict[str, Open] = {
    "sqlite3": with_sqlite3,
    "sqlalchemy-connection": with_sqlalchemy_connection,
    "sqlalchemy-session": with_sqlalchemy_session,
    "django": with_django,
}
