"""A lease in Redis that says which node dispatches, for those who keep their nodes on standby that way.

It only decides who works: order, limits and fencing rest on the store, so two nodes that both believe they
hold the lease for a moment do no harm. The holder trusts it for less than Redis does, counted from when it
began to ask, and every renewal names the holder's own token. A Redis that is away means that nobody new
starts, and that the holder stops when its lease is over.
"""

from datetime import timedelta
from typing import Any, Final, Protocol

from penstock.domain.leases import trusted, trusted_until
from penstock.domain.masking import MISSPELLED, password_in
from penstock.errors import InvalidSetting, StoreError
from penstock.ports.clock import Clock
from penstock.ports.events import Emit, StoreBack, StoreFailed

# Whoever holds another token must not prolong or delete the lease.
_IF_OURS: Final = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call({}) end return 0"
RENEW: Final = _IF_OURS.format("'pexpire', KEYS[1], ARGV[2]")
RESIGN: Final = _IF_OURS.format("'del', KEYS[1]")


class Standby(Protocol):
    """Who says whether this node dispatches."""

    every: timedelta
    trouble: str  # why nobody can say, "" = there is none

    async def tick(self) -> bool:
        """Prolong the lease, or try to get it."""

    def leads(self) -> bool:
        """Say whether this node dispatches now."""

    async def resign(self) -> None:
        """Let the next one dispatch at once."""


class RedisLease:
    """See the module; `token` tells this run of this node from all others."""

    def __init__(
        self,
        url: str,
        *,
        key: str,
        ttl: timedelta,
        every: timedelta,
        token: str,
        clock: Clock,
        emit: Emit,
    ) -> None:
        try:
            import redis.asyncio as redis  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise StoreError("standby.redis_url needs redis: pip install 'penstock[redis]'") from error
        try:
            self._redis: Any = redis.from_url(url, socket_timeout=5, socket_connect_timeout=5)
        except ValueError:  # what it quotes may be a part of a password
            problem = MISSPELLED if password_in(url) else "an option behind the ? is wrong"
            raise InvalidSetting("standby.redis_url", problem) from None
        self._error: type[Exception] = redis.RedisError
        self._key, self._ttl, self._token = key, ttl, token
        self._clock, self._emit = clock, emit
        self._until = 0.0
        self._failures, self._failing_since = 0, 0.0
        self.every = every
        self.trouble = ""

    async def tick(self) -> bool:
        """Prolong the lease, or try to get it."""
        started, milliseconds = self._clock.monotonic(), int(self._ttl.total_seconds() * 1000)
        try:
            ours = await self._redis.eval(RENEW, 1, self._key, self._token, milliseconds)
            ours = ours or await self._redis.set(self._key, self._token, nx=True, px=milliseconds)
        except (self._error, OSError) as error:
            self._failing_since = self._failing_since if self._failures else started
            self._failures += 1
            self.trouble = f"redis: {error}"
            self._emit(StoreFailed(part="standby", error=self.trouble, failures=self._failures))
            return False
        if self._failures:
            self._emit(StoreBack(part="standby", after=self._clock.monotonic() - self._failing_since))
        self._failures, self.trouble = 0, ""
        self._until = trusted_until(started, self._ttl) if ours else 0.0
        return False

    def leads(self) -> bool:
        """Say whether this node holds the lease, and knows it."""
        return trusted(self._clock.monotonic(), self._until)

    async def resign(self) -> None:
        """Delete the lease if it is ours."""
        self._until = 0.0
        try:
            await self._redis.eval(RESIGN, 1, self._key, self._token)
            await self._redis.aclose()
        except (self._error, OSError):
            return  # it runs out by itself
