"""Redis: a pool of connections, and what its errors mean."""

from datetime import timedelta
from typing import Final

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from penstock.brokers.options import required, text
from penstock.brokers.words import said
from penstock.domain.masking import MISSPELLED, password_in
from penstock.errors import InvalidSetting
from penstock.ports.sink import Options

OPTIONS: Final = ("url", "username", "password", "queue", "ca_file")
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
LOST: Final = (RedisConnectionError, RedisTimeoutError, OSError)
CONNECTIONS: Final = 20


def make_pool(options: Options) -> BlockingConnectionPool:
    """Return a pool that has not connected yet."""
    url = required(options, "url", "redis://127.0.0.1:6379/0")
    given = {name: text(options, name) for name in ("username", "password")}
    ca_file = text(options, "ca_file")
    if ca_file is not None:
        if not url.startswith("rediss://"):
            raise InvalidSetting("ca_file", 'is for encrypted connections: write url = "rediss://…"')
        given["ssl_ca_certs"] = ca_file
    try:
        return BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=None,  # the caller limits the time
            socket_timeout=None,
            socket_connect_timeout=CONNECT_TIMEOUT.total_seconds(),
            retry=Retry(NoBackoff(), 0),  # the machine retries, and only the machine
            protocol=2,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValueError as error:
        # The error of an address would quote what it takes for a port.
        problem = MISSPELLED if "://" in url and password_in(url) else error
        raise InvalidSetting("url", f"{problem}: write redis://host:6379/0, rediss:// or unix://") from None


def unreachable(error: Exception) -> str:
    """Return what to do about a server that does not answer us."""
    match error:
        case AuthenticationError() | NoPermissionError():
            return f"Redis does not let us in: {said(error)}: check username and password"
        case _:
            inner = error.__context__ if isinstance(error.__context__, OSError) else error
            return f"Redis cannot be reached: {said(inner)}: check url"
