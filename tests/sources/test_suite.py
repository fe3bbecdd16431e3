"""Every source of ours passes the suite on the real thing."""

import pytest

from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.testing.source_suite import SourceBed, SourceSuite
from tests.sources.beds import ActiveBed, EmbeddedBed, PostedBed, RabbitBed, RedisBed, SqsBed


class TestEmbedded(SourceSuite):
    @pytest.fixture
    def bed(self, store: Store, executor: ThreadExecutor) -> SourceBed:
        return EmbeddedBed(store, executor)


@pytest.mark.soak
class TestPosted(SourceSuite):
    @pytest.fixture
    async def bed(self, executor: ThreadExecutor) -> SourceBed:
        return PostedBed(executor)

    async def test_every_queue_has_its_turn(self, bed: SourceBed) -> None:
        """There is one."""


class TestSqsFifo(SourceSuite):
    @pytest.fixture
    def bed(self, fifo: SqsBed) -> SourceBed:
        return fifo


@pytest.mark.soak
class TestSqsStandard(SourceSuite):
    @pytest.fixture
    def bed(self, standard: SqsBed) -> SourceBed:
        return standard


class TestRedis(SourceSuite):
    @pytest.fixture
    def bed(self, redis_bed: RedisBed) -> SourceBed:
        return redis_bed


class TestRabbitMq(SourceSuite):
    @pytest.fixture
    def bed(self, rabbit_bed: RabbitBed) -> SourceBed:
        return rabbit_bed


@pytest.mark.soak
class TestActiveMq(SourceSuite):
    @pytest.fixture
    def bed(self, active_bed: ActiveBed) -> SourceBed:
        return active_bed
