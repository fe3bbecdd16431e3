"""ActiveMQ Classic over STOMP: where it is, who we are to it, and how its driver is set up."""

import socket
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import stomp
from stomp.exception import ConnectFailedException, StompException

from penstock.brokers import words
from penstock.brokers.options import required, text
from penstock.errors import InvalidSetting
from penstock.ports.sink import Options

OPTIONS: Final = ("url", "username", "password", "queue", "ca_file", "prefetch")
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
FAILED: Final = (StompException, OSError, TimeoutError)


class Place(NamedTuple):
    """Where the broker is and who we are to it."""

    host: str
    port: int
    tls: bool
    ca_file: str | None
    username: str | None
    password: str | None

    def connection(
        self, listener: stomp.ConnectionListener, *, heartbeats: tuple[int, int], **driver: bool
    ) -> Any:  # noqa: ANN401 - it carries no types
        """Return a connection that is not connected yet; heartbeats are ours and theirs, in milliseconds."""
        made = stomp.StompConnection12(
            [(self.host, self.port)],
            prefer_localhost=False,
            try_loopback_connect=False,
            reconnect_attempts_max=1,
            reconnect_sleep_initial=0.0,
            timeout=CONNECT_TIMEOUT.total_seconds(),
            heartbeats=heartbeats,
            auto_content_length=True,
            **driver,
        )
        made.set_listener("penstock", listener)
        if self.tls:
            made.set_ssl([(self.host, self.port)], ca_certs=self.ca_file)
        return made

    def unreachable(self, error: str) -> str:
        """Return what to do about a broker that does not let us in."""
        address = f"{self.host}:{self.port}"
        return f"ActiveMQ at {address} does not let us in: {error}: check url, username and password"


def place_of(options: Options) -> Place:
    """Return what the options say."""
    try:
        url = urlsplit(required(options, "url", "stomp://127.0.0.1:61613"))
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if not host or url.scheme not in {"stomp", "stomps"} or url.path not in {"", "/"}:
        raise InvalidSetting(
            "url", "is not the address of an ActiveMQ: write stomp://host:61613 or stomps://"
        )
    tls, ca_file = url.scheme == "stomps", text(options, "ca_file")
    if ca_file is not None and not tls:
        raise InvalidSetting("ca_file", 'is for encrypted connections: write url = "stomps://…"')
    return Place(
        host,
        port or (61614 if tls else 61613),
        tls,
        ca_file,
        text(options, "username") or url.username,
        text(options, "password") or url.password,
    )


def destination(queue: str) -> str:
    """Return the queue as STOMP spells it; a full destination stays as it is."""
    return queue if queue.startswith("/") else f"/queue/{queue}"


def hang_up(connection: Any) -> None:  # noqa: ANN401
    """Break a connection, which ends whoever waits on it; its reading thread tidies up and ends."""
    if connection is not None and connection.transport.socket is not None:
        with suppress(OSError):
            connection.transport.socket.shutdown(socket.SHUT_RDWR)


def said(error: object) -> str:
    """Return what went wrong; of a connection that fails the driver keeps to itself why."""
    return "nothing answers there" if isinstance(error, ConnectFailedException) else words.said(error)
