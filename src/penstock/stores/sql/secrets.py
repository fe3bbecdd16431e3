"""Keys that nodes share (`ports/secrets.py`) in a SQL database."""

import json
from collections.abc import Callable
from typing import Final

from penstock.domain.job import Audit
from penstock.domain.secrets import FIRST, NAMES, new_secret
from penstock.errors import InvalidSetting, NotFound
from penstock.ports.secrets import Secret
from penstock.stores.sql.database import Database, Row, Tx
from penstock.stores.sql.rows import AUDIT_COLUMNS

ALL: Final = "SELECT name, kid, secret, created_at, retired_at FROM penstock.secrets WHERE name = :name"
NAMED: Final = "SELECT DISTINCT name FROM penstock.secrets"
# Taken in a statement of its own, so that of two that rotate the second retires the first one's key.
LOCK: Final = "SELECT kid FROM penstock.secrets WHERE name = :name ORDER BY kid FOR UPDATE"
ADD: Final = """
    INSERT INTO penstock.secrets (name, kid, secret, created_at) VALUES (:name, :kid, :secret, now())
        ON CONFLICT (name, kid) DO NOTHING"""
RETIRE: Final = """
    UPDATE penstock.secrets SET retired_at = now()
     WHERE name = :name AND kid <> :kid AND retired_at IS NULL"""


class SecretsPart:
    """Keys; `SqlStore` brings the database and the source of randomness."""

    __slots__ = ()
    db: Database
    entropy: Callable[[int], bytes]

    def secrets(self, name: str) -> list[Secret]:
        """Return the keys of that name, the one that signs first."""
        rows = self.db.read(lambda tx: [_secret(tx, row) for row in tx.fetch(ALL, name=name)])
        rows.sort(key=lambda secret: (secret.created_at, secret.kid), reverse=True)
        return sorted(rows, key=lambda secret: secret.retired_at is not None)

    def add_secret(self, name: str, kid: str, secret: str, *, actor: str, reason: str | None = None) -> None:
        """Add a key and retire the others."""
        self.db.write(lambda tx: _add(tx, name, kid, secret, actor=actor, reason=reason))

    def show_secret(self, name: str, kid: str, *, actor: str, reason: str) -> Secret:
        """Return one key, and note who asked for it."""
        return self.db.write(lambda tx: _show(tx, name, kid, actor=actor, reason=reason))

    def make_secrets(self) -> None:
        """Make the keys that nobody has made yet."""
        missing = self.db.read(lambda tx: set(NAMES) - {row[0] for row in tx.fetch(NAMED)})
        keys = {name: new_secret(name, self.entropy) for name in sorted(missing)}
        if keys:
            self.db.write(lambda tx: [tx.execute(ADD, name=n, kid=FIRST, secret=s) for n, s in keys.items()])


def _secret(tx: Tx, row: Row) -> Secret:
    name, kid, secret, created_at, retired_at = row
    at = tx.time(created_at)
    assert at is not None  # noqa: S101
    return Secret(name, kid, secret, at, tx.time(retired_at))


def _add(tx: Tx, name: str, kid: str, secret: str, *, actor: str, reason: str | None) -> None:
    tx.fetch(LOCK, name=name)
    if not tx.execute(ADD, name=name, kid=kid, secret=secret):
        raise InvalidSetting("kid", f'there is a key "{kid}" of {name} already: choose another name for it')
    tx.execute(RETIRE, name=name, kid=kid)
    _note(tx, "secret.add", name, kid, actor=actor, reason=reason)


def _show(tx: Tx, name: str, kid: str, *, actor: str, reason: str) -> Secret:
    for secret in (_secret(tx, row) for row in tx.fetch(ALL, name=name)):
        if secret.kid == kid:
            _note(tx, "secret.show", name, kid, actor=actor, reason=reason)
            return secret
    raise NotFound("key", f"{name}/{kid}")


def _note(tx: Tx, action: str, name: str, kid: str, *, actor: str, reason: str | None) -> None:
    said = json.dumps({"name": name, "kid": kid})
    tx.insert("audit", AUDIT_COLUMNS, [Audit(tx.now, None, None, actor, action, None, said, reason)])
