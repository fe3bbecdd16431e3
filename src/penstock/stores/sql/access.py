"""API keys, users and sessions (`ports/access.py`) in a SQL database."""

import json
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from types import EllipsisType
from typing import Final

from penstock.domain.access import Scope, check_granted, check_scopes, spelled
from penstock.domain.job import Audit
from penstock.errors import InvalidSetting, NotFound
from penstock.ports.access import ApiKey, KnownKey, NewKey, Session, User, known_user
from penstock.stores.sql.database import Database, Row, Tx, one
from penstock.stores.sql.rows import AUDIT_COLUMNS

_KEY: Final = "id, name, scopes, tenant, created_at, created_by, expires_at, revoked_at, used_at"
_USER: Final = "name, password, scopes, tenant, created_at, seen_at"
ADD_KEY: Final = """
    INSERT INTO penstock.api_keys (id, name, hash, scopes, tenant, created_at, created_by, expires_at)
    VALUES (:id, :name, :hash, :scopes, :tenant, :now, :actor, :expires_at) ON CONFLICT DO NOTHING"""
# Those that were revoked are never in the way of one that opens something.
KEYS: Final = f"""
    SELECT * FROM (SELECT {_KEY} FROM penstock.api_keys
                    ORDER BY revoked_at IS NOT NULL, created_at DESC, id LIMIT 1000) k
     ORDER BY created_at DESC, id"""
KEY_OF_HASH: Final = f"SELECT {_KEY} FROM penstock.api_keys WHERE hash = :hash"
KEY_OF_NAME: Final = f"""
    SELECT {_KEY} FROM penstock.api_keys
     WHERE (name = :name OR id = :name) AND revoked_at IS NULL FOR UPDATE"""
REVOKE: Final = "UPDATE penstock.api_keys SET revoked_at = :now WHERE id = :id"
KEY_USED: Final = "UPDATE penstock.api_keys SET used_at = now() WHERE id = :id"
USERS: Final = f"SELECT {_USER} FROM penstock.users ORDER BY name"
USER: Final = f"SELECT {_USER} FROM penstock.users WHERE name = :name"
LOCKED_USER: Final = f"{USER} FOR UPDATE"
ADD_USER: Final = """
    INSERT INTO penstock.users (name, password, scopes, tenant, created_at)
    VALUES (:name, :password, :scopes, :tenant, now()) ON CONFLICT DO NOTHING"""
CHANGE_USER: Final = """
    UPDATE penstock.users SET password = :password, scopes = :scopes, tenant = :tenant WHERE name = :name"""
REMOVE_USER: Final = "DELETE FROM penstock.users WHERE name = :name"
# It waits for whoever is changing the password, and then finds that it is another.
USER_SEEN: Final = """
    UPDATE penstock.users SET seen_at = now(), password = :anew WHERE name = :name AND password = :password"""
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
        tenant: str | EllipsisType | None,
        actor: str,
        of: Collection[Scope] = frozenset(Scope),
        new: bool = False,
    ) -> User:
        """Add a user, or change one and end his sessions."""
        chosen = None if scopes is None else frozenset(scopes)

        def put(tx: Tx) -> User:
            stored = _stored(tx, name, LOCKED_USER)
            if stored is not None and new:
                raise known_user(name)
            if stored is None and (password is None or chosen is None):
                raise NotFound("user", name)
            was = stored or User(name, "", frozenset(), None, tx.now)
            made = was.changed(password=password, scopes=chosen, tenant=tenant)
            check_granted(made.scopes, of, actor)
            if not _written(tx, ADD_USER if stored is None else CHANGE_USER, made):
                return put(tx)  # somebody was faster: now it is a change of what he wrote
            tx.execute(FORGET_OF_USER, name=name)
            _note_user(tx, actor, stored, made, new_password=password is not None)
            return made

        return self.db.write(put)

    def users(self) -> list[User]:
        """Return every user by name."""
        return self.db.read(lambda tx: [_user(tx, row) for row in tx.fetch(USERS)])

    def user(self, name: str) -> User | None:
        """Return one user."""
        return self.db.read(lambda tx: _stored(tx, name))

    def remove_user(self, name: str, *, actor: str, reason: str) -> None:
        """Remove a user and end his sessions."""
        self.db.write(lambda tx: _remove_user(tx, name, actor=actor, reason=reason))

    # -- sessions
    def open_session(
        self,
        hash: str,  # noqa: A002
        user: str,
        *,
        password: str,
        most: timedelta,
        anew: str | None = None,
    ) -> bool:
        """Begin a session of somebody with that password, and forget old ones."""
        return self.db.write(lambda tx: _open(tx, hash, user, (password, anew or password), most))

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


def _written(tx: Tx, sql: str, user: User) -> bool:
    values = {"password": user.password, "scopes": spelled(user.scopes), "tenant": user.tenant}
    return tx.execute(sql, name=user.name, **values) > 0


def _note_user(tx: Tx, actor: str, stored: User | None, made: User, *, new_password: bool) -> None:
    before = None if stored is None else _told(stored)
    after = _told(made) | ({"password": "changed"} if new_password else {})
    _note(tx, "user.add" if stored is None else "user.change", actor, before, after)


def _told(user: User) -> dict[str, str | None]:
    return {"name": user.name, "scopes": spelled(user.scopes), "tenant": user.tenant}


def _remove_user(tx: Tx, name: str, *, actor: str, reason: str) -> None:
    if not tx.execute(REMOVE_USER, name=name):
        raise NotFound("user", name)
    tx.execute(FORGET_OF_USER, name=name)
    _note(tx, "user.remove", actor, {"name": name}, None, reason=reason)


def _open(tx: Tx, hash_: str, name: str, passwords: tuple[str, str], most: timedelta) -> bool:
    password, anew = passwords
    if not tx.execute(USER_SEEN, name=name, password=password, anew=anew):
        return False
    tx.execute(FORGET_OLD, since=tx.now - most)
    tx.execute(OPEN_SESSION, hash=hash_, name=name, now=tx.now)
    _note(tx, "user.login", f"user:{name}", None, {"name": name})
    return True


def _session(tx: Tx, hash_: str) -> Session | None:
    row = one(tx.fetch(SESSION, hash=hash_))
    user = None if row is None else _stored(tx, row[0])
    if row is None or user is None:
        return None
    return Session(user, _at(tx, row[1]), _at(tx, row[2]), tx.now)


def _stored(tx: Tx, name: str, sql: str = USER) -> User | None:
    row = one(tx.fetch(sql, name=name))
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
