"""API keys, users and sessions (`ports/access.py`) in a SQL database."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from penstock.domain.access import Scope, check_scopes, spelled
from penstock.domain.job import Audit
from penstock.errors import InvalidSetting, NotFound
from penstock.ports.access import ApiKey, KnownKey, NewKey, Session, User
from penstock.stores.sql.database import Database, Row, Tx, one
from penstock.stores.sql.rows import AUDIT_COLUMNS

_KEY: Final = "id, name, scopes, tenant, created_at, created_by, expires_at, revoked_at, used_at"
_USER: Final = "name, password, scopes, tenant, created_at, seen_at"
ADD_KEY: Final = """
    INSERT INTO penstock.api_keys (id, name, hash, scopes, tenant, created_at, created_by, expires_at)
    VALUES (:id, :name, :hash, :scopes, :tenant, :now, :actor, :expires_at) ON CONFLICT DO NOTHING"""
KEYS: Final = f"SELECT {_KEY} FROM penstock.api_keys ORDER BY created_at DESC, id LIMIT 1000"
KEY_OF_HASH: Final = f"SELECT {_KEY} FROM penstock.api_keys WHERE hash = :hash"
KEY_OF_NAME: Final = f"""
    SELECT {_KEY} FROM penstock.api_keys
     WHERE (name = :name OR id = :name) AND revoked_at IS NULL FOR UPDATE"""
REVOKE: Final = "UPDATE penstock.api_keys SET revoked_at = :now WHERE id = :id"
KEY_USED: Final = "UPDATE penstock.api_keys SET used_at = now() WHERE id = :id"
USERS: Final = f"SELECT {_USER} FROM penstock.users ORDER BY name"
USER: Final = f"SELECT {_USER} FROM penstock.users WHERE name = :name"
PUT_USER: Final = """
    INSERT INTO penstock.users (name, password, scopes, tenant, created_at)
    VALUES (:name, :password, :scopes, :tenant, :now)
        ON CONFLICT (name) DO UPDATE
       SET password = excluded.password, scopes = excluded.scopes, tenant = excluded.tenant"""
REMOVE_USER: Final = "DELETE FROM penstock.users WHERE name = :name"
USER_SEEN: Final = "UPDATE penstock.users SET seen_at = now() WHERE name = :name"
OPEN_SESSION: Final = """
    INSERT INTO penstock.sessions (hash, name, created_at, seen_at) VALUES (:hash, :name, :now, :now)"""
SESSION: Final = "SELECT name, created_at, seen_at FROM penstock.sessions WHERE hash = :hash"
SESSION_USED: Final = "UPDATE penstock.sessions SET seen_at = now() WHERE hash = :hash"
CLOSE_SESSION: Final = "DELETE FROM penstock.sessions WHERE hash = :hash"
FORGET_OF_USER: Final = "DELETE FROM penstock.sessions WHERE name = :name"
FORGET_OLD: Final = "DELETE FROM penstock.sessions WHERE created_at < :since"


class AccessPart:
    """Who may come in; `SqlStore` brings the database."""

    __slots__ = ()
    db: Database

    # -- keys
    def add_key(self, key: NewKey, *, actor: str) -> ApiKey:
        """Keep a new key."""
        return self.db.write(lambda tx: _add_key(tx, key, actor))

    def api_keys(self) -> list[ApiKey]:
        """Return every key, the newest first."""
        return self.db.read(lambda tx: [_key(tx, row) for row in tx.fetch(KEYS)])

    def known_key(self, hash: str) -> KnownKey | None:  # noqa: A002
        """Return the key of that hash."""
        return self.db.read(lambda tx: _known_key(tx, hash))

    def revoke_key(self, name: str, *, actor: str, reason: str) -> ApiKey:
        """Let a key open nothing from now on."""
        return self.db.write(lambda tx: _revoke(tx, name, actor=actor, reason=reason))

    def key_used(self, id: str) -> None:  # noqa: A002
        """Note that a key was used."""
        self.db.write(lambda tx: tx.execute(KEY_USED, id=id))

    # -- users
    def put_user(
        self,
        name: str,
        *,
        password: str | None,
        scopes: Iterable[Scope] | None,
        tenant: str | None,
        actor: str,
    ) -> User:
        """Add a user, or change one and end his sessions."""
        chosen = None if scopes is None else spelled(scopes)
        return self.db.write(lambda tx: _put_user(tx, name, password, chosen, tenant=tenant, actor=actor))

    def users(self) -> list[User]:
        """Return every user by name."""
        return self.db.read(lambda tx: [_user(tx, row) for row in tx.fetch(USERS)])

    def user(self, name: str) -> User | None:
        """Return one user."""
        return self.db.read(lambda tx: _known_user(tx, name))

    def remove_user(self, name: str, *, actor: str, reason: str) -> None:
        """Remove a user and end his sessions."""
        self.db.write(lambda tx: _remove_user(tx, name, actor=actor, reason=reason))

    # -- sessions
    def open_session(self, hash: str, user: str, *, most: timedelta) -> None:  # noqa: A002
        """Begin a session, and forget old ones."""
        self.db.write(lambda tx: _open(tx, hash, user, most))

    def session(self, hash: str) -> Session | None:  # noqa: A002
        """Return a session and its user."""
        return self.db.read(lambda tx: _session(tx, hash))

    def session_used(self, hash: str) -> None:  # noqa: A002
        """Note that a session was used."""
        self.db.write(lambda tx: tx.execute(SESSION_USED, hash=hash))

    def close_session(self, hash: str) -> None:  # noqa: A002
        """End a session."""
        self.db.write(lambda tx: tx.execute(CLOSE_SESSION, hash=hash))


def _add_key(tx: Tx, key: NewKey, actor: str) -> ApiKey:
    values = {"name": key.name, "scopes": spelled(key.scopes), "tenant": key.tenant}
    expires_at = None if key.lasts is None else tx.now + key.lasts
    made = tx.execute(
        ADD_KEY, id=key.id, hash=key.hash, now=tx.now, actor=actor, expires_at=expires_at, **values
    )
    if not made:
        raise InvalidSetting(
            "name", f'there is a key "{key.name}" already: choose another name, or revoke it first'
        )
    _note(tx, "access.create", actor, None, {"id": key.id, **values})
    return ApiKey(key.id, key.name, key.scopes, key.tenant, tx.now, actor, expires_at)


def _known_key(tx: Tx, hash_: str) -> KnownKey | None:
    row = one(tx.fetch(KEY_OF_HASH, hash=hash_))
    return None if row is None else KnownKey(_key(tx, row), tx.now)


def _revoke(tx: Tx, name: str, *, actor: str, reason: str) -> ApiKey:
    row = one(tx.fetch(KEY_OF_NAME, name=name))
    if row is None:
        raise NotFound("API key", name)
    key = _key(tx, row)
    tx.execute(REVOKE, id=key.id, now=tx.now)
    _note(tx, "access.revoke", actor, {"id": key.id, "name": key.name}, None, reason=reason)
    return key._replace(revoked_at=tx.now)


def _put_user(
    tx: Tx, name: str, password: str | None, scopes: str | None, *, tenant: str | None, actor: str
) -> User:
    stored = _known_user(tx, name)
    if stored is None and (password is None or scopes is None):
        raise NotFound("user", name)
    before = None if stored is None else {"scopes": spelled(stored.scopes), "tenant": stored.tenant}
    new_password = password or (stored.password if stored else "")
    new_scopes = scopes or (spelled(stored.scopes) if stored else "")
    tx.execute(PUT_USER, name=name, password=new_password, scopes=new_scopes, tenant=tenant, now=tx.now)
    tx.execute(FORGET_OF_USER, name=name)
    after = {"scopes": new_scopes, "tenant": tenant} | ({"password": "changed"} if password else {})
    action = "user.add" if stored is None else "user.change"
    _note(tx, action, actor, before and {"name": name, **before}, {"name": name, **after})
    found = _known_user(tx, name)
    assert found is not None  # noqa: S101 - it was just written
    return found


def _remove_user(tx: Tx, name: str, *, actor: str, reason: str) -> None:
    if not tx.execute(REMOVE_USER, name=name):
        raise NotFound("user", name)
    tx.execute(FORGET_OF_USER, name=name)
    _note(tx, "user.remove", actor, {"name": name}, None, reason=reason)


def _open(tx: Tx, hash_: str, name: str, most: timedelta) -> None:
    tx.execute(FORGET_OLD, since=tx.now - most)
    tx.execute(OPEN_SESSION, hash=hash_, name=name, now=tx.now)
    tx.execute(USER_SEEN, name=name)
    _note(tx, "user.login", f"user:{name}", None, {"name": name})


def _session(tx: Tx, hash_: str) -> Session | None:
    row = one(tx.fetch(SESSION, hash=hash_))
    user = None if row is None else _known_user(tx, row[0])
    if row is None or user is None:
        return None
    return Session(user, _at(tx, row[1]), _at(tx, row[2]), tx.now)


def _known_user(tx: Tx, name: str) -> User | None:
    row = one(tx.fetch(USER, name=name))
    return None if row is None else _user(tx, row)


def _user(tx: Tx, row: Row) -> User:
    name, password, scopes, tenant, created_at, seen_at = row
    return User(name, password, _scopes(scopes), tenant, _at(tx, created_at), tx.time(seen_at))


def _key(tx: Tx, row: Row) -> ApiKey:
    id_, name, scopes, tenant, created_at, created_by, *times = row
    created = _at(tx, created_at)
    return ApiKey(id_, name, _scopes(scopes), tenant, created, created_by, *map(tx.time, times))


def _scopes(text: str) -> frozenset[Scope]:
    return check_scopes(text.split(","))


def _at(tx: Tx, value: object) -> datetime:
    at = tx.time(value)
    assert at is not None  # noqa: S101 - the column is NOT NULL
    return at


def _note(
    tx: Tx,
    action: str,
    actor: str,
    before: dict[str, str | None] | None,
    after: dict[str, str | None] | None,
    *,
    reason: str | None = None,
) -> None:
    was, becomes = (None if said is None else json.dumps(said) for said in (before, after))
    tx.insert("audit", AUDIT_COLUMNS, [Audit(tx.now, None, None, actor, action, was, becomes, reason)])
