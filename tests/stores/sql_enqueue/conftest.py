"""One migrated database of each kind for all of these tests: each makes lanes of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.conftest import PgServer
from tests.stores.places import Place
from tests.stores.sql_enqueue.door import Door, open_door

GetDoor = Callable[[str], Door]


@pytest.fixture(scope="session")
def doors(pg_server: PgServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GetDoor]:
    """Return `doors("pg15")`: made on first use, kept for the session."""
    made: dict[str, Door] = {}
    with ExitStack() as stack:

        def get(name: str) -> Door:
            if name not in made:
                if name == "sqlite":
                    place = Place(str(tmp_path_factory.mktemp("enqueue") / "penstock.db"))
                else:
                    server = pg_server(int(name.removeprefix("pg")))
                    place = Place(stack.enter_context(server.database()), server)
                made[name] = open_door(stack.enter_context(closing(place)))
                stack.callback(made[name].store.close)
            return made[name]

        yield get


@pytest.fixture(scope="session", params=["sqlite", "pg15", "pg18"])
def door(request: pytest.FixtureRequest, doors: GetDoor) -> Door:
    """The way in, on SQLite and on the oldest and the newest PostgreSQL."""
    return doors(request.param)


@pytest.fixture(scope="session", params=["pg15", "pg18"])
def pg(request: pytest.FixtureRequest, doors: GetDoor) -> Door:
    """The way in, for what only PostgreSQL has."""
    return doors(request.param)


@pytest.fixture(scope="session")
def sqlite(doors: GetDoor) -> Door:
    """The way in, for what only SQLite has."""
    return doors("sqlite")
