"""Sink `router`: posts pointers to a router somewhere else, for those who run no broker between the two.

The router keeps what it took in memory. If it dies, its jobs are noticed by their ack timeout and sent again.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import aiohttp
from yarl import URL

from penstock import __version__
from penstock.brokers.options import duration, known_only, required, text, tls_context
from penstock.brokers.words import said
from penstock.domain.answers import receipt_of
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope
from penstock.domain.headers import check_value
from penstock.domain.outcomes import Accepted, Receipt, Rejected, Unknown, Unsent
from penstock.domain.texts import shown
from penstock.errors import InvalidSetting
from penstock.ports.clock import Clock
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.waves import in_waves

PATH: Final = "/api/router/messages"
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
KEEP_ALIVE_S: Final = 4.0  # shorter than the time after which servers close an idle connection
MAX_ANSWER: Final = 1 << 20
CONNECTIONS: Final = 50
_SAID: Final = 300


class RouterSink:
    """Posts batches. See the module."""

    max_batch = 500
    keeps_order = False
    format = "pointer"
    complete_on = "reported"

    def __init__(self, session: aiohttp.ClientSession, url: URL, *, writer: Writer, clock: Clock) -> None:
        self._session = session
        self._url = url
        self._writer = writer
        self._clock = clock

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Post the batch, one request per wave."""
        return await in_waves(batch, self._writer.body, self._post)

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """A router cannot be asked."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Close the kept connections."""
        await self._session.close()

    async def check(self) -> None:
        """Raise SinkUnavailable unless there is a router that listens to us: post it no message at all."""
        try:
            async with self._session.post(
                self._url, data=b'{"messages":[]}', allow_redirects=False
            ) as answer:
                why = self._not_for_us(answer.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = self._unreachable(error)
        if why is not None:
            raise SinkUnavailable(why)

    async def _post(self, bodies: Sequence[bytes]) -> Sequence[Receipt]:
        data = b'{"messages":[' + b",".join(bodies) + b"]}"
        try:
            async with self._session.post(self._url, data=data, allow_redirects=False) as answer:
                body = await _read(answer)
        except aiohttp.ClientConnectorError as error:
            return [Unsent(self._unreachable(error))] * len(bodies)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return [Unknown(self._unreachable(error))] * len(bodies)
        why = self._not_for_us(answer.status)
        if why is not None:
            return [Unsent(why)] * len(bodies)
        whole = receipt_of(
            answer.status, body=body, retry_after=answer.headers.get("Retry-After"), now=self._clock.now()
        )
        if not isinstance(whole, Accepted):
            lost = answer.status >= 500 and answer.headers.get("Retry-After") is None
            return [Unknown(f"HTTP {answer.status}") if lost else whole] * len(bodies)
        return _results(body, len(bodies)) or [whole] * len(bodies)

    def _not_for_us(self, status: int) -> str | None:
        """Return what to do about an answer that nobody's message is to blame for; None = it is none."""
        place = self._url.host_port_subcomponent
        if status in (401, 403):
            return f"the router at {place} does not let us in (HTTP {status}): check authorization"
        if status in (404, 405) or 300 <= status < 400:
            return f"there is no router at {self._url} (HTTP {status}): check url"
        return None

    def _unreachable(self, error: Exception) -> str:
        place = self._url.host_port_subcomponent
        return f"the router at {place} does not answer: {said(error)}: check url"


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    while len(body) < MAX_ANSWER and (more := await answer.content.read(MAX_ANSWER - len(body))):
        body += more
    if len(body) >= MAX_ANSWER:
        answer.close()
    return bytes(body)


def _results(body: bytes, number: int) -> list[Receipt] | None:
    """Return what the router says of each message; None = it says nothing of them one by one."""
    try:
        results = json.loads(body)["results"]
        found = {int(one["index"]): one for one in results}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return [_result(found.get(index)) for index in range(number)]


def _result(one: Mapping[str, object] | None) -> Receipt:
    if one is None:
        return Unknown("the router said nothing of this message")
    return Rejected(shown(str(one["error"]), _SAID)) if "error" in one else Accepted("202")


async def open_router(options: Options, supplies: Supplies) -> RouterSink:
    """Open a pool of connections to the router and see that it answers."""
    known_only(options, "url", "authorization", "connect_timeout", "ca_file")
    url = _url(required(options, "url", "http://127.0.0.1:7070"))
    connect = duration(options, "connect_timeout", CONNECT_TIMEOUT)
    ca_file = text(options, "ca_file")
    try:
        authorization = check_value(text(options, "authorization") or "")
    except ValueError as error:
        raise InvalidSetting("authorization", str(error)) from None
    headers = {"Content-Type": "application/json", "User-Agent": f"Penstock/{__version__}"}
    if authorization:
        headers["Authorization"] = authorization
    context = await supplies.executor.run(lambda: tls_context(ca_file))
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEP_ALIVE_S, ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect.total_seconds()),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        trust_env=False,
    )
    writer = supplies.writer("router", format=RouterSink.format)
    sink = RouterSink(session, url, writer=writer, clock=supplies.clock)
    try:
        await sink.check()
    except BaseException:
        await sink.close()
        raise
    return sink


def _url(given: str) -> URL:
    """Return where to post: the router's own path unless the URL has one."""
    try:
        url = URL(given)
    except ValueError:
        url = URL()
    if url.scheme not in {"http", "https"} or not url.host or url.user is not None:
        raise InvalidSetting("url", "is not the address of a router: write http://host:7070")
    return url.with_path(PATH) if url.path in {"", "/"} else url
