"""Sink `http`: posts each message to its target; a 2xx answer means done.

Nothing about a target is trusted: its address is checked where the socket is made, redirects are not
followed, cookies not kept, proxies of the environment not used, and of the answer at most 64 KiB are read and
never unpacked. The caller limits the time by cancelling; only connecting has a limit of its own.
"""

import io
import math
import ssl
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict
from yarl import URL

from penstock import __version__
from penstock.brokers.options import duration, known_only, number, text, tls_context
from penstock.brokers.words import said
from penstock.domain.addresses import METADATA_NAMES, networks
from penstock.domain.answers import receipt_of
from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.headers import EVENT_PREFIX, check_prefix, check_value, message_headers
from penstock.domain.outcomes import Receipt, Rejected, TryAgain, Unknown, Unsent
from penstock.domain.texts import shown
from penstock.domain.webhooks import BadSecret, signed
from penstock.errors import InvalidSetting
from penstock.ports.clock import Clock
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies
from penstock.sinks.guard import Guard, GuardedResolver, RefusedAddress
from penstock.sinks.hosts import HostBusy, Hosts
from penstock.sinks.keys import Keys, WebhookKeys, no_keys
from penstock.sinks.names import Names

MAX_ANSWER: Final = 64 * 1024
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
MAX_PER_HOST: Final = 100
# Shorter than the five seconds after which many servers close an idle connection: a message sent into a
# closing one would cost an attempt.
KEEP_ALIVE_S: Final = 4.0
DNS_FRESH_FOR_S: Final = 10
_LARGE: Final = 1 << 20
_URL_SAFE: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%"
)


