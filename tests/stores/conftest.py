"""One empty database of each dialect."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import PgServer
from tests.servers import Server
from tests.stores.places import Place


@pytest.fixture(params=["sqlite", "pg15", "pg18"])
def place(request: pytest.FixtureRequest, tmp_path: Path, pg_server: PgServer) -> Iterator[Place]:
    """An empty database: SQLite, then PostgreSQL, the oldest and the newest we support."""
    if request.param == "sqlite":
        with closing(Place(str(tmp_path / "penstock.db"))) as place:
            yield place
        return
    server = pg_server(int(request.param.removeprefix("pg")))
    with server.database() as url, closing(Place(url, server)) as place:
        yield place


@pytest.fixture
def postgres_place(postgres: Server) -> Iterator[Place]:
    """An empty database on PostgreSQL, for what SQLite does not have: users, schemas, settings."""
    with postgres.database() as url, closing(Place(url, postgres)) as place:
        yield place
