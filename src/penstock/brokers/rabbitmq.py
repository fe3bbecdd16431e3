"""RabbitMQ: where it is, who we are to it, and what its driver's errors mean."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, NamedTuple

from aio_pika import Connection
from aio_pika.exceptions import (
    AMQPError,
    AuthenticationError,
    ChannelInvalidStateError,
    ProbableAuthenticationError,
)
from yarl import URL

from penstock.brokers.options import required, text, tls_context
from penstock.brokers.words import said
from penstock.errors import InvalidSetting
from penstock.ports.executor import Executor
from penstock.ports.sink import Options

OPTIONS: Final = ("url", "username", "password", "queue", "ca_file", "prefetch")
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
LOST: Final = (AMQPError, ChannelInvalidStateError, OSError, RuntimeError, TimeoutError)


class Place(NamedTuple):
    """The broker's URL with credentials, and what checks its certificate."""

    url: URL
    context: ssl.SSLContext | None

    def unreachable(self, error: Exception) -> str:
        """Return what to do about a broker that does not let us in."""
        if isinstance(error, AuthenticationError | ProbableAuthenticationError):
            return "RabbitMQ does not let us in: check username, password and the virtual host in url"
        address = f"{self.url.host}:{self.url.port}"
        return f"RabbitMQ at {address} cannot be reached: {said(error)}: check url"

    async def connect(self, name: str, *, heartbeat: int | None = None) -> Connection:
        """Return a connection that the broker shows under this name."""
        url = self.url if heartbeat is None else self.url.update_query(heartbeat=heartbeat)
        connection = Connection(url, ssl_context=self.context, client_properties={"connection_name": name})
        try:
            await connection.connect()
        except BaseException:
            await connection.close()  # or it closes itself when it is collected, and warns
            raise
        return connection


async def place_of(options: Options, executor: Executor) -> Place:
    """Return what the options say; certificates are read in a thread."""
    url, ca_file = _url(options), text(options, "ca_file")
    if url.scheme == "amqps":
        return Place(url, await executor.run(lambda: tls_context(ca_file)))
    if ca_file is not None:
        raise InvalidSetting("ca_file", 'is for encrypted connections: write url = "amqps://…"')
    return Place(url, None)


def _url(options: Options) -> URL:
    """Return the broker's URL with the credentials that are given apart from it."""
    given = required(options, "url", "amqp://127.0.0.1:5672/")
    try:
        url = URL(given)
    except ValueError:
        url = URL()
    if url.scheme not in {"amqp", "amqps"} or not url.host:
        raise InvalidSetting(
            "url", "is not the address of a RabbitMQ: write amqp://host:5672/vhost or amqps://"
        )
    username, password = text(options, "username"), text(options, "password")
    if username is not None:
        url = url.with_user(username)
    return url if password is None else url.with_password(password)


@contextmanager
def uncancelled() -> Iterator[None]:
    """Tell a lost connection from being cancelled: the driver cancels what waits on one."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("the connection broke") from None
