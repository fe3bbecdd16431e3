"""The router's call: POST `{"messageId": …}` to a message's mediationTarget, with its token.

Messages come from queues that others may write to, so a target is not trusted: its address is checked where
the socket is made, as for webhooks (sinks/guard.py). The configured processing endpoint alone is exempt: it
usually is on this machine. Redirects are not followed, and of the answer little is read.
"""

import json
import ssl
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from penstock import __version__
from penstock.delivery.pointers import Pointer
from penstock.domain.addresses import networks
from penstock.domain.answers import receipt_of
from penstock.domain.envelopes import Unwritable
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, TryAgain, Unknown
from penstock.ports.clock import Clock
from penstock.sinks.guard import Guard, GuardedResolver
from penstock.sinks.http import CONNECT_TIMEOUT, failure, guarded_session, target_url
from penstock.sinks.names import Names

MAX_ANSWER: Final = 64 * 1024
LONGEST_WAIT: Final = timedelta(minutes=1)
EVERYWHERE: Final = ("0.0.0.0/0", "::/0")


class Reply(NamedTuple):
    """What a call says of the message, and (`target`) what it says of the target itself."""

    message: Receipt
    target: Receipt


class Mediator:
    """Calls targets; `endpoint` is the processing endpoint that may be anywhere."""

    def __init__(
        self,
        endpoint: str,
        *,
        clock: Clock,
        allow_networks: Sequence[str] = (),
        own_listeners: Collection[tuple[str, int]] = (),
    ) -> None:
        self._endpoint = _url(endpoint)
        self._clock = clock
        self._names = Names()
        context = ssl.create_default_context()
        self._own = self._connections(Guard(allow=networks(EVERYWHERE)), context)
        guard = Guard(allow=networks(allow_networks), own_listeners=own_listeners)
        self._others = self._connections(guard, context)

    async def call(self, pointer: Pointer) -> Reply:
        """Ask the target to process the message; the caller limits the time.

        What leads to the processing endpoint of a node that is gone, or that we may not call by the address
        it goes by, is brought to ours, unless ours wants none of it: any node of the store can process it.
        """
        try:
            url = target_url(pointer.target)
        except Unwritable as error:
            return _same(Rejected(str(error)))
        try:
            return await self._post(url, pointer)
        except aiohttp.ClientConnectorError as error:
            ours, reply = self._endpoint, _same(failure(url, error))
            if ours is None or url == ours or url.raw_path_qs != ours.raw_path_qs:
                return reply
            try:
                other = await self._post(ours, pointer)
            except (aiohttp.ClientError, OSError, TimeoutError):
                return reply
            return reply if isinstance(other.message, Rejected) else other
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return _same(failure(url, error))

    async def _post(self, url: URL, pointer: Pointer) -> Reply:
        session = self._own if url == self._endpoint else self._others
        headers = {"Authorization": f"Bearer {pointer.token}", "User-Agent": f"Penstock/{__version__}"}
        body = {"messageId": pointer.id}
        async with session.post(url, json=body, headers=headers, allow_redirects=False) as answer:
            return await self._reply(answer)

    async def close(self) -> None:
        """Close the kept connections."""
        await self._own.close()
        await self._others.close()
        await self._names.close()

    def _connections(self, guard: Guard, context: ssl.SSLContext) -> aiohttp.ClientSession:
        return guarded_session(guard, GuardedResolver(self._names, guard), context, CONNECT_TIMEOUT)

    async def _reply(self, answer: aiohttp.ClientResponse) -> Reply:
        body = bytearray()
        while len(body) < MAX_ANSWER and (more := await answer.content.read(MAX_ANSWER - len(body))):
            body += more
        if len(body) >= MAX_ANSWER:
            answer.close()
        retry_after = answer.headers.get("Retry-After")
        receipt = receipt_of(answer.status, body=bytes(body), retry_after=retry_after, now=self._clock.now())
        if answer.ok and isinstance(receipt, Throttled):  # "not now" is about this message alone
            return Reply(receipt, Accepted())
        if isinstance(receipt, Rejected) and _acknowledged(body):
            return Reply(Accepted(str(answer.status)), Accepted())
        return _same(receipt)


def _same(receipt: Receipt) -> Reply:
    return Reply(receipt, receipt)


def _acknowledged(body: bytes | bytearray) -> bool:
    """Say whether a refusal asks for the message to be deleted all the same."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("ack") is True


def _url(endpoint: str) -> URL | None:
    try:
        return target_url(endpoint) if endpoint else None
    except Unwritable:
        return None


def wait_of(receipt: Receipt, receives: int, *, spread: float) -> timedelta | None:
    """Return after how long a message is to come again; None = it is done with.

    Each time longer, up to a minute: what is wrong is rarely wrong with this one message only.
    """
    match receipt:
        case Throttled(after=after):
            return after
        case TryAgain() | Rejected() | Unknown():
            return min(timedelta(seconds=2.0 ** min(receives - 1, 6)), LONGEST_WAIT) * (1 + spread / 10)
        case _:
            return None
