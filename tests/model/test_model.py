"""Memory, SQLite and PostgreSQL are one store: whatever is done to them, nobody can tell them apart."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.ports.store import Store
from penstock.stores.memory import MemoryStore
from penstock.stores.postgres import statements
from penstock.stores.postgres.hints import Hints
from penstock.stores.postgres.hotpath import PostgresHotPath
from penstock.stores.postgres.store import PostgresStore
from penstock.stores.sqlite.hotpath import SqliteHotPath
from penstock.stores.sqlite.store import SqliteStore
from tests.conftest import PgServer
from tests.model.databases import empty, quick, restarted
from tests.model.machine import LANES, StoreMachine
from tests.servers import Server


class Profile(NamedTuple):
    """How much is played, and after how many calls everything is looked at."""

    examples: int
    steps: int
    look_every: int


# The first fits half a minute of `make test` on two cores; HYPOTHESIS_PROFILE=soak plays the other by hand.
PROFILES = {"default": Profile(100, 40, look_every=3), "soak": Profile(5_000, 60, look_every=1)}
ANY_LOAD = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
OpenStores = Callable[[], Mapping[str, Store]]


def never() -> str:
    raise AssertionError("every job of the model brings its id")


@contextmanager
def three_stores(server: Server) -> Iterator[OpenStores]:
    """Give a function that empties the stores; databases are made once, that is what takes long."""
    with (
        server.database() as url,
        closing(SqliteStore(":memory:", ids=never)) as sqlite,
        closing(PostgresStore(quick(server, url), ids=never, max_connections=1)) as postgres,
    ):
        for store in (sqlite, postgres):
            store.migrate()
            put_lanes(store)

        def open_stores() -> dict[str, Store]:
            memory = MemoryStore(lambda: datetime.now(UTC), never)
            put_lanes(memory)
            empty(sqlite)
            empty(postgres)
            return {
                "memory": memory,
                "sqlite": restarted(sqlite, SqliteHotPath()),
                "postgres": restarted(postgres, patient(PostgresHotPath())),
            }

        yield open_stores


def put_lanes(store: Store) -> None:
    for lane in LANES:
        store.put_lane(lane, actor="model")


def patient(hot: PostgresHotPath) -> PostgresHotPath:
    """Never find a look expensive: on a busy machine a claim would look at less than there is."""
    hot._due, hot._wakes = Hints(lambda: 0.0, statements.EVER), Hints(lambda: 0.0, 0)
    return hot


def play(server: Server, profile: Profile) -> None:
    with three_stores(server) as open_stores:
        run_state_machine_as_test(
            lambda: StoreMachine(open_stores, look_every=profile.look_every),
            settings=settings(
                max_examples=profile.examples,
                stateful_step_count=profile.steps,
                deadline=None,
                suppress_health_check=ANY_LOAD,
                print_blob=True,
            ),
        )


@pytest.mark.timeout(900)  # what fails is made small first, and that takes minutes
def test_nobody_can_tell_the_stores_apart(pg_server: PgServer) -> None:
    play(pg_server(18), PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "default")])


@pytest.mark.soak
@pytest.mark.parametrize("version", [15, 18])
def test_nobody_can_tell_the_stores_apart_for_long(version: int, pg_server: PgServer) -> None:
    play(pg_server(version), PROFILES["soak"])
