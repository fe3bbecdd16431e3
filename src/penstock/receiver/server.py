"""The HTTP server that takes requests, one after the other: compare, log, tell, answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Final

from aiohttp import web

from penstock.domain.webhooks import problem
from penstock.ports.clock import Clock
from penstock.receiver.ledger import Ledger
from penstock.receiver.log import RequestLog
from penstock.receiver.requests import Answer, Request

MAX_BODY: Final = 64 * 1024 * 1024
GRACE_S: Final = 1.0
NOT_GENUINE: Final = Answer(status=401, body=b"the signature is wrong\n")
TOO_LARGE: Final = Answer(status=413, body=b"too large\n")

Decide = Callable[[Request], Answer]
Tell = Callable[[Request], None]


def accept(_: Request) -> Answer:
    """Answer everything with 200."""
    return Answer()


def failing(share: float, *, rng: Random, delay: timedelta = timedelta(0)) -> Decide:
    """Return what answers that share of requests with 500, the others with 200, all after the delay."""

    def decide(_: Request) -> Answer:
        failed = rng.random() < share
        return Answer(status=500 if failed else 200, body=b"told to fail\n" if failed else b"", delay=delay)

    return decide


def ignore(_: Request) -> None:
    """Take no notice."""


@dataclass(slots=True, kw_only=True)
class Receiver:
    """Handles requests. With `secrets`, what is not signed with one of them is answered with 401."""

    clock: Clock
    decide: Decide = accept
    tell: Tell = ignore
    secrets: Sequence[str] = ()
    log: RequestLog | None = None
    ledger: Ledger = field(default_factory=Ledger)

    async def handle(self, web_request: web.BaseRequest) -> web.StreamResponse:
        """Take one request."""
        request, answer = await self._read(web_request)
        request = self.ledger.compare(request)
        if answer is None:
            answer = NOT_GENUINE if request.bad_signature else self.decide(request)
        request = request.with_(answer=answer)
        if self.log is not None:
            await self.log.append(request.facts())
        self.tell(request)
        if answer.delay:
            await asyncio.sleep(answer.delay.total_seconds())
        if answer.gate is not None:
            await answer.gate.wait()
        self.ledger.answered(request, answer)
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))

    async def _read(self, web_request: web.BaseRequest) -> tuple[Request, Answer | None]:
        """Return the request, and its answer if nobody needs to decide."""
        body = bytearray()
        async for part in web_request.content.iter_any():
            body += part
            if len(body) > MAX_BODY:
                body.clear()
                break
        too_large = not body and not web_request.content.at_eof()
        headers = {name.lower(): value for name, value in web_request.headers.items()}
        now = self.clock.now()
        request = Request.read(
            at=now, method=web_request.method, path=web_request.path_qs, headers=headers, body=bytes(body)
        )
        if self.secrets and not too_large:
            wrong = problem(self.secrets, headers, request.body, now=now)
            request = request.with_(signature=wrong or "ok")
        return request, TOO_LARGE if too_large else None


@asynccontextmanager
async def serving(receiver: Receiver, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Listen, and give the URL; port 0 picks a free one."""
    runner = web.ServerRunner(
        web.Server(receiver.handle, access_log=None, auto_decompress=False),
        shutdown_timeout=GRACE_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        name, bound = runner.addresses[0][:2]
        yield f"http://{f'[{name}]' if ':' in name else name}:{bound}"
    finally:
        await runner.cleanup()
