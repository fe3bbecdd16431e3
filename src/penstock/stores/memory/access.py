"""API keys, users and sessions (`ports/access.py`) of the model."""

import json
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from threading import RLock
from types import EllipsisType

from penstock.domain.access import Scope, check_granted, spelled
from penstock.domain.job import Audit
from penstock.errors import InvalidSetting, NotFound
from penstock.ports.access import ApiKey, KnownKey, NewKey, Session, User, known_user
from penstock.stores.memory.tables import Tables


class AccessPart:
    """Who may come in; `MemoryStore` brings the rows, the lock and the clock."""

    _tables: Tables
    _lock: RLock

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    # -- keys
    def add_key(self, key: NewKey, *, actor: str) -> ApiKey:
        """Keep a new key."""
        with self._lock:
            keys, now = self._tables.api_keys, self.now()
            if any(one.name == key.name and one.revoked_at is None for one in keys.values()):
                problem = f'there is a key "{key.name}" already: choose another name, or revoke it first'
                raise InvalidSetting("name", problem)
            expires_at = None if key.lasts is None else now + key.lasts
            made = ApiKey(key.id, key.name, key.scopes, key.tenant, now, actor, expires_at)
            keys[key.hash] = made
            said = {"id": key.id, "name": key.name, "scopes": spelled(key.scopes), "tenant": key.tenant}
            self._noted("access.create", actor, None, said)
            return made

    def api_keys(self) -> list[ApiKey]:
        """Return every key, the newest first."""
        with self._lock:
            keys = sorted(self._tables.api_keys.values(), key=lambda key: key.id)
            newest = sorted(keys, key=lambda key: key.created_at, reverse=True)
            shown = sorted(newest, key=lambda key: key.revoked_at is not None)[:1000]
            return [key for key in newest if key in shown]

    def known_key(self, hash: str) -> KnownKey | None:  # noqa: A002
        """Return the key of that hash."""
        with self._lock:
            found = self._tables.api_keys.get(hash)
            return None if found is None else KnownKey(found, self.now())

    def revoke_key(self, name: str, *, actor: str, reason: str) -> ApiKey:
        """Let a key open nothing from now on."""
        with self._lock:
            for hash_, key in self._tables.api_keys.items():
                if name in (key.name, key.id) and key.revoked_at is None:
                    self._tables.api_keys[hash_] = key._replace(revoked_at=self.now())
                    self._noted("access.revoke", actor, {"id": key.id, "name": key.name}, None, reason)
                    return self._tables.api_keys[hash_]
        raise NotFound("API key", name)

    def key_used(self, id: str) -> None:  # noqa: A002
        """Note that a key was used."""
        with self._lock:
            keys = self._tables.api_keys
            keys |= {h: key._replace(used_at=self.now()) for h, key in keys.items() if key.id == id}

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
        with self._lock:
            stored = self._tables.users.get(name)
            if stored is not None and new:
                raise known_user(name)
            if stored is None and (password is None or scopes is None):
                raise NotFound("user", name)
            was = stored or User(name, "", frozenset(), None, self.now())
            made = was.changed(password=password, scopes=scopes, tenant=tenant)
            check_granted(made.scopes, of, actor)
            self._tables.users[name] = made
            self._end_sessions(name)
            before = stored and {"name": name, "scopes": spelled(stored.scopes), "tenant": stored.tenant}
            after = {"name": name, "scopes": spelled(made.scopes), "tenant": made.tenant}
            after |= {"password": "changed"} if password else {}
            self._noted("user.change" if stored else "user.add", actor, before, after)
            return made

    def users(self) -> list[User]:
        """Return every user by name."""
        with self._lock:
            return [self._tables.users[name] for name in sorted(self._tables.users)]

    def user(self, name: str) -> User | None:
        """Return one user."""
        with self._lock:
            return self._tables.users.get(name)

    def remove_user(self, name: str, *, actor: str, reason: str) -> None:
        """Remove a user and end his sessions."""
        with self._lock:
            if self._tables.users.pop(name, None) is None:
                raise NotFound("user", name)
            self._end_sessions(name)
            self._noted("user.remove", actor, {"name": name}, None, reason)

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
        with self._lock:
            known = self._tables.users.get(user)
            if known is None or known.password != password:
                return False
            now, sessions = self.now(), self._tables.sessions
            for old in [h for h, (_, created_at, _) in sessions.items() if created_at < now - most]:
                del sessions[old]
            sessions[hash] = (user, now, now)
            self._tables.users[user] = known._replace(seen_at=now, password=anew or password)
            self._noted("user.login", f"user:{user}", None, {"name": user})
            return True

    def session(self, hash: str) -> Session | None:  # noqa: A002
        """Return a session and its user."""
        with self._lock:
            if hash not in self._tables.sessions:
                return None
            name, created_at, seen_at = self._tables.sessions[hash]
            user = self._tables.users.get(name)
            return None if user is None else Session(user, created_at, seen_at, self.now())

    def session_used(self, hash: str) -> None:  # noqa: A002
        """Note that a session was used."""
        with self._lock:
            if hash in self._tables.sessions:
                name, created_at, _ = self._tables.sessions[hash]
                self._tables.sessions[hash] = (name, created_at, self.now())

    def close_session(self, hash: str) -> None:  # noqa: A002
        """End a session."""
        with self._lock:
            self._tables.sessions.pop(hash, None)

    def _end_sessions(self, name: str) -> None:
        for ended in [h for h, (user, _, _) in self._tables.sessions.items() if user == name]:
            del self._tables.sessions[ended]

    def _noted(
        self,
        action: str,
        actor: str,
        before: dict[str, str | None] | None,
        after: dict[str, str | None] | None,
        reason: str | None = None,
    ) -> None:
        was, becomes = (None if said is None else json.dumps(said) for said in (before, after))
        self._tables.audit.append(Audit(self.now(), None, None, actor, action, was, becomes, reason))
