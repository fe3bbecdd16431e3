"""Who is asking: by an API key, by the cookie of a log-in, or, where no login is wanted, anybody.

A key or a session is looked up at most once a second on each node, so one that is revoked opens nothing a
second later. Guessing is counted by address.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

from penstock.api.failures import Failures
from penstock.api.problems import Problem, unknown_caller
from penstock.domain.access import LOCAL, PREFIX, Who, hashed
from penstock.errors import StoreError
from penstock.ports.access import ApiKey, Session
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.store import Store

IDLE: Final = timedelta(hours=8)  # a page that is open looks every second, so this is about closed ones
LONGEST: Final = timedelta(days=7)
FRESH_S: Final = 1.0
NOTED_EVERY: Final = timedelta(minutes=1)
KEPT: Final = 1000
BAD_KEYS: Final = 60
BAD_KEYS_WITHIN_S: Final = 60.0
COOKIE: Final = "penstock_session"
SECURE_COOKIE: Final = "__Host-penstock_session"
_LOG: Final = logging.getLogger("penstock.access")


class Caller(NamedTuple):
    """Who asks (None = nobody known), and the token of his session, which is never shown."""

    who: Who | None
    session: str | None = None

    @property
    def csrf(self) -> str:
        """What a page of this session must send along with whatever changes something; "" = nothing."""
        return "" if self.session is None else sha256(f"csrf:{self.session}".encode()).hexdigest()


Look: TypeAlias = Callable[[str, str], Awaitable[Caller]]


@dataclass(slots=True)
class _Kept:
    until: float
    found: Caller | Problem


class Callers:
    """Finds out who sends a request; with `login` those who prove nothing are nobody."""

    def __init__(self, store: Store, *, executor: Executor, clock: Clock, login: bool) -> None:
        self._store, self._executor, self._clock = store, executor, clock
        self.login = login
        self._kept: dict[str, _Kept] = {}
        self._bad = Failures(BAD_KEYS, BAD_KEYS_WITHIN_S, clock.monotonic)

    async def identify(self, headers: Mapping[bytes, bytes], *, address: str) -> Caller:
        """Return who is asking, or raise the Problem with what he shows."""
        key = _bearer(headers.get(b"authorization", b"").decode("latin-1"))
        if key is not None:
            found = await self._looked_up(key, self._key, address=address)
            if isinstance(found, Problem):
                # A key cannot be guessed; this keeps programs with a wrong one from asking all the time.
                self._bad.check(address)
                raise found
            return found
        session = cookie_of(headers.get(b"cookie", b"").decode("latin-1"))
        if session is not None:
            found = await self._looked_up(session, self._session, address=address)
            if isinstance(found, Caller) and found.who is not None:
                return found
        return Caller(None if self.login else LOCAL)

    def recalled(self, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Return who was last seen with what a request shows, for a menu: nothing is looked up or allowed."""
        session = cookie_of(headers.get(b"cookie", b"").decode("latin-1"))
        kept = self._kept.get(hashed(session)) if session is not None else None
        if kept is not None and isinstance(kept.found, Caller) and kept.found.who is not None:
            return kept.found
        return None if self.login else Caller(LOCAL)

    def forget(self, session: str) -> None:
        """Forget a session that was just closed."""
        self._kept.pop(hashed(session), None)

    async def _looked_up(self, token: str, look: Look, *, address: str) -> Caller | Problem:
        name, now = hashed(token), self._clock.monotonic()
        kept = self._kept.get(name)
        if kept is not None and now < kept.until:
            return kept.found
        try:
            found: Caller | Problem = await look(token, name)
        except Problem as problem:
            found = problem
            self._bad.note(address)
            _LOG.warning("%s: %s", address, problem)
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[name] = _Kept(now + FRESH_S, found)
        return found

    async def _key(self, _: str, name: str) -> Caller:
        known = await self._executor.run(lambda: self._store.known_key(name))
        problem = "is not known" if known is None else known.key.problem(known.now)
        if known is None or problem is not None:
            raise unknown_caller(f"this API key {problem}")
        await self._note_key(known.key, known.now)
        return Caller(Who(f"key:{known.key.name}", known.key.scopes, known.key.tenant))

    async def _session(self, token: str, name: str) -> Caller:
        found = await self._executor.run(lambda: self._store.session(name))
        if found is None or _over(found):
            return Caller(None)
        if found.now - found.seen_at > NOTED_EVERY:
            await self._noted(lambda: self._store.session_used(name))
        return Caller(Who(f"user:{found.user.name}", found.user.scopes, found.user.tenant), token)

    async def _note_key(self, key: ApiKey, now: datetime) -> None:
        if key.used_at is None or now - key.used_at > NOTED_EVERY:
            await self._noted(lambda: self._store.key_used(key.id))

    async def _noted(self, note: Callable[[], None]) -> None:
        try:
            await self._executor.run(note)
        except StoreError as error:  # it is only a note
            _LOG.warning("cannot note the use of a key or session: %s", error)


def _over(session: Session) -> bool:
    return session.now - session.seen_at > IDLE or session.now - session.created_at > LONGEST


def _bearer(header: str) -> str | None:
    """Return an API key; other tokens (those of messages) are for others to check."""
    scheme, _, token = header.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(PREFIX) else None


def cookie_of(header: str) -> str | None:
    """Return the token of a session from the header Cookie.

    Read pair by pair: browsers send the cookies of all that runs on this host, on whatever port, and the
    standard library gives up at the first one that is not written as it should be.
    """
    pairs = (pair.partition("=") for pair in header.split(";"))
    cookies = {name.strip(): value.strip() for name, _, value in pairs}
    return cookies.get(SECURE_COOKIE) or cookies.get(COOKIE) or None
