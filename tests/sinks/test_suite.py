"""Every sink of ours keeps the contract, with a real receiver at its other end."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.domain.ulid import Ulids
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.stores.connect import connect
from penstock.stores.memory import MemoryStore
from penstock.testing.receiver import receiver
from penstock.testing.sink_suite import SinkBed, SinkSuite
from tests.conftest import PgServer
from tests.sinks.beds import ConsoleBed, EmbeddedBed, HttpBed, PythonBed


class TestHttp(SinkSuite):
    @pytest.fixture
    async def bed(self, executor: ThreadExecutor) -> AsyncIterator[SinkBed]:
        bed = HttpBed(executor)
        async with receiver(answer=bed.decide) as bed.received:
            yield bed


class TestConsole(SinkSuite):
    @pytest.fixture
    def bed(self, executor: ThreadExecutor) -> SinkBed:
        return ConsoleBed(executor)


class TestPython(SinkSuite):
    @pytest.fixture
    async def bed(self) -> SinkBed:
        return PythonBed()


class TestEmbeddedInMemory(SinkSuite):
    @pytest.fixture
    def bed(self, executor: ThreadExecutor) -> SinkBed:
        ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
        return EmbeddedBed(MemoryStore(clock=lambda: datetime.now(UTC), ids=ids), executor)


class TestEmbeddedOnSqlite(SinkSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = connect(f"sqlite:///{tmp_path / 'penstock.db'}")
        store.migrate()
        yield store
        store.close()

    @pytest.fixture(params=["pointer", "full"])
    def bed(self, request: pytest.FixtureRequest, store: Store, executor: ThreadExecutor) -> SinkBed:
        return EmbeddedBed(store, executor, format=request.param)


class TestEmbeddedOnPostgres(SinkSuite):
    @pytest.fixture(scope="class", params=[15, 18], ids=["pg15", "pg18"])
    @classmethod
    def store(cls, request: pytest.FixtureRequest, pg_server: PgServer) -> Iterator[Store]:
        with pg_server(request.param).database() as url, closing(connect(url)) as store:
            store.migrate()
            yield store

    @pytest.fixture
    def bed(self, store: Store, executor: ThreadExecutor) -> SinkBed:
        return EmbeddedBed(store, executor, format="full")
