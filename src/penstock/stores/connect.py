"""From a URL to a store. A driver is imported only when its database is asked for."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import unquote, urlsplit

from penstock.errors import InvalidSetting, StoreError
from penstock.ports.clock import SystemClock
from penstock.ports.store import Store

DEFAULT_URL: Final = "sqlite:///penstock.db"
_SQLITE: Final = "penstock.stores.sqlite"
_POSTGRES: Final = "penstock.stores.postgres"
_PACKAGES: Final[Mapping[str, str]] = {"sqlite": _SQLITE, "postgresql": _POSTGRES, "postgres": _POSTGRES}


def connect(url: str, *, clock: Callable[[], datetime] | None = None) -> Store:
    """Return the store of this URL; `clock` is what SQLite takes the time from, PostgreSQL has its own."""
    if package_of(url) == _SQLITE:
        from penstock.stores.sqlite.store import SqliteStore  # noqa: PLC0415

        return SqliteStore(_path(url), clock=clock or SystemClock().now)
    try:
        from penstock.stores.postgres.store import PostgresStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name not in {"psycopg", "psycopg_pool"}:
            raise
        raise StoreError(f"PostgreSQL needs {error.name}: pip install 'penstock[postgres]'") from error
    return PostgresStore(url)


def package_of(url: str) -> str:
    """Return the package of the URL's dialect, where its migrations are, or raise InvalidSetting."""
    # What is shown of a URL that is not understood is its scheme: the rest may hold a password.
    scheme = urlsplit(url).scheme
    if scheme not in _PACKAGES:
        shown = f'"{scheme}:" is no store' if scheme else "this is no URL"
        raise InvalidSetting("store", f"{shown}: write {DEFAULT_URL} or postgresql://user@host/database")
    package = _PACKAGES[scheme]
    if package == _SQLITE:
        _path(url)
    return package


def _path(url: str) -> str:
    """Return the file: `sqlite:///penstock.db` is relative, `sqlite:////var/lib/penstock.db` is not."""
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.query or parts.fragment or not path:
        raise InvalidSetting(
            "store",
            f"a SQLite file is written with three slashes, {DEFAULT_URL},"
            " or four when its path begins at the root, and nothing after it",
        )
    return path
