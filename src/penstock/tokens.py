"""Tokens in messages: proof that Penstock itself wrote this pointer, for this job and this send.

A token is a JWT, always HS256: which algorithm is ours to say, never the token's. It is signed with the
newest `token` key of the store and verified with any key that the store knows by its `kid`, so that messages
under way stay valid while a key is replaced. `jti` is `job:send`. A message may wait longer in its queue than
its token lasts: a genuine token that expired is told from a forged one, and whoever takes it decides.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import jwt

from penstock.domain.envelopes import Envelope
from penstock.domain.secrets import TOKEN
from penstock.errors import PenstockError, StoreError
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.secrets import Secret, Secrets
from penstock.ports.sink import SinkUnavailable

ALGORITHM: Final = "HS256"
AUDIENCE: Final = "penstock/dispatch"
LIFETIME: Final = timedelta(hours=24)
FRESH_FOR_S: Final = 10.0
SOONEST_S: Final = 1.0
LONGEST: Final = 4096
MAX_SEND: Final = 2**31 - 1


class BadToken(PenstockError):
    """The token is missing, forged, or for something else; the text never holds it."""


class Token(NamedTuple):
    """What a genuine token is for."""

    job: str
    send: int
    expires_at: datetime


class Tokens:
    """Signs and verifies with the keys of a store.

    Signing must not wait: `refresh` reads the keys beforehand, and again now and then. A token with a `kid`
    that is not known makes them be read anew, but not more than once a second.
    """

    def __init__(self, secrets: Secrets, *, executor: Executor, clock: Clock) -> None:
        self._secrets = secrets
        self._executor = executor
        self._clock = clock
        self._keys: dict[str, Secret] = {}
        self._newest: Secret | None = None
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    def sign(self, envelope: Envelope) -> str:
        """Return a token for this send; raise SinkUnavailable when no key could be read yet."""
        if self._newest is None:
            raise SinkUnavailable("the keys that sign tokens were not read yet, or there are none: migrate")
        claims = {
            "aud": AUDIENCE,
            "jti": envelope.dedup,
            "exp": int((self._clock.now() + LIFETIME).timestamp()),
        }
        return jwt.encode(claims, self._newest.secret, algorithm=ALGORITHM, headers={"kid": self._newest.kid})

    async def verify(self, token: str) -> Token:
        """Return what a genuine token is for, expired or not; raise BadToken."""
        kid = _kid(token)
        if kid not in self._keys:
            await self.refresh(older_than=SOONEST_S)
        if kid not in self._keys:
            raise BadToken("the token names a key that is not known here")
        return _read(token, self._keys[kid].secret)

    async def refresh(self, *, older_than: float = FRESH_FOR_S) -> None:
        """Read the keys if they were read longer ago; while the store does not answer, keep those known."""
        async with self._reading:
            if self._clock.monotonic() - self._read_at < older_than:
                return
            self._read_at = self._clock.monotonic()
            try:
                found = await self._executor.run(lambda: self._secrets.secrets(TOKEN))
            except StoreError:
                if not self._keys:
                    raise
                return
            self._keys = {secret.kid: secret for secret in found}
            self._newest = next((secret for secret in found if secret.retired_at is None), None)

    async def keep_fresh(self, stop: asyncio.Event) -> None:
        """Read the keys again and again until `stop`; a store that is away is asked again soon."""
        while not stop.is_set():
            try:
                await self.refresh()
                pause = FRESH_FOR_S
            except StoreError:
                pause = SOONEST_S
            try:
                async with asyncio.timeout(pause):
                    await stop.wait()
            except TimeoutError:
                continue


def _kid(token: str) -> str:
    """Return the key a token names; nothing else in its header is believed."""
    if len(token) > LONGEST:
        raise BadToken("the token is too long")
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise BadToken("this is no token") from None
    kid = header.get("kid")
    if not isinstance(kid, str):
        raise BadToken("the token names no key")
    return kid


def _read(token: str, key: str) -> Token:
    options = {
        "require": ["aud", "exp", "jti"],
        "verify_exp": False,
        "verify_iat": False,
        "verify_nbf": False,
    }
    try:
        claims = jwt.decode(token, key, algorithms=[ALGORITHM], audience=AUDIENCE, options=options)  # type: ignore[arg-type]
        job, _, send = str(claims["jti"]).partition(":")
        if not (send.isascii() and send.isdigit() and 1 <= int(send[:11]) <= MAX_SEND):
            raise BadToken("the token names no send")
        return Token(job, int(send), datetime.fromtimestamp(int(claims["exp"]), tz=UTC))
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, OSError, RecursionError) as error:
        raise BadToken(f"the token is not genuine ({type(error).__name__})") from None
