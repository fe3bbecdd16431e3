"""Sink `activemq`: sends each message over STOMP, persistent, and waits for the broker's receipt.

The group is the JMSXGroupID, so that ActiveMQ gives a group to one consumer at a time. ActiveMQ does not
remember what it took: a send whose receipt was lost is sent again. The driver blocks, so it has a thread of
its own, and another reads what the broker says.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar

import stomp

from penstock.brokers import activemq
from penstock.brokers.activemq import CONNECT_TIMEOUT, FAILED, Place, destination, hang_up, said
from penstock.brokers.options import RECEIVING, known_only, size, text
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.headers import OWN_PREFIX, message_headers
from penstock.domain.outcomes import Accepted, Receipt, Throttled, TryAgain, Unknown, Unsent
from penstock.domain.texts import shown
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.waves import PAUSE, TooLarge, in_waves

MAX_MESSAGE: Final = 16 * 1024 * 1024
MAX_HEADER: Final = 8 * 1024  # the broker hangs up over a line of more than ten
HEARTBEATS_MS: Final = (10_000, 10_000)
_FULL: Final = ("ResourceAllocationException", "Usage Manager", "memory limit", "store is Full")
_FORBIDDEN: Final = ("SecurityException", "not authorized", "is not authorized")
# What STOMP and ActiveMQ themselves understand is not for a job's headers to say.
_RESERVED: Final = frozenset(
    {
        *("ack", "content-length", "content-type", "correlation-id", "destination", "expires", "id"),
        *("message-id", "persistent", "priority", "receipt", "redelivered", "reply-to", "selector"),
        *("subscription", "timestamp", "transaction", "transformation", "type"),
    }
)
_RESERVED_BEGINNINGS: Final = ("amq", "jms", "_amq")
T = TypeVar("T")


class Frame(NamedTuple):
    """One SEND."""

    destination: str
    headers: Mapping[str, str]
    body: bytes


class Session(stomp.ConnectionListener):  # type: ignore[misc] # it carries no types
    """One connection, and who waits for which receipt. The reading thread calls `on_…`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Receipt]] = {}
        self.connected: asyncio.Future[None] = loop.create_future()
        self.lost = False
        self.error = "the connection broke"

    def expect(self, destination: str) -> tuple[str, "asyncio.Future[Receipt]"]:
        """Return the name of a receipt for a message to there, and what will be known of it."""
        name = f"{next(self._numbers)} {destination}"
        self._waiting[name] = self._loop.create_future()
        return name, self._waiting[name]

    def forget(self, names: Sequence[str]) -> None:
        """Expect receipts no more."""
        for name in names:
            self._waiting.pop(name, None)

    def on_connected(self, _: Any) -> None:  # noqa: ANN401 - stomp's own frame
        """The broker let us in."""
        self._tell(self._let_in)

    def on_receipt(self, frame: Any) -> None:  # noqa: ANN401
        """The broker has a message."""
        name = frame.headers["receipt-id"]
        self._tell(lambda: self._answer(name, Accepted(name.partition(" ")[2])))

    def on_error(self, frame: Any) -> None:  # noqa: ANN401
        """The broker refuses something, perhaps a message, perhaps us; then it may hang up."""
        words = said(f"{frame.headers.get('message', '')} {frame.body or ''}")
        name = frame.headers.get("receipt-id")
        self._tell(lambda: self._refused(name, words))

    def on_disconnected(self) -> None:
        """The connection is gone."""
        self._tell(self._lose)

    def _tell(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(call)

    def _let_in(self) -> None:
        if not self.connected.done():
            self.connected.set_result(None)

    def _answer(self, name: str, answer: Receipt) -> None:
        future = self._waiting.pop(name, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def _refused(self, name: str | None, words: str) -> None:
        self.error = words
        if name is not None:
            self._answer(name, _refusal(words))

    def _lose(self) -> None:
        self.lost = True
        if not self.connected.done():
            self.connected.set_exception(ConnectionError(self.error))
        for name in list(self._waiting):
            self._answer(name, Unknown(self.error))


class ActiveMqSink:
    """Sends to queues: the lane's `queue`, else the sink's, else one with the lane's name."""

    max_batch = 100
    keeps_order = True
    format = "pointer"
    complete_on = "reported"

    def __init__(
        self, place: Place, *, writer: Writer, queue: str | None = None, max_message: int = MAX_MESSAGE
    ) -> None:
        self._place = place
        self._writer = writer
        self._queue = queue
        self._max_message = max_message
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-activemq")
        self._connection: Any = None
        self._session: Session | None = None
        self._opening = asyncio.Lock()

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Send the batch and wait for every receipt."""
        return await in_waves(batch, self._frame, self._send)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """A queue shows a message only to those who take it."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Say goodbye."""
        if self._session is not None and not self._session.lost:
            with suppress(*FAILED, RuntimeError):
                await self._run(self._connection.disconnect)
        self._drop()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def open(self) -> Session:
        """Return a connection that the broker has accepted, or raise SinkUnavailable."""
        async with self._opening:
            if self._session is None or self._session.lost:
                self._drop()
                await self._connect()
            assert self._session is not None  # noqa: S101 - for the type checker
            return self._session

    async def _connect(self) -> None:
        place, session = self._place, Session(asyncio.get_running_loop())
        self._connection = connection = place.connection(session, heartbeats=HEARTBEATS_MS)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                await self._run(lambda: connection.connect(place.username, place.password, wait=False))
                await session.connected
        except FAILED as error:
            self._drop()
            words = session.error if session.lost else said(error)
            raise SinkUnavailable(place.unreachable(words)) from error
        except BaseException:
            self._drop()
            raise
        self._session = session

    def _drop(self) -> None:
        """Break the connection, which ends whoever waits on it."""
        connection, self._connection, self._session = self._connection, None, None
        hang_up(connection)

    def _frame(self, envelope: Envelope) -> Frame:
        body = self._writer.body(envelope)
        if len(body) > self._max_message:
            raise TooLarge(len(body), self._max_message)
        queue = envelope.queue or self._queue or envelope.lane
        headers = {
            name: value
            for name, value in message_headers(envelope, prefix=self._writer.prefix).items()
            if not _is_reserved(name, self._writer.prefix)
        }
        headers |= {"persistent": "true", "content-type": "application/json", "amq-msg-type": "text"}
        if envelope.ordered_group is not None:
            headers["JMSXGroupID"] = envelope.ordered_group
        for name, value in headers.items():
            if "\0" in value or len(name) + len(value.encode()) > MAX_HEADER:
                raise Unwritable(f"{shown(name, 40)}: holds NUL or more than the 8KiB that ActiveMQ takes")
        return Frame(destination(queue), headers, body)

    async def _send(self, frames: Sequence[Frame]) -> Sequence[Receipt]:
        session = await self.open()
        connection = self._connection
        expected = [session.expect(frame.destination) for frame in frames]
        written = 0

        def write() -> None:
            nonlocal written
            for frame, (name, _) in zip(frames, expected, strict=True):
                connection.send(frame.destination, frame.body, headers={**frame.headers, "receipt": name})
                written += 1

        try:
            try:
                await self._run(write)
            except FAILED as error:
                for _, future in expected[written:]:  # a frame that is not whole is none
                    if not future.done():
                        future.set_result(Unsent(f"ActiveMQ cannot be reached: {said(error)}"))
                self._lose(session)
            except asyncio.CancelledError:
                self._lose(session)  # the thread may hang in the middle of a frame
                raise
            await asyncio.wait([future for _, future in expected])
            return [future.result() for _, future in expected]
        finally:
            session.forget([name for name, _ in expected])

    def _lose(self, session: Session) -> None:
        if self._session is session:
            self._drop()
        session.on_disconnected()

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _is_reserved(name: str, prefix: str) -> bool:
    if name.startswith((OWN_PREFIX, prefix)):
        return False
    return name.lower() in _RESERVED or name.lower().startswith(_RESERVED_BEGINNINGS)


def _refusal(words: str) -> Receipt:
    """Return what it means that the broker refused one message."""
    if any(word in words for word in _FULL):
        return Throttled(PAUSE, words)
    if any(word in words for word in _FORBIDDEN):
        return Unsent(f"ActiveMQ does not let us write there: {words}")
    return TryAgain(words)


async def open_activemq(options: Options, supplies: Supplies) -> ActiveMqSink:
    """Connect over STOMP."""
    known_only(options, *activemq.OPTIONS, "max_message", *RECEIVING)
    sink = ActiveMqSink(
        activemq.place_of(options),
        writer=supplies.writer("activemq", format=ActiveMqSink.format),
        queue=text(options, "queue"),
        max_message=size(options, "max_message", MAX_MESSAGE),
    )
    try:
        await sink.open()
    except BaseException:
        await sink.close()
        raise
    return sink
