"""A store on SQLite or PostgreSQL with two lanes, and a judge for what became of the jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.clocks import Clock
from tests.conftest import PgServer


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, pg_server: PgServer) -> Iterator[str]:
    """Return the URL of an empty store: a file, or a database of a server that everybody shares."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'penstock.db'}"
    else:
        with pg_server(18).database() as url:
            yield url


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    """Return a wall clock that a process can be given and that the test sets."""
    return Clock(tmp_path)
