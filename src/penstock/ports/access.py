"""Who may come in: API keys for programs, users and their sessions for people. A part of `Store`.

Of a key and of a session only a hash is kept, of a password only what Argon2id makes of it. Every change is
audited with whoever made it. What is no longer valid is still found: whoever asks is told why.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from types import EllipsisType
from typing import NamedTuple, Protocol

from penstock.domain.access import Scope
from penstock.errors import InvalidSetting


class ApiKey(NamedTuple):
    """A key of a program, without the key."""

    id: str
    name: str
    scopes: frozenset[Scope]
    tenant: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None

    def problem(self, now: datetime) -> str | None:
        """Return why it lets nobody in; None = it does."""
        if self.revoked_at is not None:
            return "was revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "has expired"
        return None


class NewKey(NamedTuple):
    """A key to be kept; `hash` is the SHA-256 of the key itself, in hex."""

    id: str
    name: str
    hash: str
    scopes: frozenset[Scope]
    tenant: str | None = None
    lasts: timedelta | None = None


class User(NamedTuple):
    """Somebody who logs in; `password` is what is kept of it (`passwords.py`)."""

    name: str
    password: str
    scopes: frozenset[Scope]
    tenant: str | None
    created_at: datetime
    seen_at: datetime | None = None

    def __repr__(self) -> str:
        return f"User({self.name!r}, '***')"

    def changed(
        self,
        *,
        password: str | None,
        scopes: Iterable[Scope] | None,
        tenant: str | EllipsisType | None,
    ) -> "User":
        """Return the user as he will be: None keeps password and scopes, `...` the tenant."""
        return self._replace(
            password=password or self.password,
            scopes=self.scopes if scopes is None else frozenset(scopes),
            tenant=self.tenant if isinstance(tenant, EllipsisType) else tenant,
        )


def known_user(name: str) -> InvalidSetting:
    """Return the error about somebody who was to be new."""
    return InvalidSetting("name", f'there is a user "{name}" already: penstock users set {name}')


class Session(NamedTuple):
    """A log-in; `now` is the store's time when it was looked at."""

    user: User
    created_at: datetime
    seen_at: datetime
    now: datetime


class KnownKey(NamedTuple):
    """A key that was shown; `now` is the store's time when it was looked at."""

    key: ApiKey
    now: datetime


class Access(Protocol):
    """API keys, users, sessions."""

    def add_key(self, key: NewKey, *, actor: str) -> ApiKey:
        """Keep a new key; audited. Raise InvalidSetting when a valid one has that name."""

    def api_keys(self) -> list[ApiKey]:
        """Return every key, the newest first, a thousand at most."""

    def known_key(self, hash: str) -> KnownKey | None:  # noqa: A002
        """Return the key of that hash, valid or not; None = there is none."""

    def revoke_key(self, name: str, *, actor: str, reason: str) -> ApiKey:
        """Let a key, named or by its id, open nothing from now on; audited. Raise NotFound."""

    def key_used(self, id: str) -> None:  # noqa: A002
        """Note that a key was used."""

    def put_user(
        self,
        name: str,
        *,
        password: str | None,
        scopes: Iterable[Scope] | None,
        tenant: str | EllipsisType | None,
        actor: str,
        of: Collection[Scope] = frozenset(Scope),
        new: bool = False,
    ) -> User:
        """Add a user, or change one and end his sessions; audited, without the password.

        None leaves password or scopes as they are, `...` the tenant: as they are in this very transaction,
        whatever the caller saw before. NotFound when there is nobody to leave them of. Forbidden when the
        user could then do more than `of`, InvalidSetting when he is to be `new` and is there already.
        """

    def users(self) -> list[User]:
        """Return every user by name."""

    def user(self, name: str) -> User | None:
        """Return one user."""

    def remove_user(self, name: str, *, actor: str, reason: str) -> None:
        """Remove a user and end his sessions; audited. Raise NotFound."""

    def open_session(
        self,
        hash: str,  # noqa: A002
        user: str,
        *,
        password: str,
        most: timedelta,
        anew: str | None = None,
    ) -> bool:
        """Begin a session; audited. Sessions begun longer ago than `most` are forgotten.

        `password` is what was compared, as it is kept. Return False, and begin nothing, when it is no longer
        that of the user: what ended all sessions would not have ended this one. `anew` is kept of the same
        password from now on, in place of what was compared; it ends no session.
        """

    def session(self, hash: str) -> Session | None:  # noqa: A002
        """Return a session and its user; None = there is none."""

    def session_used(self, hash: str) -> None:  # noqa: A002
        """Note that a session was used."""

    def close_session(self, hash: str) -> None:  # noqa: A002
        """End a session; one that is over already is no mistake."""
