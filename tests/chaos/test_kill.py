"""R1: nodes are killed again and again while they work; the receiver's log and the store judge."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos.bench import Bench, bench
from tests.chaos.processes import soon
from tests.chaos.traffic import offers

NAMES = ("a", "b", "c")


async def kill_now_and_then(it: Bench, over: asyncio.Event) -> int:
    """Kill one of the nodes every 2 to 5 seconds and start another in its place."""
    kills = 0
    async with asyncio.TaskGroup() as tasks:
        while not await soon(over, 2 + 3 * it.rng.random()):
            alive = [name for name in NAMES if it.cluster.nodes[name].process.alive]
            if not alive:  # on a busy machine a start takes longer than this
                continue
            name = it.rng.choice(alive)
            it.cluster.nodes[name].process.kill()
            kills += 1
            tasks.create_task(it.cluster.start(name))
    return kills


async def run(
    it: Bench, *, groups: int, per_group: int, unordered: int, per_second: float, within: float
) -> None:
    await it.start(*NAMES)
    jobs = offers(it.rng, groups=groups, per_group=per_group, unordered=unordered)
    over = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        killer = tasks.create_task(kill_now_and_then(it, over))
        await it.producer().produce(jobs, per_second=per_second)
        over.set()
    await it.all_done(jobs, within=within)
    await it.cluster.stop()

    log = it.judge()

    assert killer.result() >= 2
    assert [line for line in log.deliveries if line.stale] == [], "a process that is gone sends nothing"
    assert it.cluster.troubles() == []


@pytest.mark.timeout(120)
async def test_nodes_killed_under_load_lose_nothing_and_keep_order(tmp_path: Path, store_url: str) -> None:
    """2,000 jobs in 100 groups and none, 3 nodes, lease 3 s; 5 % of the answers are errors."""
    async with bench(tmp_path, store_url, seed=1, listen=("--delay", "20ms", "--fail", "5%")) as it:
        await run(it, groups=100, per_group=15, unordered=500, per_second=150, within=60)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10))
async def test_nodes_killed_for_long(tmp_path: Path, store_url: str, seed: int) -> None:
    """20,000 jobs in 500 groups and none."""
    async with bench(tmp_path, store_url, seed=seed, listen=("--delay", "10ms", "--fail", "5%")) as it:
        await run(it, groups=500, per_group=30, unordered=5000, per_second=250, within=300)