class HttpSink:
    """Posts messages over a pool of kept connections. See the module."""

    max_batch = 1
    keeps_order = False
    format = "payload"
    complete_on = "sent"

    def __init__(
        self,
        session: aiohttp.ClientSession,
        names: AbstractResolver,
        *,
        writer: Writer,
        clock: Clock,
        keys: Keys = no_keys,
        target: str | None = None,
        authorization: str | None = None,
        max_per_host: int = MAX_PER_HOST,
        connect: timedelta = CONNECT_TIMEOUT,
    ) -> None:
        self._session = session
        self._names = names
        self._writer = writer
        self._clock = clock
        self._keys = keys
        self._target = target
        self._authorization = authorization
        self._hosts = Hosts(max_per_host)
        self._connect = connect

    def divide(self, nodes: int) -> None:
        """Have only this node's part of the places of a host: all of them may fill the slots of a lane."""
        self._hosts.divide(nodes)

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Post each message, one after the other."""
        keys = await self._keys()
        return [await self._post(envelope, keys) for envelope in batch]

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """A target cannot be asked."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """Close the kept connections."""
        await self._session.close()
        await self._names.close()

    async def _post(self, envelope: Envelope, keys: Sequence[str]) -> Receipt:
        try:
            url = target_url(envelope.target or self._target)
            body = self._writer.body(envelope)
            headers = self._headers(envelope, body, keys)
        except Unwritable as error:
            return Rejected(str(error))
        data = body if len(body) < _LARGE else io.BytesIO(body)
        try:
            async with (
                self._hosts.place(url.host_port_subcomponent or "", envelope.timeout),
                self._session.post(
                    url, data=data, headers=headers, allow_redirects=False, timeout=self._timeout(envelope)
                ) as answer,
            ):
                return await self._receipt(answer)
        except HostBusy as error:
            return Unsent(str(error), error.rest)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return failure(url, error)

    def _timeout(self, envelope: Envelope) -> aiohttp.ClientTimeout:
        """Give up connecting before the caller gives up the call: then it is known that nothing was sent."""
        connect = self._connect if envelope.timeout is None else min(self._connect, envelope.timeout * 0.9)
        return connect_within(connect)

    def _headers(self, envelope: Envelope, body: bytes, keys: Sequence[str]) -> CIMultiDict[str]:
        """Return all headers; those further down win, whatever their spelling."""
        headers = CIMultiDict({"Content-Type": "application/json", "User-Agent": f"Penstock/{__version__}"})
        headers.update(message_headers(envelope, prefix=self._writer.prefix))
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        headers["Accept-Encoding"] = "identity"
        try:
            headers.update(signed(keys, id=envelope.id, at=self._clock.now(), body=body))
        except BadSecret as error:
            raise SinkUnavailable(f"messages cannot be signed: {error}; rotate the key") from error
        return headers

    async def _receipt(self, answer: aiohttp.ClientResponse) -> Receipt:
        body = bytearray()
        broken = None
        try:
            while len(body) < MAX_ANSWER and (more := await answer.content.read(MAX_ANSWER - len(body))):
                body += more
        except (aiohttp.ClientError, OSError) as error:
            broken = error
        if len(body) >= MAX_ANSWER:
            answer.close()
        if broken is not None and answer.ok:
            # It may have been a refusal; only whole answers count as a yes.
            return Unknown(f"HTTP {answer.status}, but the answer broke off: {said(broken)}")
        packed = answer.headers.get("Content-Encoding", "identity").lower()
        words = bytes(body) if packed == "identity" else f"(packed with {packed}, not read)".encode()
        retry_after = answer.headers.get("Retry-After")
        return receipt_of(answer.status, body=words, retry_after=retry_after, now=self._clock.now())


def target_url(target: str | None) -> URL:
    """Return the URL to post to, as it is written where that is possible, or raise Unwritable."""
    if not target:
        raise Unwritable("target: there is none: give the job or its lane a target")
    try:
        url = URL(target, encoded=_URL_SAFE.issuperset(target))
        port = url.port
    except ValueError:
        raise Unwritable("target: is not a URL: write http://host/path") from None
    if url.scheme not in {"http", "https"} or not url.host or port is None:
        raise Unwritable("target: is not a web address: write http://host/path or https://host/path")
    if url.user is not None or url.password is not None:
        raise Unwritable("target: holds a user name: use an Authorization header of the job or the sink")
    if url.host.rstrip(".").lower() in METADATA_NAMES:
        raise Unwritable(f"target: {url.host} is a cloud's metadata service, which no job may call")
    return url


def failure(url: URL, error: Exception) -> Receipt:
    """Return what a call that got no answer means."""
    place = shown(str(url.host_port_subcomponent), 300)
    match error:
        case aiohttp.InvalidURL():
            return Rejected(f"target: {place} is not a host: write a name or an address")
        case aiohttp.ClientConnectorError(os_error=RefusedAddress() as refused):
            return Rejected(f"target: refused address of {place}: {refused}")
        case aiohttp.ClientConnectorDNSError():
            return TryAgain(f"{place} cannot be found: {said(error.os_error)}")
        case aiohttp.ClientConnectorError():
            return TryAgain(f"no connection to {place}: {said(error.os_error)}")
        case TimeoutError():
            return TryAgain(f"no connection to {place} in time")
        case _:  # it may have arrived
            return Unknown(f"no answer from {place}: {said(error)}")


async def open_http(
    options: Options, supplies: Supplies, *, resolver: AbstractResolver | None = None
) -> HttpSink:
    """Open a pool of connections to any targets that may be called."""
    known_only(options, "url", "authorization", "header_prefix", "connect_timeout", "ca_file", "max_per_host")
    target, ca_file = text(options, "url"), text(options, "ca_file")
    connect = duration(options, "connect_timeout", CONNECT_TIMEOUT)
    max_per_host = number(options, "max_per_host") or MAX_PER_HOST
    try:
        prefix = check_prefix(text(options, "header_prefix") or EVENT_PREFIX)
        authorization = check_value(text(options, "authorization") or "") or None
    except ValueError as error:
        raise InvalidSetting("header_prefix or authorization", str(error)) from None
    if target is not None:
        _check_url(target)
    guard = Guard(allow=networks(supplies.allow_networks), own_listeners=supplies.own_listeners)
    keys: Keys = no_keys
    if supplies.secrets is not None:
        keys = WebhookKeys(supplies.secrets, executor=supplies.executor, clock=supplies.clock)
    context = await supplies.executor.run(lambda: tls_context(ca_file))
    names = GuardedResolver(resolver or Names(), guard)
    return HttpSink(
        guarded_session(guard, names, context, connect),
        names,
        writer=supplies.writer("http", format=HttpSink.format, prefix=prefix),
        clock=supplies.clock,
        keys=keys,
        target=target,
        authorization=authorization,
        max_per_host=max_per_host,
        connect=connect,
    )


def _check_url(target: str) -> None:
    """Refuse an address that nobody can post to: it would be the end of every job."""
    try:
        target_url(target)
    except Unwritable as error:
        raise InvalidSetting("url", str(error).removeprefix("target: ")) from None


def guarded_session(
    guard: Guard, names: AbstractResolver, context: ssl.SSLContext, connect: timedelta
) -> aiohttp.ClientSession:
    """Return connections that the guard watches over; nothing of the environment is used, nothing is kept."""
    connector = aiohttp.TCPConnector(
        limit=0,  # the engine bounds what is in flight, Hosts what is of it to one host
        keepalive_timeout=KEEP_ALIVE_S,
        ttl_dns_cache=DNS_FRESH_FOR_S,
        resolver=names,
        socket_factory=guard.make_socket,
        ssl=context,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=connect_within(connect),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


@lru_cache(maxsize=64)
def connect_within(limit: timedelta) -> aiohttp.ClientTimeout:
    """Return a limit on finding and reaching a host, to the millisecond; there is none on what comes then."""
    seconds = limit.total_seconds()
    return aiohttp.ClientTimeout(total=None, connect=seconds, sock_connect=seconds, ceil_threshold=math.inf)
