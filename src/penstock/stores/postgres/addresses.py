"""What libpq says of an address, without the password that it may take for a host, a port or a database.

libpq ends a password at the first @, and looks for none behind a /. What comes after it counts as something
else, which errors quote. So its words are passed on only where it reads the password that was meant.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from penstock.domain.masking import MISSPELLED, password_in, without_password

_MAY_HOLD_AT: Final = frozenset(
    {"application_name", "fallback_application_name", "options", "password", "user"}
)


@contextmanager
def discreet(url: str) -> Iterator[None]:
    """Let errors of connecting pass, in words that do not quote the password."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        wrong = wrong_in(url)
        if wrong is None:
            raise
        raise type(error)(wrong) from None


def wrong_in(url: str) -> str | None:
    """Return what keeps libpq from reading an address as it is meant; None = nothing."""
    try:
        read = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return _unreadable(url)
    return MISSPELLED if _misread(url, read) else None


def _unreadable(url: str) -> str:
    if "://" not in url:
        return "there are two slashes behind the scheme: write postgresql://user@host/database"
    try:
        conninfo_to_dict(without_password(url))
    except psycopg.ProgrammingError as error:
        return str(error).strip()
    return MISSPELLED


def _misread(url: str, read: Mapping[str, object]) -> bool:
    """Say whether the @ that ends the password was taken for a part of something else."""
    meant = password_in(url)
    if meant is None or read.get("password") == unquote(meant):
        return False
    return any("@" in str(value) for name, value in read.items() if name not in _MAY_HOLD_AT)
