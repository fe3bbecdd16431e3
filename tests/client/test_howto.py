"""The how-to's examples run as they are printed, on real servers: committed, and undone half way."""

import re
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock import Client
from tests.client.callers import django_default, path

PAGE = Path(__file__).parents[2] / "docs/howto/enqueue-in-your-transaction.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
HERE = "# an error here undoes both; the end of the block commits both"
WORDS = ("AsyncConnection", "asyncpg.connect", "AsyncSession", "Session", "engine", "django", "sqlite3")


class UndoneError(Exception):
    """What goes wrong half way."""


@pytest.fixture(params=BLOCKS, ids=lambda code: next((word for word in WORDS if word in code), "psycopg"))
def block(request: pytest.FixtureRequest) -> str:
    code: str = request.param
    return code


@pytest.fixture
def url(block: str, request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue("sqlite_url" if "sqlite3" in block else "pg_url")
    return found


def run(code: str, url: str) -> None:
    """Run a block at real addresses; close what a program leaves to its end."""
    names: dict[str, Any] = {"UndoneError": UndoneError}
    code = code.replace("sqlite:///shop.db", url).replace('"shop.db"', repr(path(url)))
    code = code.replace("://shop@localhost/shop", url.removeprefix("postgresql"))
    with django_default(url) if "django" in code else nullcontext():
        try:
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - that is the test
        finally:
            for name, close in (("client", "close"), ("connection", "close"), ("engine", "dispose")):
                if name in names:
                    getattr(names[name], close)()


def seen(url: str) -> tuple[int, int]:
    """Return how many rows of the shop's own and how many jobs there are."""
    opened: Any = sqlite3.connect(path(url)) if url.startswith("sqlite") else psycopg.connect(url)
    with closing(opened) as connection, Client(url) as client:
        rows: int = connection.execute("SELECT count(*) FROM shop").fetchone()[0]
        return rows, sum(client.counts().values())


def test_committed_both_are_there(block: str, url: str) -> None:
    run(block, url)

    assert seen(url) == (1, 1)


def test_undone_neither_was(block: str, url: str) -> None:
    assert HERE in block

    with pytest.raises(UndoneError):
        run(block.replace(HERE, "raise UndoneError"), url)

    assert seen(url) == (0, 0)
