"""People log in with name and password, and out again.

A wrong password and an unknown name are answered with the same words after the same work. A new session gets
a new cookie, which no script can read and no other site can send; a session that came with the request ends.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

from litestar.datastructures import Cookie

from penstock.api.callers import COOKIE, LONGEST, SECURE_COOKIE, Callers
from penstock.api.failures import Failures
from penstock.api.problems import Problem
from penstock.domain.access import hashed, new_token
from penstock.passwords import AT_ONCE, SALT_BYTES, fits, is_outdated, kept, to_compare
from penstock.ports.access import User
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.store import Store

PER_NAME: Final = 10
PER_ADDRESS: Final = 30
WITHIN_S: Final = 300.0
MOST_WAITING: Final = 20
BUSY_S: Final = "2"  # about as long as so many take
_LOG: Final = logging.getLogger("penstock.access")


class Proof(NamedTuple):
    """What somebody gave at the door."""

    name: str
    password: str


class Door:
    """Where people come in."""

    def __init__(
        self,
        store: Store,
        callers: Callers,
        *,
        executor: Executor,
        clock: Clock,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._store, self._callers, self._executor, self._entropy = store, callers, executor, entropy
        self._names = Failures(PER_NAME, WITHIN_S, clock.monotonic)
        self._addresses = Failures(PER_ADDRESS, WITHIN_S, clock.monotonic)
        self._work = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def log_in(self, proof: Proof, *, address: str, before: str | None = None) -> str | None:
        """Return the token of a new session; None = name or password are wrong. Raise Problem."""
        name = proof.name[:100]
        self._check(name, address)
        async with self._turn():
            self._check(name, address)  # again: others who came at the same time may have failed meanwhile
            with self._names.trying(name), self._addresses.trying(address):
                token = await self._entered(proof)
                if token is None:
                    self._names.note(name)
                    self._addresses.note(address)
        if token is None:
            _LOG.warning("log-in of %r from %s failed", name, address)
            return None
        self._names.forget(name)
        if before is not None:
            await self.log_out(before)
        _LOG.info("%s logged in from %s", name, address)
        return token

    async def log_out(self, session: str) -> None:
        """End a session, on every node."""
        await self._executor.run(lambda: self._store.close_session(hashed(session)))
        self._callers.forget(session)

    def _opened(self, token: str, user: User, password: str) -> bool:
        anew = kept(password, self._entropy(SALT_BYTES)) if is_outdated(user.password) else None
        return self._store.open_session(
            hashed(token), user.name, password=user.password, most=LONGEST, anew=anew
        )

    def _check(self, name: str, address: str) -> None:
        self._names.check(name)
        self._addresses.check(address)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            raise Problem(
                503,
                "too-busy",
                "very many log in at once",
                hint="wait a moment and try again",
                headers={"Retry-After": BUSY_S},
            )
        self._waiting += 1
        try:
            async with self._work:
                yield
        finally:
            self._waiting -= 1

    async def _entered(self, proof: Proof) -> str | None:
        """Return the token of a new session of whoever fits."""
        for _ in range(2):  # another log-in of his may keep the same password anew meanwhile
            user = await self._executor.run(partial(self._compared, proof))
            if user is None:
                return None
            token = new_token(self._entropy)
            if await self._executor.run(partial(self._opened, token, user, proof.password)):
                return token
        return None

    def _compared(self, proof: Proof) -> User | None:
        """Return whoever fits, with the same work for everybody, known or not, whenever he was added."""
        users = self._store.users()
        user = next((user for user in users if user.name == proof.name), None)
        stored = to_compare(None if user is None else user.password, (user.password for user in users))
        fitting = [fits(proof.password, one) for one in stored]  # all of them, also after one that fits
        return user if any(fitting) else None


def set_cookie(token: str, *, secure: bool) -> Cookie:
    """Return the cookie of a new session."""
    age = int(LONGEST.total_seconds())
    key = SECURE_COOKIE if secure else COOKIE
    return Cookie(key, value=token, max_age=age, httponly=True, samesite="lax", secure=secure)


def drop_cookies() -> list[Cookie]:
    """Return the cookies that make a browser forget."""
    pairs = ((COOKIE, False), (SECURE_COOKIE, True))
    return [Cookie(k, value="", max_age=0, httponly=True, samesite="lax", secure=s) for k, s in pairs]
