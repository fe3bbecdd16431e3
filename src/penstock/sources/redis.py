"""Source `redis`: streams, read as the consumer group `penstock`.

Every router is a consumer of the group. What it was given it must acknowledge; what it was given and has not
confirmed for `visibility` is taken over by another. Redis cannot put off an entry, nor hold back what is
behind it in its group, so entries wait here (shelf.py) and are confirmed while they do. Between several
routers it is the lane's `hold_until = "done"` that keeps a group in order.

An entry that is done with is deleted from its stream. What is buried goes to the stream `NAME/dead`.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from secrets import token_hex
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from penstock.brokers import redis
from penstock.brokers.options import RECEIVING, known_only
from penstock.brokers.redis import LOST, unreachable
from penstock.brokers.words import said
from penstock.ports.source import Incoming, Options, SourceUnavailable, Supplies
from penstock.sources.reading import Reading, reading
from penstock.sources.shelf import Kept, group_of

GROUP: Final = "penstock"
RETURNED: Final = "returned"  # the consumer that owns what a router gave back
MOST: Final = 10_000
WAIT_S: Final = 0.5
RECLAIM_S: Final = 1.0
ANSWER_S: Final = 10.0
FORGOTTEN: Final = timedelta(days=1)
PAGE: Final = 500
_FIRST, _LAST = "-", "+"
"""A stream and the id of an entry."""


class RedisSource:
    """Reads streams. See the module."""

    def __init__(self, pool: BlockingConnectionPool, reading: Reading) -> None:
        self.name = reading.name
        self.visibility = reading.visibility
        self.consumer = f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"
        self._pool = pool
        self._redis: Any = Redis(connection_pool=pool)  # its types say bytes, str or int of everything
        self._reading = reading
        self._turns = reading.turns
        self._clock = reading.clock
        self._shelf = reading.shelf()
        self._joined: set[str] = set()
        self._cursors: dict[str, str] = {}
        self._confirmed_at = self._reclaimed_at = float("-inf")

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return what is due; entries of silent routers come before new ones."""
        async with self._answers():
            await self._confirm()
            streams = [stream for stream in self._turns.next() if await self._join(stream)]
            if streams and len(self._shelf) < MOST:
                await self._reclaim(streams)
                await self._read(streams, limit)
            elif not self._shelf.due:
                await self._shelf.rest(WAIT_S)
        found = self._shelf.take(limit)
        if not found:
            self._turns.complain()
        return found

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Delete them, in the group and in their streams."""
        await self._delete(self._ours(messages))
        self._shelf.done(messages)

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Let them wait here."""
        self._shelf.again(messages, delay)

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Tell Redis that we are at it still."""
        async with self._answers():
            await self._confirm(now=True)
        return self._shelf.extend(messages)

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Move them to the dead stream, in one transaction."""
        await self._delete(self._ours(messages), bury=True)
        self._shelf.done(messages)

    async def close(self) -> None:
        """Give back what is not acknowledged, so that others need not wait for it."""
        try:
            async with self._answers():
                for stream in self._joined:
                    await self._claim(stream, await self._owned(stream), owner=RETURNED, idle=self._ms)
        except SourceUnavailable:
            pass  # then it is taken over in time
        self._joined.clear()
        await self._redis.aclose()
        await self._pool.disconnect()

    # -- reading
    async def _join(self, stream: str) -> bool:
        """Make sure that the group is there; say whether the stream can be read."""
        if stream in self._joined:
            return True
        try:
            await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not said(error).startswith("BUSYGROUP"):
                self._turns.skip(stream, _wrong(stream, error))
                return False
        self._joined.add(stream)
        await self._forget_consumers(stream)
        return True

    async def _read(self, streams: Sequence[str], limit: int) -> None:
        """Read new entries; wait for some if there is nothing else to do."""
        wait = 0 if self._shelf.due else max(1, round(1000 * min(WAIT_S, self._shelf.due_in)))
        try:
            reply = await self._redis.xreadgroup(
                GROUP,
                self.consumer,
                streams=dict.fromkeys(streams, ">"),
                count=max(1, limit // len(streams)),
                block=wait or None,
            )
        except ResponseError as error:  # somebody deleted a stream or its group
            self._joined.clear()
            raise SourceUnavailable(_wrong(", ".join(streams), error)) from error
        for stream, entries in reply or ():
            await self._put(_text(stream), entries, known=False)

    async def _reclaim(self, streams: Sequence[str]) -> None:
        """Take over what other routers have not confirmed for too long, the oldest first."""
        now = self._clock.monotonic()
        if now < self._reclaimed_at + min(RECLAIM_S, self.visibility.total_seconds() / 3):
            return
        for stream in streams:
            start = self._cursors.get(stream, "0-0")
            reply = await self._redis.xautoclaim(
                stream, GROUP, self.consumer, min_idle_time=self._ms, start_id=start, count=PAGE
            )
            self._cursors[stream] = _text(reply[0])
            await self._put(stream, reply[1], known=True)
        if all(self._cursors[stream] == "0-0" for stream in streams):
            self._reclaimed_at = now

    async def _put(self, stream: str, entries: Sequence[Any], *, known: bool) -> None:
        """Keep entries here; those that were given out before say how often."""
        whole = [(_text(id_), fields) for id_, fields in entries if fields is not None]
        fresh = [(id_, fields) for id_, fields in whole if (stream, id_) not in self._shelf]
        received: dict[str, int] = {}
        if known and fresh:
            pending = await self._redis.xpending_range(
                stream, GROUP, min=fresh[0][0], max=fresh[-1][0], count=PAGE, consumername=self.consumer
            )
            received = {_text(one["message_id"]): one["times_delivered"] - 1 for one in pending}
        for id_, fields in fresh:
            body = _text(fields.get(b"body", b""))
            self._shelf.put(stream, body, group_of(body), tag=(stream, id_), receives=received.get(id_, 0))

    # -- what we have
    async def _confirm(self, *, now: bool = False) -> None:
        """Tell Redis three times per visibility that we are there; what others took over is gone."""
        started = self._clock.monotonic()
        if not now and started < self._confirmed_at + self.visibility.total_seconds() / 3:
            return
        for stream in {kept.queue for kept in self._shelf}:
            owned = {(stream, id_) for id_ in await self._owned(stream)}
            self._shelf.lose(lambda kept, s=stream, o=owned: kept.queue == s and kept.tag not in o)  # type: ignore[misc]
            await self._claim(stream, [_id(kept) for kept in self._shelf if kept.queue == stream])
        self._confirmed_at = started

    async def _owned(self, stream: str) -> list[str]:
        """Return the ids of all entries that are ours as far as Redis knows."""
        found: list[str] = []
        start = _FIRST
        while True:
            page = await self._redis.xpending_range(
                stream, GROUP, min=start, max=_LAST, count=PAGE, consumername=self.consumer
            )
            found += [_text(one["message_id"]) for one in page]
            if len(page) < PAGE:
                return found
            start = f"({found[-1]}"

    async def _claim(
        self, stream: str, ids: Sequence[str], *, owner: str | None = None, idle: int = 0
    ) -> None:
        for begin in range(0, len(ids), PAGE):
            await self._redis.xclaim(
                stream,
                GROUP,
                owner or self.consumer,
                0,
                list(ids[begin : begin + PAGE]),
                idle=idle,
                justid=True,
            )

    async def _delete(self, several: Sequence[Kept], *, bury: bool = False) -> None:
        if not several:
            return
        async with self._answers(), self._redis.pipeline(transaction=True) as steps:
            for kept in several:
                if bury:
                    body = kept.body.encode(errors="surrogateescape")
                    steps.xadd(self._reading.dead(kept.queue), {"body": body, "of": _id(kept)})
                steps.xack(kept.queue, GROUP, _id(kept))
                steps.xdel(kept.queue, _id(kept))
            await steps.execute()

    async def _forget_consumers(self, stream: str) -> None:
        """Remove the names of routers that are long gone and owe nothing."""
        for one in await self._redis.xinfo_consumers(stream, GROUP):
            if one["pending"] == 0 and one["idle"] > FORGOTTEN.total_seconds() * 1000:
                await self._redis.xgroup_delconsumer(stream, GROUP, _text(one["name"]))

    def _ours(self, messages: Sequence[Incoming]) -> list[Kept]:
        return [kept for kept in (_kept(message) for message in messages) if not kept.gone]

    @property
    def _ms(self) -> int:
        return round(self.visibility.total_seconds() * 1000)

    @asynccontextmanager
    async def _answers(self) -> AsyncIterator[None]:
        """Turn what the driver raises into what a router understands."""
        try:
            async with asyncio.timeout(ANSWER_S):
                yield
        except LOST as error:
            raise SourceUnavailable(unreachable(error)) from error
        except NoPermissionError as error:
            raise SourceUnavailable(f"Redis does not let us read streams: {said(error)}") from error
        except RedisError as error:
            raise SourceUnavailable(f"Redis refuses: {said(error)}") from error


def _kept(message: Incoming) -> Kept:
    assert isinstance(message.handle, Kept)  # noqa: S101 - for the type checker
    return message.handle


def _id(kept: Kept) -> str:
    assert isinstance(kept.tag, tuple)  # noqa: S101 - for the type checker
    return str(kept.tag[1])


def _text(value: bytes | str) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value


def _wrong(stream: str, error: Exception) -> str:
    words = said(error)
    if words.startswith("WRONGTYPE"):
        return f'the key "{stream}" is no stream: name another in the lane\'s queue'
    if words.startswith("NOPERM"):
        return f'the stream "{stream}" may not be read: allow +@stream ({words})'
    return f'the stream "{stream}" cannot be read: {words}'


async def open_redis(options: Options, supplies: Supplies) -> RedisSource:
    """Make a pool of connections; the first look tells whether Redis answers."""
    known_only(options, *redis.OPTIONS, "maxlen", "max_message", *RECEIVING)
    return RedisSource(redis.make_pool(options), reading(options, supplies))
