"""A network between a sink and its broker that can be made to fail; it carries bytes, whatever they mean."""

import asyncio
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from tests.servers import free_port

PIECE = 65536
Rewrite = Callable[[bytes], bytes]


class Network:
    """Listens on `port` in front of a broker.

    While it is down nobody gets through and open connections break. While answers are held, what is sent
    arrives and nothing comes back; when they are lost, the connection breaks at the first answer instead.
    With `instead`, requests of HTTP get that answer and do not arrive.
    """

    def __init__(self, broker_port: int) -> None:
        self.broker_port = broker_port
        self.port = free_port()  # nobody else takes it while it is down
        self.rewrite: Rewrite = lambda data: data
        self._links: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._server: asyncio.Server | None = None
        self._loses = False
        self._is_up = False
        self.instead: bytes | None = None
        self.sent = asyncio.Event()

    def cut(self) -> None:
        """Break every connection: both sides hear RST."""
        for link in self._links:
            for writer in link:
                raw = writer.get_extra_info("socket")
                with suppress(OSError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()

    async def come_up(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._is_up = True

    async def go_down(self) -> None:
        """Refuse connections and break those there are."""
        assert self._server is not None
        self._is_up = False
        self._server.close()
        self.cut()
        await self._idle.wait()

    @contextmanager
    def holding_answers(self) -> Iterator[None]:
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    @contextmanager
    def losing_answers(self) -> Iterator[None]:
        """The next answer, and every one after it, breaks its connection instead of arriving."""
        self._loses = True
        try:
            yield
        finally:
            self._loses = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self.broker_port)
        except OSError:
            writer.transport.abort()
            return
        link = (writer, broker_writer)
        if not self._is_up:  # it went down meanwhile
            for side in link:
                side.transport.abort()
            return
        self._links.add(link)
        self._idle.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._forth(reader, broker_writer, writer))
                tasks.create_task(self._back(broker_reader, writer))
        finally:
            self._links.discard(link)
            if not self._links:
                self._idle.set()
            for side in link:
                side.transport.abort()

    async def _forth(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await reader.read(PIECE):
                if self.instead is not None:
                    await _whole_request(reader, data)
                    back.write(self.instead)
                    await back.drain()
                    continue
                writer.write(data)
                await writer.drain()
                self.sent.set()
        except ConnectionError:
            writer.transport.abort()
        else:
            _say_goodbye(writer)

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(PIECE):
                await self._flows.wait()
                if self._loses:
                    self.cut()
                    return
                writer.write(self.rewrite(data))
                await writer.drain()
        except ConnectionError:
            writer.transport.abort()
        else:
            _say_goodbye(writer)


async def _whole_request(reader: asyncio.StreamReader, data: bytes) -> None:
    """Read to the end of a request of HTTP that begins so."""
    while b"\r\n\r\n" not in data:
        data += await reader.read(PIECE)
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *([0-9]+)", head.lower())
    await reader.readexactly(int(length[1]) - len(body) if length else 0)


def _say_goodbye(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing() and writer.can_write_eof():
        with suppress(OSError):
            writer.write_eof()


@asynccontextmanager
async def network(
    broker_port: int, rewrite: Callable[[int], Rewrite] | None = None
) -> AsyncIterator[Network]:
    """Listen in front of a broker; `rewrite` makes, of our port, what changes its answers."""
    ours = Network(broker_port)
    await ours.come_up()
    if rewrite is not None:
        ours.rewrite = rewrite(ours.port)
    try:
        yield ours
    finally:
        await ours.go_down()


@asynccontextmanager
async def meanwhile(trouble: Awaitable[None]) -> AsyncIterator[None]:
    """Let this happen during the block, and be over at its end, however that ends."""

    async def happen() -> None:
        await trouble

    async with asyncio.TaskGroup() as tasks:
        happening = tasks.create_task(happen())
        try:
            yield
        finally:
            await asyncio.wait({happening})


@asynccontextmanager
async def answers_lost(net: Network) -> AsyncIterator[None]:
    """What is sent arrives, and the connection breaks instead of an answer."""
    with net.losing_answers():
        yield


@asynccontextmanager
async def answers_late(net: Network, seconds: float = 0.2) -> AsyncIterator[None]:
    """What is sent arrives, and its answers take a while."""

    async def hold() -> None:
        with net.holding_answers():
            await asyncio.sleep(seconds)

    async with meanwhile(hold()):
        yield


@asynccontextmanager
async def slow_down(net: Network, answer: bytes) -> AsyncIterator[None]:
    """Requests of HTTP do not arrive: this is answered instead."""
    net.instead = answer
    try:
        yield
    finally:
        net.instead = None


@asynccontextmanager
async def cut_off(net: Network) -> AsyncIterator[None]:
    """Nobody gets through during this call; afterwards everybody does."""
    await net.go_down()
    with suppress(OSError):  # by the time it is refused everybody has heard that connections broke
        await asyncio.open_connection("127.0.0.1", net.port)
    try:
        yield
    finally:
        await net.come_up()


@asynccontextmanager
async def cut_meanwhile(net: Network) -> AsyncIterator[None]:
    """Connections break in the middle of this call: the broker heard something, and perhaps answered."""

    async def strike() -> None:
        await net.sent.wait()
        net.cut()

    net.sent.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(strike())
        yield
