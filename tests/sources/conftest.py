"""Beds of every kind, on real servers."""

from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

import pytest

from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.stores.connect import connect
from tests.brokers import ActiveMq, RabbitMq, Redis, Sqs
from tests.sinks.network import network
from tests.sources.beds import ActiveBed, Bed, RabbitBed, RedisBed, SqsBed

AnyBed = TypeVar("AnyBed", bound=Bed)


@pytest.fixture
def executor() -> Iterator[ThreadExecutor]:
    with ThreadExecutor(4, name="test") as threads:
        yield threads


@pytest.fixture
def store(migrated_sqlite: str) -> Iterator[Store]:
    store = connect(migrated_sqlite)
    yield store
    store.close()


async def made(bed: AnyBed) -> AsyncIterator[AnyBed]:
    await bed.ready()
    yield bed
    await bed.close()


@pytest.fixture
async def fifo(sqs_server: Sqs, executor: ThreadExecutor) -> AsyncIterator[SqsBed]:
    async with network(sqs_server.port) as net:
        async for bed in made(SqsBed(sqs_server, net, executor, fifo=True)):
            yield bed


@pytest.fixture
async def standard(sqs_server: Sqs, executor: ThreadExecutor) -> AsyncIterator[SqsBed]:
    async with network(sqs_server.port) as net:
        async for bed in made(SqsBed(sqs_server, net, executor, fifo=False)):
            yield bed


@pytest.fixture
async def redis_bed(redis_server: Redis, executor: ThreadExecutor) -> AsyncIterator[RedisBed]:
    async with network(redis_server.port) as net:
        async for bed in made(RedisBed(redis_server, net, executor)):
            yield bed


@pytest.fixture
async def rabbit_bed(rabbitmq_server: RabbitMq, executor: ThreadExecutor) -> AsyncIterator[RabbitBed]:
    async with network(rabbitmq_server.port) as net:
        async for bed in made(RabbitBed(rabbitmq_server, net, executor)):
            yield bed


@pytest.fixture
async def active_bed(activemq_server: ActiveMq, executor: ThreadExecutor) -> AsyncIterator[ActiveBed]:
    async with network(activemq_server.port) as net:
        async for bed in made(ActiveBed(activemq_server, net, executor)):
            yield bed
