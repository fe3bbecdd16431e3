"""How each driver runs a statement over a connection of its own.

Connections are recognised by the names of their classes, so that nothing is imported that the caller does not
use. Cursors are made anew where a connection may have been told to return rows as something else.
"""

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, Final

from penstock.integrations.statements import Dialect, Rows, Statement


@dataclass(frozen=True, slots=True)
class Line:
    """A connection that blocks; `address` is where its driver says that it leads."""

    dialect: Dialect
    run: Callable[[Statement], Rows]
    address: str


@dataclass(frozen=True, slots=True)
class AsyncLine:
    """A connection for asyncio code; `address` as in a Line."""

    dialect: Dialect
    run: Callable[[Statement], Awaitable[Rows]]
    address: str


def synchronous(connection: Any) -> Line:  # noqa: ANN401 - whatever the caller has
    """Return how to talk over a connection that blocks, or raise TypeError."""
    for name in _names(connection):
        if name in _SYNC:
            return _SYNC[name](connection)
        if name in _ASYNC:
            raise TypeError(f"{name} is for asyncio code: use it with AsyncClient")
    raise _unsupported(connection)


async def asynchronous(connection: Any) -> AsyncLine:  # noqa: ANN401 - whatever the caller has
    """Return how to talk over a connection for asyncio code, or raise TypeError."""
    for name in _names(connection):
        if name in _ASYNC:
            return await _ASYNC[name](connection)
        if name in _SYNC:
            raise TypeError(f"{name} would block the event loop: use it with Client")
    raise _unsupported(connection)


def _names(connection: object) -> Iterator[str]:
    for cls in type(connection).__mro__:
        yield f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def _unsupported(connection: object) -> TypeError:
    kind = type(connection)
    known = ", ".join([*_SYNC, *_ASYNC])
    return TypeError(
        f"{kind.__module__}.{kind.__qualname__} is none of the connections Penstock knows: {known}"
    )


# -- psycopg, psycopg2, asyncpg, sqlite3
def _psycopg(connection: Any) -> Line:  # noqa: ANN401
    psycopg = sys.modules["psycopg"]

    def run(statement: Statement) -> Rows:
        with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(_formatted(statement.sql), statement.values)
            return cursor.fetchall() if statement.rows else []

    return Line("postgresql", run, _libpq(connection))


async def _psycopg_async(connection: Any) -> AsyncLine:  # noqa: ANN401
    psycopg = sys.modules["psycopg"]

    async def run(statement: Statement) -> Rows:
        async with psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(_formatted(statement.sql), statement.values)
            return await cursor.fetchall() if statement.rows else []

    return AsyncLine("postgresql", run, _libpq(connection))


def _psycopg2(connection: Any) -> Line:  # noqa: ANN401
    plain = sys.modules["psycopg2.extensions"].cursor

    def run(statement: Statement) -> Rows:
        with connection.cursor(cursor_factory=plain) as cursor:
            cursor.execute(_formatted(statement.sql), statement.values)
            return cursor.fetchall() if statement.rows else []

    return Line("postgresql", run, _libpq(connection))


def _libpq(connection: Any) -> str:  # noqa: ANN401
    info = connection.info
    return f"{info.dbname} {info.host} {info.port}"


async def _asyncpg(connection: Any) -> AsyncLine:  # noqa: ANN401
    async def run(statement: Statement) -> Rows:
        rows: Rows = await connection.fetch(_numbered(statement.sql), *statement.values)
        return rows

    address = (getattr(connection, "_params", None), getattr(connection, "_addr", None))
    return AsyncLine("postgresql", run, f"{getattr(address[0], 'database', None)} {address[1]}")


def _sqlite3(connection: Any) -> Line:  # noqa: ANN401
    def run(statement: Statement) -> Rows:
        cursor = connection.cursor()
        cursor.row_factory = None
        theirs, connection.text_factory = connection.text_factory, str  # keys and ids are compared as text
        try:
            rows: Rows = cursor.execute(statement.sql, statement.values).fetchall()
        finally:
            connection.text_factory = theirs
        return rows

    return Line("sqlite", run, "")


# -- SQLAlchemy
def _sqlalchemy(connection: Any) -> Line:  # noqa: ANN401
    def run(statement: Statement) -> Rows:
        result = connection.execute(*_text(statement))
        return result.fetchall() if statement.rows else []

    return Line(_dialect(connection.dialect.name), run, _url(connection))


def _sqlalchemy_session(session: Any) -> Line:  # noqa: ANN401
    return _sqlalchemy(session.connection())


async def _sqlalchemy_async(connection: Any) -> AsyncLine:  # noqa: ANN401
    async def run(statement: Statement) -> Rows:
        result = await connection.execute(*_text(statement))
        return result.fetchall() if statement.rows else []

    return AsyncLine(_dialect(connection.dialect.name), run, _url(connection))


async def _sqlalchemy_async_session(session: Any) -> AsyncLine:  # noqa: ANN401
    return await _sqlalchemy_async(await session.connection())


def _url(connection: Any) -> str:  # noqa: ANN401
    return str(connection.engine.url)  # without the password


def _text(statement: Statement) -> tuple[object, dict[str, object]]:
    clause = sys.modules["sqlalchemy"].text(_named(statement.sql))
    return clause, {f"p{number}": value for number, value in enumerate(statement.values, 1)}


# -- Django
def _django(connection: Any) -> Line:  # noqa: ANN401
    def run(statement: Statement) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(_formatted(statement.sql), statement.values)
            return cursor.fetchall() if statement.rows else []

    told = connection.settings_dict
    return Line(_dialect(connection.vendor), run, f"{told['NAME']} {told['HOST']} {told['PORT']}")


def _dialect(name: str) -> Dialect:
    if name == "postgresql":
        return "postgresql"
    if name == "sqlite":
        return "sqlite"
    raise TypeError(f"this connection leads to {name}: Penstock keeps jobs in PostgreSQL or SQLite")


# -- marks where values go
@lru_cache(maxsize=256)
def _formatted(sql: str) -> str:
    return sql.replace("?", "%s")


@lru_cache(maxsize=256)
def _numbered(sql: str) -> str:
    return _marked(sql, "$")


@lru_cache(maxsize=256)
def _named(sql: str) -> str:
    return _marked(sql, ":p")


def _marked(sql: str, mark: str) -> str:
    first, *rest = sql.split("?")
    return first + "".join(f"{mark}{number}{part}" for number, part in zip(count(1), rest, strict=False))


_SYNC: Final[Mapping[str, Callable[[Any], Line]]] = {
    "psycopg.Connection": _psycopg,
    "psycopg2.connection": _psycopg2,
    "sqlite3.Connection": _sqlite3,
    "sqlalchemy.Connection": _sqlalchemy,
    "sqlalchemy.Session": _sqlalchemy_session,
    "sqlalchemy.scoped_session": _sqlalchemy_session,
    "django.BaseDatabaseWrapper": _django,
    "django.ConnectionProxy": _django,
}
_ASYNC: Final[Mapping[str, Callable[[Any], Awaitable[AsyncLine]]]] = {
    "psycopg.AsyncConnection": _psycopg_async,
    "asyncpg.Connection": _asyncpg,
    "asyncpg.PoolConnectionProxy": _asyncpg,
    "sqlalchemy.AsyncConnection": _sqlalchemy_async,
    "sqlalchemy.AsyncSession": _sqlalchemy_async_session,
    "sqlalchemy.async_scoped_session": _sqlalchemy_async_session,
}
