"""Keys that nodes share through the store: made by the first migration, rotated by operators."""

from datetime import datetime
from typing import NamedTuple, Protocol


class Secret(NamedTuple):
    """One key; a retired one still verifies but no longer signs."""

    name: str
    kid: str
    secret: str
    created_at: datetime
    retired_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Secret({self.name!r}, {self.kid!r}, '***')"


class Secrets(Protocol):
    """Keys by name: `webhook` signs deliveries, `token` signs pointers to jobs."""

    def secrets(self, name: str) -> list[Secret]:
        """Return the keys of that name, the one that signs first."""

    def add_secret(self, name: str, kid: str, secret: str, *, actor: str, reason: str | None = None) -> None:
        """Add a key, which signs from now on, and retire the others; audited, without the key."""

    def show_secret(self, name: str, kid: str, *, actor: str, reason: str) -> Secret:
        """Return one key to be read by a person; audited, without the key. Raise NotFound."""
