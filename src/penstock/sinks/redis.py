"""Sink `redis`: appends each message to a Redis stream.

A batch is one round trip. Redis does not remember what it took: a send whose answer was lost is appended
again. `accepted` means what the server's own persistence makes of it (`appendonly yes` at the least).
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    BusyLoadingError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from penstock.brokers import redis
from penstock.brokers.options import RECEIVING, known_only, number, size, text
from penstock.brokers.redis import CONNECT_TIMEOUT, LOST, unreachable
from penstock.brokers.words import said
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope
from penstock.domain.outcomes import Accepted, Receipt, Throttled, TryAgain, Unknown, Unsent
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.waves import PAUSE, TooLarge, in_waves

MAX_MESSAGE: Final = 16 * 1024 * 1024
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
            raise SinkUnavailable(unreachable(error)) from error
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

    async def _append(self, entries: Sequence[Entry]) -> Sequence[Receipt]:
        connection = await self._connection()
        answers: list[Receipt] = []
        try:
            await connection.send_packed_command(connection.pack_commands([e.command for e in entries]))
            for entry in entries:
                answers.append(await _answer(connection, entry))  # noqa: PERF401 - it may end in between
        except BusyLoadingError as error:  # it hangs up after saying so, and did nothing
            answers += [Throttled(PAUSE, said(error))] * (len(entries) - len(answers))
        except LOST as error:
            answers += [Unknown(f"the connection broke: {said(error)}")] * (len(entries) - len(answers))
        finally:
            if any(isinstance(answer, Unsent) for answer in answers):
                # It may be a replica by now; its name may lead to the primary next time.
                with suppress(*LOST):
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
                raise SinkUnavailable(unreachable(error)) from error
            raise
        return connection


async def _answer(connection: AbstractConnection, entry: Entry) -> Receipt:
    """Read one reply; a connection that breaks raises."""
    try:
        reply = await connection.read_response()
    except OutOfMemoryError as error:
        return Throttled(PAUSE, said(error))
    except NoPermissionError as error:
        return Unsent(f'the stream "{entry.stream}" may not be written to: allow XADD ({said(error)})')
    except ReadOnlyError:
        return Unsent("Redis is a replica, which takes nothing: write the primary's url")
    except MovedError:
        return Unsent("Redis is a cluster: give each stream's own node as url")
    except ResponseError as error:
        words = said(error)
        if words.startswith("WRONGTYPE"):
            return Unsent(f'the key "{entry.stream}" is no stream: name another in the lane\'s queue')
        return Throttled(PAUSE, words) if words.startswith(_NOT_NOW) else TryAgain(words)
    return Accepted(reply.decode() if isinstance(reply, bytes) else str(reply))


async def open_redis(options: Options, supplies: Supplies) -> RedisSink:
    """Open a pool of connections and see that the server answers."""
    known_only(options, *redis.OPTIONS, "maxlen", "max_message", *RECEIVING)
    pool = redis.make_pool(options)
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
