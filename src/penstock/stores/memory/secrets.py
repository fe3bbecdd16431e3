"""Keys that nodes share (`ports/secrets.py`) of the model."""

import json
from collections.abc import Callable
from datetime import datetime
from threading import RLock

from penstock.domain.job import Audit
from penstock.domain.secrets import FIRST, NAMES, new_secret
from penstock.errors import InvalidSetting, NotFound
from penstock.ports.secrets import Secret
from penstock.stores.memory.tables import Tables


class SecretsPart:
    """Keys; `MemoryStore` brings the rows, the lock, the clock and the source of randomness."""

    _tables: Tables
    _lock: RLock
    _entropy: Callable[[int], bytes]

    def now(self) -> datetime:
        """Return the clock's reading."""
        raise NotImplementedError

    def secrets(self, name: str) -> list[Secret]:
        """Return the keys of that name, the one that signs first."""
        with self._lock:
            newest_first = [secret for secret in reversed(self._tables.secrets) if secret.name == name]
            return sorted(newest_first, key=lambda secret: secret.retired_at is not None)

    def add_secret(self, name: str, kid: str, secret: str, *, actor: str, reason: str | None = None) -> None:
        """Add a key and retire the others."""
        with self._lock:
            now, keys = self.now(), self._tables.secrets
            if any((key.name, key.kid) == (name, kid) for key in keys):
                problem = f'there is a key "{kid}" of {name} already: choose another name for it'
                raise InvalidSetting("kid", problem)
            keys[:] = [
                key._replace(retired_at=key.retired_at or now) if key.name == name else key for key in keys
            ]
            keys.append(Secret(name, kid, secret, now))
            self._note("secret.add", name, kid, actor=actor, reason=reason)

    def show_secret(self, name: str, kid: str, *, actor: str, reason: str) -> Secret:
        """Return one key, and note who asked for it."""
        with self._lock:
            for key in self._tables.secrets:
                if (key.name, key.kid) == (name, kid):
                    self._note("secret.show", name, kid, actor=actor, reason=reason)
                    return key
        raise NotFound("key", f"{name}/{kid}")

    def _note(self, action: str, name: str, kid: str, *, actor: str, reason: str | None) -> None:
        said = json.dumps({"name": name, "kid": kid})
        self._tables.audit.append(Audit(self.now(), None, None, actor, action, None, said, reason))

    def make_secrets(self) -> None:
        """Make the keys that nobody has made yet."""
        with self._lock:
            known = {key.name for key in self._tables.secrets}
            for name in NAMES:
                if name not in known:
                    key = Secret(name, FIRST, new_secret(name, self._entropy), self.now())
                    self._tables.secrets.append(key)
