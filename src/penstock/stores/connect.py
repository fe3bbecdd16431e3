"""From a URL to a store. A driver is imported only when its database is asked for."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, cast
from urllib.parse import SplitResult, unquote, urlsplit

from penstock.errors import InvalidSetting, StoreError, StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.ports.store import Store

DEFAULT_URL: Final = "sqlite:///penstock.db"
_SQLITE: Final = "penstock.stores.sqlite"
_POSTGRES: Final = "penstock.stores.postgres"
_PACKAGES: Final[Mapping[str, str]] = {"sqlite": _SQLITE, "postgresql": _POSTGRES, "postgres": _POSTGRES}


def connect(url: str, *, clock: Callable[[], datetime] | None = None, key: str | None = None) -> Store:
    """Return the store of this URL; `clock` is what SQLite takes the time from, PostgreSQL has its own.

    The address of a node's API is one, too, for what people do with a store; `key` is an API key.
    """
    if is_api(url):
        from penstock.stores.remote.store import RemoteStore  # noqa: PLC0415

        return cast("Store", RemoteStore(url, key=key, clock=clock or SystemClock().now))
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


def opened(given: str | Store | None, *, clock: Callable[[], datetime], key: str | None = None) -> Store:
    """Return the store that a client works on, with the tables of this version; a store is itself."""
    if given and not isinstance(given, str) and hasattr(given, "check_schema"):
        return given
    if not given or not isinstance(given, str):
        raise InvalidSetting("store", "give the database: sqlite:///penstock.db or postgresql://user@host/db")
    reach(given)
    store = connect(given, clock=clock, key=key)
    try:
        store.check_schema()
    except BaseException:
        store.close()
        raise
    return store


def is_api(url: str) -> bool:
    """Say whether this is the address of an API."""
    return _parts(url).scheme in {"http", "https"}


def open_queues(url: str) -> Store:
    """Return queues in a SQLite file of their own, made on first use: a store of which only they are used."""
    queues_file(url)
    store = connect(url)
    store.migrate()
    return store


def queues_file(url: str) -> str:
    """Return the file of queues of their own, or raise InvalidSetting."""
    try:
        file = file_of(url)
    except InvalidSetting:
        file = None
    if file is None:
        raise InvalidSetting("url", "queues of their own are a SQLite file: write sqlite:///queues.db")
    return file


def package_of(url: str) -> str:
    """Return the package of the URL's dialect, where its migrations are, or raise InvalidSetting."""
    # What is shown of a URL that is not understood is its scheme: the rest may hold a password.
    scheme = _parts(url).scheme
    if scheme not in _PACKAGES:
        shown = f'"{scheme}:" is no store' if scheme else "this is no URL"
        raise InvalidSetting("store", f"{shown}: write {DEFAULT_URL} or postgresql://user@host/database")
    package = _PACKAGES[scheme]
    if package == _SQLITE:
        _path(url)
    return package


def reach(url: str, *, seconds: int = 5) -> None:
    """Raise StoreUnavailable at once, in the server's own words, if there is nothing to connect to.

    A pool would go on trying, which is right for a node and tiresome for a person. A SQLite file that does
    not exist counts as nothing: looking for jobs must not leave an empty database behind.
    """
    if is_api(url):
        return
    file = file_of(url)
    if file is not None:
        if not Path(file).exists():
            raise StoreUnavailable(f"open (there is no database {file} yet: run penstock migrate)")
        if not os.access(Path(file).absolute().parent, os.W_OK):
            raise StoreUnavailable(
                f"open (the folder of {file} is read-only, and SQLite writes beside its file:"
                " make it writable for this user, or move the database)"
            )
        return
    try:
        import psycopg  # noqa: PLC0415
    except ModuleNotFoundError:
        return  # connect() says what to install
    from penstock.stores.postgres.addresses import discreet  # noqa: PLC0415

    try:
        with discreet(url):
            psycopg.connect(url, connect_timeout=seconds).close()
    except psycopg.ProgrammingError as error:
        raise InvalidSetting("store", f"is no address of a PostgreSQL database: {error}") from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(
            f"connect ({str(error).strip()}); see that the server runs and that the address is right"
        ) from error


def dialect_of(url: str) -> Literal["sqlite", "postgresql"] | None:
    """Return what kind of database a URL leads to, or raise InvalidSetting; None = an API."""
    if is_api(url):
        return None
    return "sqlite" if package_of(url) == _SQLITE else "postgresql"


def file_of(url: str) -> str | None:
    """Return the file of a SQLite URL; None when the store is a server."""
    return _path(url) if package_of(url) == _SQLITE else None


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # a bracket that is not closed, say; what it quotes may hold a password
        raise InvalidSetting(
            "store", f"this is no URL: write {DEFAULT_URL} or postgresql://user@host/database"
        ) from None


def _path(url: str) -> str:
    """Return the file: `sqlite:///penstock.db` is relative, `sqlite:////var/lib/penstock.db` is not."""
    parts = _parts(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.query or parts.fragment or not path:
        raise InvalidSetting(
            "store",
            f"a SQLite file is written with three slashes, {DEFAULT_URL},"
            " or four when its path begins at the root, and nothing after it",
        )
    return path
