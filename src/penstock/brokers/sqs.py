"""Amazon SQS and whatever speaks its protocol: a client, the addresses of queues, the words of refusals."""

import re
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Final

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from penstock.brokers.options import text
from penstock.brokers.words import said
from penstock.errors import InvalidSetting
from penstock.ports.sink import Options

OPTIONS: Final = ("url", "region", "queue", "access_key", "secret_key", "session_token")
CONNECT_TIMEOUT: Final = timedelta(seconds=10)
READ_TIMEOUT: Final = timedelta(seconds=60)  # the caller limits the time; this is for calls of our own
CONNECTIONS: Final = 50
FIFO: Final = ".fifo"
MOST_AT_ONCE: Final = 10  # messages in one call, of whatever kind
_NO_QUEUE: Final = re.compile(r"NonExistentQueue|QueueDoesNotExist|InvalidAddress|UnsupportedOperation")
_NOT_ALLOWED: Final = re.compile(r"AccessDenied|Kms|KMS|OptInRequired|InvalidSecurity")
_NOT_KNOWN: Final = re.compile(
    r"InvalidClientTokenId|UnrecognizedClient|Signature|Token|NotAuthorized|RequestExpired"
)
_SLOW_DOWN: Final = re.compile(r"Throttl|OverLimit|ServiceUnavailable|SlowDown|TooManyRequests")


class Sqs:
    """A pool of connections; `client` makes the calls."""

    def __init__(self, client: Any, stack: AsyncExitStack) -> None:  # noqa: ANN401 - made at run time
        self.client = client
        self._stack = stack
        self._urls: dict[str, str] = {}

    async def url(self, queue: str) -> str:
        """Return the queue's URL, which SQS knows; a lane may name either."""
        if "://" in queue:
            return queue
        if queue not in self._urls:
            self._urls[queue] = str((await self.client.get_queue_url(QueueName=queue))["QueueUrl"])
        return self._urls[queue]

    async def close(self) -> None:
        """Close the kept connections."""
        await self._stack.aclose()


async def open_client(options: Options) -> Sqs:
    """Return a client that has not called anybody yet."""
    url, stack = text(options, "url"), AsyncExitStack()
    config = AioConfig(
        connect_timeout=CONNECT_TIMEOUT.total_seconds(),
        read_timeout=READ_TIMEOUT.total_seconds(),
        max_pool_connections=CONNECTIONS,
        retries={"total_max_attempts": 1, "mode": "standard"},  # the machine retries, and only the machine
    )
    try:
        # Reads the service's description from disk: some hundred milliseconds the first time.
        making = get_session().create_client(
            "sqs",
            region_name=text(options, "region") or ("us-east-1" if url else None),
            endpoint_url=url,
            aws_access_key_id=text(options, "access_key"),
            aws_secret_access_key=text(options, "secret_key"),
            aws_session_token=text(options, "session_token"),
            config=config,
        )
        return Sqs(await stack.enter_async_context(making), stack)
    except NoRegionError:
        raise InvalidSetting("region", 'is missing: write region = "eu-central-1", for example') from None
    except (BotoCoreError, ValueError) as error:
        example = 'write url = "https://sqs.eu-central-1.amazonaws.com", or none for AWS itself'
        raise InvalidSetting("url", f"{said(error)}: {example}") from None


def refused(error: ClientError, queue: str | None, *, wants: str) -> str | None:
    """Return what to do about a refusal that is not for what was said; None = it is.

    `wants` is what we must be allowed to do there: "written to: allow sqs:SendMessage".
    """
    found = code(error)
    if _NO_QUEUE.search(found):
        return f'there is no queue "{queue}": create it, or name another in the lane\'s queue'
    if _NOT_ALLOWED.search(found):
        return f'the queue "{queue}" may not be {wants} and sqs:GetQueueUrl'
    if _NOT_KNOWN.search(found):
        return f"SQS does not know us: {said(error)}: check access_key, secret_key and session_token"
    return None


def unreachable(error: BotoCoreError) -> str:
    """Return what to do about a call that got no answer."""
    match error:
        case NoCredentialsError() | PartialCredentialsError():
            return "no credentials: set access_key and secret_key, or what the AWS SDK finds by itself"
        case _:
            return f"SQS cannot be reached: {said(error)}: check url and region"


def slow_down(found: str) -> bool:
    """Say whether this code asks us to come later."""
    return _SLOW_DOWN.search(found) is not None


def code(error: ClientError) -> str:
    """Return the code of a refusal."""
    return str(error.response.get("Error", {}).get("Code", ""))
