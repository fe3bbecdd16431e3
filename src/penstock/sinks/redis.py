"""Sink `redis`: appends each message to a Redis stream.

A batch is one round trip. Redis does not remember what it took: a send whose answer was lost is appended
again. `accepted` means what the server's own persistence makes of it (`appendonly yes` at the least).
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, NamedTuple

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope
from penstock.domain.outcomes import Accepted, Receipt, Throttled, TryAgain, Unknown
from penstock.domain.texts import shown
from penstock.errors import InvalidSetting
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.options import known_only, number, required, size, text
from penstock.sinks.waves import PAUSE, Answer, TooLarge, Unsent, in_waves

MAX_MESSAGE: Final = 16 * 1024 * 1024
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
CONNECTIONS: Final = 20
_SAID: Final = 300
_LOST: Final = (RedisConnectionError, RedisTimeoutError, OSError)
_NOT_NOW: Final = ("BUSY", "LOADING", "MISCONF", "NOREPLICAS", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN")


class Entry(NamedTuple):
    """One XADD."""

    stream: str
    command: Sequence[str | bytes]


class RedisSink:
    """Appends to streams: the lane's `queue`, else the sink's, else one with the lane's name."""

    max_batch = 500
    keeps_order = False
    format = "pointer"
    complete_on = "reported"

    def __init__(
        self,
        pool: BlockingConnectionPool,
        *,
        writer: Writer,
        queue: str | None = None,
        maxlen: int | None = None,
        max_message: int = MAX_MESSAGE,
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._queue = queue
        self._trim = () if maxlen is None else ("MAXLEN", "~", str(maxlen))
        self._max_message = max_message

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Append the batch, one round trip per wave."""
        return await in_waves(batch, self._entry, self._append)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """A stream is not searched."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Close the kept connections."""
        await self._pool.disconnect()

    async def check(self) -> None:
        """Raise SinkUnavailable unless the server answers us."""
        connection = await self._connection()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                await connection.send_packed_command(connection.pack_commands([("PING",)]))
                await connection.read_response()
        except (RedisError, OSError, TimeoutError) as error:
            raise SinkUnavailable(_unreachable(error)) from error
        finally:
            await self._pool.release(connection)

    def _entry(self, envelope: Envelope) -> Entry:
        body = self._writer.body(envelope)
        if len(body) > self._max_message:
            raise TooLarge(len(body), self._max_message)
        stream = envelope.queue or self._queue or envelope.lane
        group = envelope.ordered_group
        fields: list[str | bytes] = ["body", body, "id", envelope.id, "send", str(envelope.number)]
        fields += ["lane", envelope.lane, *(() if group is None else ("group", group))]
        return Entry(stream, ["XADD", stream, *self._trim, "*", *fields])

    async def _append(self, entries: Sequence[Entry]) -> Sequence[Answer]:
        connection = await self._connection()
        answers: list[Answer] = []
        try:
            await connection.send_packed_command(connection.pack_commands([e.command for e in entries]))
            for entry in entries:
                answers.append(await _answer(connection, entry))  # noqa: PERF401 - it may end in between
        except BusyLoadingError as error:  # it hangs up after saying so, and did nothing
            answers += [Throttled(PAUSE, _said(error))] * (len(entries) - len(answers))
        except _LOST as error:
            answers += [Unknown(f"the connection broke: {_said(error)}")] * (len(entries) - len(answers))
        finally:
            if any(isinstance(answer, Unsent) for answer in answers):
                # It may be a replica by now; its name may lead to the primary next time.
                with suppress(*_LOST):
                    await connection.disconnect(nowait=True)
            await self._pool.release(connection)
        return answers

    async def _connection(self) -> AbstractConnection:
        connection: AbstractConnection | None = None
        try:
            connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            writer = connection._writer  # noqa: SLF001 - the pool overlooks connections that were reset
            if writer is None or writer.is_closing():
                await connection.disconnect(nowait=True)
                await connection.connect()
        except BaseException as error:
            if connection is not None:
                await self._pool.release(connection)
            if isinstance(error, RedisError | OSError):
                raise SinkUnavailable(_unreachable(error)) from error
            raise
        return connection


async def _answer(connection: AbstractConnection, entry: Entry) -> Answer:
    """Read one reply; a connection that breaks raises."""
    try:
        reply = await connection.read_response()
    except OutOfMemoryError as error:
        return Throttled(PAUSE, _said(error))
    except NoPermissionError as error:
        return Unsent(f'the stream "{entry.stream}" may not be written to: allow XADD ({_said(error)})')
    except ReadOnlyError:
        return Unsent("Redis is a replica, which takes nothing: write the primary's url")
    except MovedError:
        return Unsent("Redis is a cluster: give each stream's own node as url")
    except ResponseError as error:
        said = _said(error)
        if said.startswith("WRONGTYPE"):
            return Unsent(f'the key "{entry.stream}" is no stream: name another in the lane\'s queue')
        return Throttled(PAUSE, said) if said.startswith(_NOT_NOW) else TryAgain(said)
    return Accepted(reply.decode() if isinstance(reply, bytes) else str(reply))


def _unreachable(error: Exception) -> str:
    match error:
        case AuthenticationError() | NoPermissionError():
            return f"Redis does not let us in: {_said(error)}: check username and password"
        case _:
            return f"Redis cannot be reached: {_said(error)}: check url"


def _said(error: Exception) -> str:
    return shown(str(error) or type(error).__name__, _SAID)


async def open_redis(options: Options, supplies: Supplies) -> RedisSink:
    """Open a pool of connections and see that the server answers."""
    known_only(options, "url", "username", "password", "queue", "maxlen", "max_message", "ca_file")
    url = required(options, "url", "redis://127.0.0.1:6379/0")
    given = {name: text(options, name) for name in ("username", "password")}
    ca_file = text(options, "ca_file")
    if ca_file is not None:
        if not url.startswith("rediss://"):
            raise InvalidSetting("ca_file", 'is for encrypted connections: write url = "rediss://…"')
        given["ssl_ca_certs"] = ca_file
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=None,  # the caller limits the time
            socket_timeout=None,
            socket_connect_timeout=CONNECT_TIMEOUT.total_seconds(),
            retry=Retry(NoBackoff(), 0),  # the machine retries, and only the machine
            protocol=2,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValueError as error:
        raise InvalidSetting("url", f"{error}: write redis://host:6379/0, rediss:// or unix://") from None
    sink = RedisSink(
        pool,
        writer=supplies.writer("redis", format=RedisSink.format),
        queue=text(options, "queue"),
        maxlen=number(options, "maxlen"),
        max_message=size(options, "max_message", MAX_MESSAGE),
    )
    try:
        await sink.check()
    except BaseException:
        await sink.close()
        raise
    return sink
