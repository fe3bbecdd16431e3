"""R8: targets that hang, drip, flood and hang up; others are served as if nothing were, in flat memory."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic

import pytest

from penstock.domain.lanes import lane
from tests.chaos.bench import Bench, bench
from tests.chaos.processes import Node, eventually
from tests.chaos.traffic import MAIL
from tests.sinks.hostile import (
    Hostile,
    Manners,
    bomb,
    dripping,
    endless_chunks,
    endless_headers,
    hostile,
    huge_body,
    reset_in_the_body,
    silent,
)

RATE = 60
WINDOW_S = 3
MANNERS: tuple[Manners, ...] = (
    silent,
    dripping,
    huge_body,
    endless_chunks,
    endless_headers,
    bomb,
    reset_in_the_body,
)
SERVERS = 2  # of each kind: a breaker that opens spares one of them only
MEGABYTE = 1024 * 1024


async def rate(it: Bench) -> float:
    """Return how many messages per second reach the well-behaved target, over some seconds."""
    began, before = monotonic(), it.listener.arrived()
    await eventually("a while", lambda: monotonic() - began >= WINDOW_S)
    return (it.listener.arrived() - before) / (monotonic() - began)


async def attack(it: Bench, stack: AsyncExitStack) -> list[Hostile]:
    """Give every hostile target a lot to do, in lanes of their own and in the lane of the good one."""
    servers = [
        (manners, await stack.enter_async_context(hostile(manners)))
        for manners in MANNERS
        for _ in range(SERVERS)
    ]
    for manners, server in servers:
        name = manners.__name__
        it.client.store.put_lane(
            lane(name, sink="http", timeout="2s", retry=["0s", "1s"], max_in_flight=20), actor="test"
        )
        it.client.enqueue_many({"lane": name, "payload": n, "target": server.url} for n in range(40))
    return [server for _, server in servers]


@pytest.mark.timeout(120)
async def test_hostile_targets_cost_others_nothing_and_no_memory(tmp_path: Path, store_url: str) -> None:
    """Measure how a good target is served, then again beside hostile ones."""
    async with bench(tmp_path, store_url, seed=9, rate=f"{RATE}/s") as it, AsyncExitStack() as stack:
        node: Node = await it.cluster.start("a")
        it.client.enqueue_many({"lane": MAIL, "payload": n} for n in range(30 * RATE))
        await eventually("more than the burst", lambda: it.listener.arrived() > 2 * RATE)
        usual = await rate(it)
        memory = node.process.most_memory

        servers = await attack(it, stack)
        await eventually("victims everywhere", lambda: all(server.victims for server in servers))
        under_attack = await rate(it)

        assert usual > 0.9 * RATE
        assert under_attack > 0.9 * usual
        assert node.process.most_memory < memory + 40 * MEGABYTE, "not for a moment"
        assert (node.metric("loop_delay_seconds_sum") / node.metric("loop_delay_seconds_count")) < 0.2
        await it.cluster.stop()
        assert it.cluster.troubles() == []
        await asyncio.to_thread(it.client.close)
