"""Fixtures for everybody: real servers, and a fresh database for every test that asks for one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from shutil import copyfile
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from penstock.stores.connect import connect
from tests.brokers import ActiveMq, Broker, Kafka, RabbitMq, Redis, Sqs
from tests.servers import Server, ServerUnavailableError, missing, running_server
from tests.sim.seeds import header

PgServer = Callable[[int], Server]
Migrated = Callable[[int], AbstractContextManager[str]]
AnyBroker = TypeVar("AnyBroker", bound=Broker)

# How long an example takes says how busy the machine is, nothing of what is tested.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_report_header() -> str:
    """Say which seeds the simulation runs; whoever starts the workers says it once, for all of them."""
    return header()


@pytest.fixture(scope="session")
def pg_server() -> Iterator[PgServer]:
    """Return `pg_server(15)`, `pg_server(18)`: started on first use, shared by the session."""
    running: dict[int, Server] = {}
    with ExitStack() as stack:

        def get(version: int) -> Server:
            if version not in running:
                try:
                    running[version] = stack.enter_context(running_server(version, in_memory=True))
                except ServerUnavailableError as error:
                    missing(str(error))
            return running[version]

        yield get


@pytest.fixture(params=[15, 18], ids=["pg15", "pg18"])
def postgres(request: pytest.FixtureRequest, pg_server: PgServer) -> Server:
    """The test runs once per PostgreSQL version: the oldest and the newest that we support."""
    return pg_server(request.param)


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """Return the URL of a fresh, empty database, on each PostgreSQL version in turn."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def pg15_dsn(pg_server: PgServer) -> Iterator[str]:
    """Return the URL of a fresh, empty database on PostgreSQL 15."""
    with pg_server(15).database() as url:
        yield url


@pytest.fixture
def pg18_dsn(pg_server: PgServer) -> Iterator[str]:
    """Return the URL of a fresh, empty database on PostgreSQL 18."""
    with pg_server(18).database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(pg_server: PgServer) -> Iterator[Migrated]:
    """Return `migrated_postgres(18)`: one's own database with Penstock's tables, copied, which is quick."""
    made: dict[int, str] = {}
    with ExitStack() as stack:

        def get(version: int) -> AbstractContextManager[str]:
            server = pg_server(version)
            if version not in made:
                url = stack.enter_context(server.database())
                with closing(connect(url)) as store:
                    store.migrate()
                made[version] = url.rpartition("/")[2]
            return server.database(template=made[version])

        yield get


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an SQLite file with Penstock's tables, to be copied."""
    file = tmp_path_factory.mktemp("migrated") / "penstock.db"
    with closing(connect(f"sqlite:///{file}")) as store:
        store.migrate()
    return file


@pytest.fixture
def migrated_sqlite(tmp_path: Path, migrated_file: Path) -> str:
    """Return the URL of an SQLite file of the test's own with Penstock's tables."""
    return f"sqlite:///{copyfile(migrated_file, tmp_path / 'penstock.db')}"


@pytest.fixture(scope="session")
def sqs_server() -> Iterator[Sqs]:
    """Amazon SQS, shared by the session: make queues of your own."""
    yield from running(Sqs)


@pytest.fixture(scope="session")
def kafka_broker() -> Kafka:
    """Kafka, shared by the session: use topics of your own."""
    try:
        return Kafka()
    except ServerUnavailableError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """Redis, shared by the session: use keys of your own."""
    yield from running(Redis)


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMq]:
    """RabbitMQ, shared by the session: make queues of your own."""
    yield from running(RabbitMq)


@pytest.fixture(scope="session")
def activemq_server() -> Iterator[ActiveMq]:
    """ActiveMQ, shared by the session: use queues of your own."""
    yield from running(ActiveMq)


def running(kind: type[AnyBroker]) -> Iterator[AnyBroker]:
    """Give a started broker, or skip the test with the reason."""
    try:
        kind.check()
    except ServerUnavailableError as error:
        missing(str(error))
    with kind.running() as broker:
        yield broker
