"""A network between a node and PostgreSQL that can be made to fail.

It forwards bytes and looks at them only to know when a COMMIT goes by: a reply that is lost after that is the
worst there is, for nobody can tell whether the transaction took effect.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import urlsplit, urlunsplit

PIECE = 65536
COMMIT = b"COMMIT\0"
HANGS_FOR_S = 3.0


class Fault(Enum):
    """What can happen to one connection."""

    LOSE_COMMIT = auto()  # the next COMMIT arrives, its answer does not, and the connection breaks
    LOSE_REPLY = auto()  # the same for whatever is sent next: a statement that commits by itself
    CUT = auto()  # both sides hear RST
    BLACK_HOLE = auto()  # nothing goes either way, and nobody is told for some seconds
    HALF_CLOSE = auto()  # the server's side ends; what the client sends still goes through
    DELAY = auto()  # for some seconds everything takes half a second longer


@dataclass(eq=False, slots=True)
class Link:
    """One connection through the proxy; `fault` is what is going to happen, or happens, to it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    fault: Fault | None = None
    muted: bool = False
    seen: bytes = b""

    def cut(self) -> None:
        for writer in (self.client, self.server):
            raw = writer.get_extra_info("socket")
            with suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def heal(self) -> None:
        self.fault = None

    def commits(self, data: bytes) -> bool:
        """Say whether a COMMIT went by, were it in two pieces."""
        self.seen = self.seen[-len(COMMIT) :] + data
        return COMMIT in self.seen


@dataclass(slots=True)
class Proxy:
    """`url` is the database as seen through the proxy; `strike` breaks a connection."""

    url: str
    links: set[Link] = field(default_factory=set)
    done: Counter[Fault] = field(default_factory=Counter)
    silent: bool = False

    def strike(self, fault: Fault, choose: Callable[[list[Link]], Link]) -> bool:
        """Have a fault happen to one of the connections that have none; say whether there was one."""
        sound = [link for link in self.links if link.fault is None]
        if not sound:
            return False
        link = choose(sound)
        link.fault = fault
        if fault is Fault.CUT:
            self.done[fault] += 1
            link.cut()
        if fault in (Fault.BLACK_HOLE, Fault.HALF_CLOSE):
            asyncio.get_running_loop().call_later(HANGS_FOR_S, link.cut)
        if fault is Fault.DELAY:
            asyncio.get_running_loop().call_later(HANGS_FOR_S, link.heal)
        return True

    def silence(self) -> None:
        """Carry nothing any more, for anybody, and tell nobody."""
        self.silent = True
        for link in self.links:
            link.fault = Fault.BLACK_HOLE

    def clear(self) -> None:
        """Let there be no more faults; what hangs breaks."""
        for link in list(self.links):
            if link.fault in (Fault.BLACK_HOLE, Fault.HALF_CLOSE):
                link.cut()
            link.heal()

    async def to_server(self, link: Link, data: bytes) -> None:
        match link.fault:
            case Fault.BLACK_HOLE:
                self.done[Fault.BLACK_HOLE] += 1
                return
            case Fault.LOSE_COMMIT if link.commits(data):
                link.muted = True
            case Fault.LOSE_REPLY:
                link.muted = True
            case Fault.DELAY:
                self.done[Fault.DELAY] += 1
                await asyncio.sleep(0.5)
            case _:
                pass
        link.server.write(data)
        await link.server.drain()

    async def to_client(self, link: Link, data: bytes) -> None:
        match link.fault:
            case Fault.BLACK_HOLE:
                return
            case Fault.LOSE_COMMIT | Fault.LOSE_REPLY if (
                link.muted
            ):  # it was carried out, and nobody hears of it
                self.done[link.fault] += 1
                link.cut()
                return
            case Fault.HALF_CLOSE:
                self.done[Fault.HALF_CLOSE] += 1
                if not link.client.is_closing() and link.client.can_write_eof():
                    link.client.write_eof()
                return
            case _:
                pass
        link.client.write(data)
        await link.client.drain()


@asynccontextmanager
async def proxy(url: str) -> AsyncIterator[Proxy]:
    """Listen in front of a database."""
    parts = urlsplit(url)
    ours = Proxy("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(parts.hostname, parts.port)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, server_writer, Fault.BLACK_HOLE if ours.silent else None)
        ours.links.add(link)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, server_writer, lambda data: ours.to_server(link, data)))
                tasks.create_task(_pump(server_reader, writer, lambda data: ours.to_client(link, data)))
        finally:
            ours.links.discard(link)
            link.cut()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ours.url = urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))
    try:
        yield ours
    finally:
        server.close()
        while ours.links:
            for link in ours.links:
                link.cut()
            await asyncio.sleep(0.01)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, carry: Callable[[bytes], Awaitable[None]]
) -> None:
    """Carry what comes until it ends, then say goodbye to the other side."""
    with suppress(ConnectionError):
        while data := await reader.read(PIECE):
            await carry(data)
        if not writer.is_closing() and writer.can_write_eof():
            writer.write_eof()
