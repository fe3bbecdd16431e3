"""Receivers that nobody should have to call: each takes a request and then misbehaves in its own way."""

import asyncio
import gzip
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PIECE = b"x" * 65536
BOMB = gzip.compress(b"\0" * 50_000_000)


@dataclass(slots=True)
class Victim:
    """The connection of somebody who called us, and what we gave him."""

    writer: asyncio.StreamWriter
    gone: asyncio.Event
    sent: int = 0

    async def give(self, data: bytes) -> None:
        self.writer.write(data)
        self.sent += len(data)
        await self.writer.drain()


Manners = Callable[[Victim], Awaitable[None]]


@dataclass(slots=True)
class Hostile:
    """A server without manners."""

    url: str
    victims: list[Victim] = field(default_factory=list)
    met: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def sent(self) -> int:
        return sum(victim.sent for victim in self.victims)


@asynccontextmanager
async def hostile(manners: Manners) -> AsyncIterator[Hostile]:
    """Serve with these manners on a free port."""
    ours = Hostile("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        victim = Victim(writer, asyncio.Event())
        ours.victims.append(victim)
        ours.met.set()
        try:
            await reader.readuntil(b"\r\n\r\n")
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(_behave(manners, victim))
                await _until_gone(reader)
                work.cancel()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            victim.gone.set()
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    ours.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield ours
    finally:
        server.close()
        for victim in ours.victims:
            victim.writer.transport.abort()
            await victim.gone.wait()


async def _until_gone(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(65536):
            pass


async def _behave(manners: Manners, victim: Victim) -> None:
    with suppress(ConnectionError):
        await manners(victim)


async def silent(_: Victim) -> None:
    """Take it and say nothing."""


async def dripping(victim: Victim) -> None:
    """Answer a byte at a time."""
    await victim.give(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        await victim.give(b" ")
        await asyncio.sleep(0.01)


async def dripping_head(victim: Victim) -> None:
    """Never come to the end of the first line."""
    await victim.give(b"HTTP/1.1 200 ")
    while True:
        await victim.give(b"O")
        await asyncio.sleep(0.01)


async def endless_chunks(victim: Victim) -> None:
    """Answer for ever."""
    await victim.give(CHUNKED)
    while True:
        await victim.give(b"10000\r\n" + PIECE + b"\r\n")


async def huge_body(victim: Victim) -> None:
    """Promise ten gigabytes and begin to deliver."""
    await victim.give(HEAD + b"Content-Length: 10000000000\r\n\r\n")
    while True:
        await victim.give(PIECE)


async def huge_chunk(victim: Victim) -> None:
    """One chunk of ten gigabytes."""
    await victim.give(CHUNKED + b"2540BE400\r\n")
    while True:
        await victim.give(PIECE)


async def endless_headers(victim: Victim) -> None:
    """Never come to the end of the headers."""
    await victim.give(HEAD)
    number = 0
    while True:
        number += 1
        await victim.give(b"".join(b"X-%d-%d: %s\r\n" % (number, n, b"v" * 200) for n in range(50)))


async def endless_line(victim: Victim) -> None:
    """A header that does not end."""
    await victim.give(HEAD + b"X: ")
    while True:
        await victim.give(PIECE)


async def continues(victim: Victim) -> None:
    """Say "go on" for ever."""
    while True:
        await victim.give(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


async def bomb(victim: Victim) -> None:
    """Fifty megabytes of nothing in fifty kilobytes."""
    await victim.give(
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB,
    )


async def reset_in_the_body(victim: Victim) -> None:
    """Hang up in the middle, without a goodbye."""
    await victim.give(HEAD + b'Content-Length: 1000\r\n\r\n{"ack": ')
    _reset(victim.writer)


async def reset_at_once(victim: Victim) -> None:
    """Hang up without an answer."""
    _reset(victim.writer)


async def close_in_the_body(victim: Victim) -> None:
    """Say goodbye too early."""
    await victim.give(HEAD + b"Content-Length: 1000\r\n\r\n{")
    victim.writer.close()


async def garbage(victim: Victim) -> None:
    """Speak another language."""
    await victim.give(b"\x00\x01SSH-2.0-OpenSSH\r\n\r\n" + b"\xff" * 1000)
    victim.writer.close()


async def two_answers(victim: Victim) -> None:
    """Answer twice, as if to somebody else's question."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    await victim.give(answer + b"HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST: what was not read is thrown away, on both sides."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
