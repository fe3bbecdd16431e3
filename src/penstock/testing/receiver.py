"""A receiver for tests: `async with receiver() as r:` post to `r.url`, wait for `await r.received(n)`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from penstock.ports.clock import Clock, SystemClock
from penstock.receiver.ledger import Ledger
from penstock.receiver.log import RequestLog
from penstock.receiver.requests import Answer, Request
from penstock.receiver.server import Decide, Receiver, accept, failing, serving

__all__ = ["Answer", "Received", "Request", "accept", "failing", "receiver"]


@dataclass(slots=True)
class Received:
    """What arrived so far, and where to send more. `requests` is in the order of arrival."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def received(self, number: int) -> list[Request]:
        """Return what arrived as soon as it is that many requests; the caller limits the time."""
        while len(self.requests) < number:
            self._arrived.clear()
            await self._arrived.wait()
        return list(self.requests)

    def take(self, request: Request) -> None:
        """Keep a request."""
        self.requests.append(request)
        self._arrived.set()


@asynccontextmanager
async def receiver(
    *,
    answer: Decide = accept,
    secrets: Sequence[str] = (),
    log: RequestLog | None = None,
    clock: Clock | None = None,
    host: str = "127.0.0.1",
) -> AsyncIterator[Received]:
    """Receive on a free port of this machine, answering each request with what `answer` says."""
    received = Received()
    ours = Receiver(
        clock=clock or SystemClock(),
        decide=answer,
        tell=received.take,
        secrets=secrets,
        log=log,
        ledger=received.ledger,
    )
    async with serving(ours, host=host) as url:
        received.url = url
        yield received
