"""Connections that break in the middle of work lose nothing, and keep every group in order."""

import asyncio
from collections import Counter
from random import Random

import pytest

from penstock.ports.source import Source
from penstock.testing.source_suite.suite import AWAY, ZERO, in_order, message, number_of, settle
from tests.sources.beds import ActiveBed, Bed, RabbitBed, RedisBed, SqsBed

GROUPS, MESSAGES = 5, 60


async def work_through(source: Source, bed: Bed, rng: Random) -> list[int]:
    """Acknowledge every message at least once, while connections break again and again; say in which order.

    Some go back first, and an acknowledgement that was lost is not known to be: its message comes again.
    """
    done: list[int] = []
    cuts = set(rng.sample(range(1, MESSAGES), 6))
    async with asyncio.timeout(90):
        while len(set(done)) < MESSAGES:
            try:
                for one in await source.receive(1):
                    if cuts and len(set(done)) >= min(cuts):
                        cuts.remove(min(cuts))
                        bed.net.cut()
                    if rng.random() < 0.2:
                        await source.nack([one], delay=ZERO)
                    elif await source.extend([one]):
                        done.append(number_of(one.body))
                        await source.ack([one])
            except AWAY:
                await asyncio.sleep(0.02)
    assert not cuts
    return done


async def survives(bed: SqsBed | RedisBed | RabbitBed | ActiveBed) -> None:
    await bed.put(bed.queues[0], [message(n, f"g{n % GROUPS}") for n in range(MESSAGES)])
    source = await bed.open_brief()
    done = await work_through(source, bed, Random(7))  # noqa: S311
    async with asyncio.timeout(90):
        while await bed.left(bed.queues[0]):  # what was acknowledged in vain
            try:
                await source.ack(await source.receive(10))
            except AWAY:
                await asyncio.sleep(0.02)
    await source.close()
    await settle(bed, bed.queues[0], 0)

    assert set(Counter(done)) == set(range(MESSAGES))
    assert in_order(list(dict.fromkeys(done)), GROUPS)


async def test_redis(redis_bed: RedisBed) -> None:
    await survives(redis_bed)


async def test_rabbitmq(rabbit_bed: RabbitBed) -> None:
    await survives(rabbit_bed)


@pytest.mark.soak
async def test_sqs(fifo: SqsBed) -> None:
    await survives(fifo)


@pytest.mark.soak
async def test_activemq(active_bed: ActiveBed) -> None:
    await survives(active_bed)
