"""Source `activemq`: subscribes to queues over STOMP, and acknowledges message by message.

ActiveMQ keeps what it gave out until that is acknowledged or the connection ends, and gives a group (its
JMSXGroupID) to one consumer at a time, so groups keep their order over all routers. It cannot put off a
message, so messages wait here (shelf.py), unacknowledged. `visibility` is the heartbeat of the connection: a
router that was silent for that long has lost what it had.

What is buried is sent to the queue `NAME/dead`, in the transaction that acknowledges it. The driver blocks,
so it has a thread of its own, and another reads what the broker says.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any, Final, NamedTuple, cast

import stomp

from penstock.brokers import activemq
from penstock.brokers.activemq import CONNECT_TIMEOUT, FAILED, Place, destination, hang_up, said
from penstock.brokers.options import RECEIVING, known_only
from penstock.ports.source import Incoming, Options, SourceUnavailable, Supplies
from penstock.sources.reading import Reading, reading
from penstock.sources.shelf import Kept, group_of, kept_of

_GROUP: Final = "JMSXGroupID"


class Frame(NamedTuple):
    """What is said to the broker."""

    command: str
    headers: dict[str, str]
    body: bytes = b""


class Refused(Exception):
    """The broker did not do what a frame asked for."""


class Session(stomp.ConnectionListener):  # type: ignore[misc] # it carries no types
    """One connection, and who waits for which receipt. The reading thread calls `on_…`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[["Session", Any], None],
        lose: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._take = take
        self._tell_lost = lose
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self.connected: asyncio.Future[None] = loop.create_future()
        self.subscribed: dict[str, str] = {}
        self.lost = False
        self.error = "the connection broke"

    def expect(self, receipt: str) -> "asyncio.Future[None]":
        """Return what will be known of a receipt."""
        future = self._waiting[receipt] = self._loop.create_future()
        return future

    def forget(self, receipt: str) -> None:
        """Expect a receipt no more."""
        self._waiting.pop(receipt, None)

    def on_connected(self, _: Any) -> None:  # noqa: ANN401 - stomp's own frame
        """The broker let us in."""
        self._tell(lambda: _settle(self.connected, None))

    def on_receipt(self, frame: Any) -> None:  # noqa: ANN401
        """The broker has done what we asked for."""
        name = frame.headers["receipt-id"]
        self._tell(lambda: _settle(self._waiting.get(name), None))

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        """A message for us."""
        self._tell(lambda: None if self.lost else self._take(self, frame))

    def on_error(self, frame: Any) -> None:  # noqa: ANN401
        """The broker refuses something; then it may hang up."""
        body = frame.body.decode(errors="replace") if isinstance(frame.body, bytes) else frame.body
        words = said(f"{frame.headers.get('message', '')} {body or ''}")
        name = frame.headers.get("receipt-id", "")
        self._tell(lambda: self._refused(name, words))

    def on_disconnected(self) -> None:
        """The connection is gone."""
        self._tell(self.lose)

    def on_heartbeat_timeout(self) -> None:
        """The broker has been silent for too long."""
        self._tell(self.lose)

    def lose(self) -> None:
        """Everything that we had is somebody else's."""
        if not self.lost:
            self.lost = True
            broken = ConnectionError(self.error)
            for future in (self.connected, *self._waiting.values()):
                _settle(future, broken)
            self._tell_lost()

    def _refused(self, name: str, words: str) -> None:
        self.error = words
        _settle(self._waiting.get(name), Refused(words))

    def _tell(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(call)


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """What ActiveMQ knows a message by, as long as the session lasts."""

    session: Session
    ack: str
    body: bytes
    group: str | None


class ActiveMqSource:
    """Receives over one connection, opened anew when it broke. See the module."""

    def __init__(self, place: Place, reading: Reading) -> None:
        self.name = reading.name
        self.visibility = reading.visibility
        self._place = place
        self._reading = reading
        self._turns = reading.turns
        self._clock = reading.clock
        self._shelf = reading.shelf()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-activemq")
        self._numbers = count(1)
        self._connection: Any = None
        self._session: Session | None = None
        self._heard_at = float("-inf")
        self._opening = asyncio.Lock()

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Return what ActiveMQ has sent; wait a moment if that is nothing."""
        session = await self._open()
        await self._shelf.rest()
        if self._clock.monotonic() > self._heard_at + self.visibility.total_seconds() / 3:
            await self._confirm(session)
        found = self._shelf.take(limit)
        if not found:
            self._turns.complain()
        return found

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """Acknowledge them; if the connection breaks before ActiveMQ hears it, they come again."""
        several = self._shelf.done(messages)
        if several and self._session is not None:
            frames = [Frame("ACK", {"id": _delivery(kept).ack}) for kept in several]
            with suppress(SourceUnavailable):
                await self._say(self._session, frames)

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """Let them wait here."""
        self._shelf.again(messages, delay)

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """Make sure that ActiveMQ hears us."""
        if self._session is not None:
            await self._confirm(self._session)
        return self._shelf.extend(messages)

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """Send each to the dead queue and acknowledge it, both or neither."""
        for message in messages:
            kept = kept_of(message)
            if not kept.gone:
                await self._move(kept, destination(self._reading.dead(message.queue)))
                self._shelf.done([message])

    async def close(self) -> None:
        """Say goodbye; ActiveMQ puts back what is not acknowledged."""
        if self._session is not None and not self._session.lost:
            with suppress(*FAILED, RuntimeError):
                async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                    await asyncio.get_running_loop().run_in_executor(
                        self._thread, self._connection.disconnect
                    )
        self._drop()
        self._thread.shutdown(wait=False, cancel_futures=True)

    # -- connecting
    async def _open(self) -> Session:
        """Return a session that has subscribed to every queue; raise SourceUnavailable with what to do."""
        async with self._opening:
            session = self._session
            if session is None or session.lost:
                self._drop()
                session = self._session = await self._connect()
            current = self._turns.current()
            for queue in [one for one in session.subscribed if one not in current]:
                await self._say(session, [Frame("UNSUBSCRIBE", {"id": session.subscribed.pop(queue)})])
                self._shelf.lose(lambda kept, gone=queue: kept.queue == gone)  # type: ignore[misc]
            for queue in self._turns.next():
                if queue not in session.subscribed:
                    await self._subscribe(session, queue)
            return session

    async def _connect(self) -> Session:
        place, beat = self._place, round(self.visibility.total_seconds() * 1000)
        loop, started = asyncio.get_running_loop(), self._clock.monotonic()
        session = Session(loop, self._arrived, lambda: self._shelf.lose(lambda k: _delivery(k).session.lost))
        self._connection = connection = place.connection(session, heartbeats=(beat, beat), auto_decode=False)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT.total_seconds()):
                await loop.run_in_executor(
                    self._thread, lambda: connection.connect(place.username, place.password, wait=False)
                )
                await session.connected
        except FAILED as error:
            self._drop()
            words = session.error if session.lost else said(error)
            raise SourceUnavailable(place.unreachable(words)) from error
        except BaseException:
            self._drop()
            raise
        self._heard_at = started
        return session

    async def _subscribe(self, session: Session, queue: str) -> None:
        name = str(next(self._numbers))
        session.subscribed[queue] = name
        headers = {
            "destination": destination(queue),
            "id": name,
            "ack": "client-individual",
            "activemq.prefetchSize": str(self._reading.prefetch),
        }
        try:
            await self._say(session, [Frame("SUBSCRIBE", headers)])
        except Refused as error:
            session.subscribed.pop(queue, None)
            self._turns.skip(queue, f'the queue "{queue}" cannot be read: {error}')

    def _arrived(self, session: Session, frame: Any) -> None:  # noqa: ANN401
        names = {name: queue for queue, name in session.subscribed.items()}
        queue = names.get(frame.headers.get("subscription"))
        if queue is None:
            return  # we have just unsubscribed: it was put back
        body = frame.body if isinstance(frame.body, bytes) else frame.body.encode()
        text_ = body.decode(errors="surrogateescape")
        delivery = Delivery(session, frame.headers["ack"], body, frame.headers.get(_GROUP))
        again = int(frame.headers.get("redelivered") == "true")
        self._shelf.put(queue, text_, group_of(text_), tag=delivery, receives=again)

    def _drop(self) -> None:
        """Break the connection, which ends whoever waits on it."""
        connection, session = self._connection, self._session
        self._connection = self._session = None
        hang_up(connection)
        if session is not None:
            session.lose()

    # -- saying
    async def _confirm(self, session: Session) -> None:
        """Have ActiveMQ answer; if it does not, whatever we have is no longer ours."""
        started, name = self._clock.monotonic(), f"beat-{next(self._numbers)}"
        frames = [Frame(command, {"transaction": name}) for command in ("BEGIN", "ABORT")]
        await self._say(session, frames, within=self.visibility.total_seconds() / 3)
        self._heard_at = started

    async def _move(self, kept: Kept, dead: str) -> None:
        delivery, name = _delivery(kept), f"dead-{next(self._numbers)}"
        headers = {"destination": dead, "transaction": name, "persistent": "true", "amq-msg-type": "text"}
        headers |= {"content-type": "application/json", "content-length": str(len(delivery.body))}
        if delivery.group is not None:
            headers[_GROUP] = delivery.group
        frames = [
            Frame("BEGIN", {"transaction": name}),
            Frame("SEND", headers, delivery.body),
            Frame("ACK", {"id": delivery.ack, "transaction": name}),
            Frame("COMMIT", {"transaction": name}),
        ]
        try:
            await self._say(delivery.session, frames)
        except Refused as error:
            why = f'a message cannot be put aside in "{dead}": {error}'
            raise SourceUnavailable(f"{why}: allow us to write there, or name a dead_queue") from error

    async def _say(
        self, session: Session, frames: Sequence[Frame], *, within: float = CONNECT_TIMEOUT.total_seconds()
    ) -> None:
        """Send frames and wait until the last is dealt with; raise Refused or SourceUnavailable."""
        connection, receipt = self._connection, f"r{next(self._numbers)}"
        answered = session.expect(receipt)

        def write() -> None:
            for frame in frames[:-1]:
                connection.send_frame(frame.command, dict(frame.headers), frame.body)
            connection.send_frame(
                frames[-1].command, {**frames[-1].headers, "receipt": receipt}, frames[-1].body
            )

        try:
            async with asyncio.timeout(within):
                if session is not self._session or session.lost:
                    raise ConnectionError(session.error)
                await asyncio.get_running_loop().run_in_executor(self._thread, write)
                await answered
        except FAILED as error:
            if self._session is session:
                self._drop()
            raise SourceUnavailable(self._place.unreachable(said(error))) from error
        finally:
            session.forget(receipt)


def _settle(future: "asyncio.Future[None] | None", error: Exception | None) -> None:
    if future is None or future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # perhaps nobody waits for it


def _delivery(kept: Kept) -> Delivery:
    return cast("Delivery", kept.tag)


async def open_activemq(options: Options, supplies: Supplies) -> ActiveMqSource:
    """Read the options; the first look connects."""
    known_only(options, *activemq.OPTIONS, "max_message", *RECEIVING)
    return ActiveMqSource(activemq.place_of(options), reading(options, supplies))
