"""The secrets that sign webhooks, read from the store now and then, not for every message."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from penstock.errors import StoreError
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.secrets import Secrets
from penstock.ports.sink import SinkUnavailable

Keys = Callable[[], Awaitable[Sequence[str]]]

NAME: Final = "webhook"
FRESH_FOR_S: Final = 10.0
CHANGE_OVER: Final = timedelta(days=1)


async def no_keys() -> Sequence[str]:
    """Return no secrets: messages go unsigned."""
    return ()


class WebhookKeys:
    """The live secrets, newest first.

    A retired one signs along for a day, so that receivers can change over one after the other. While the
    store does not answer, those known last are used.
    """

    def __init__(self, secrets: Secrets, *, executor: Executor, clock: Clock) -> None:
        self._secrets = secrets
        self._executor = executor
        self._clock = clock
        self._known: Sequence[str] | None = None
        self._until = clock.monotonic()
        self._reading = asyncio.Lock()

    async def __call__(self) -> Sequence[str]:
        """Return the secrets to sign with now; raise SinkUnavailable when none was ever read."""
        if self._known is not None and self._clock.monotonic() < self._until:
            return self._known
        async with self._reading:
            if self._known is None or self._clock.monotonic() >= self._until:
                self._known = await self._read()
                self._until = self._clock.monotonic() + FRESH_FOR_S
        return self._known

    async def _read(self) -> Sequence[str]:
        try:
            found = await self._executor.run(lambda: self._secrets.secrets(NAME))
        except StoreError as error:
            if self._known is None:
                raise SinkUnavailable(f"the webhook secrets cannot be read: {error}") from error
            return self._known
        now = self._clock.now()
        return [s.secret for s in found if s.retired_at is None or now < s.retired_at + CHANGE_OVER]
