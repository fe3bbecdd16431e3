"""R12: told to stop in the middle of work, once and twice: nothing stays claimed, the rest goes on later."""

import signal
from pathlib import Path
from time import monotonic

import pytest

from tests.chaos.bench import Bench, bench
from tests.chaos.processes import Node, eventually
from tests.chaos.traffic import Producer, offers

GRACE_S = 3


async def at_work(it: Bench, node: Node) -> int:
    """Have a node with much to do: half of it due, half soon. Return how many jobs there are."""
    jobs = offers(it.rng, groups=40, per_group=8, unordered=200, ahead=4)
    producer: Producer = it.producer(over_api=0.0)
    await producer.produce(jobs, per_second=100_000, batch=200)
    await eventually("calls in the air", lambda: it.listener.arrived() > 50)
    return len(jobs)


def claimed(it: Bench) -> int:
    return sum(n for (_, state), n in it.client.counts().items() if state.label == "claimed")


async def judge_after_restart(it: Bench) -> None:
    await it.cluster.start("b")
    await it.all_done(within=45)
    await it.cluster.stop()
    it.judge()
    assert it.cluster.troubles() == []


@pytest.mark.timeout(120)
async def test_told_once_a_node_finishes_what_it_sends_and_gives_back_the_rest(
    tmp_path: Path, store_url: str
) -> None:
    async with bench(tmp_path, store_url, seed=12, listen=("--delay", "300ms"), max_in_flight=50) as it:
        node = await it.cluster.start("a", "--drain-timeout", f"{GRACE_S}s")
        jobs = await at_work(it, node)

        began = monotonic()
        node.process.signal(signal.SIGTERM)
        assert await node.process.ended(within=GRACE_S + 5) == 0, node.process.told

        assert monotonic() - began < GRACE_S + 2
        assert claimed(it) == 0
        assert sum(it.live().values()) > 0, "there was more to do than one grace period allows"
        ended = sum(n for (_, state), n in it.client.counts().items() if state.label == "succeeded")
        assert ended == it.listener.arrived() < jobs, "what was sent was waited for"
        await judge_after_restart(it)


async def test_told_twice_a_node_ends_at_once_and_leaves_nothing_claimed(
    tmp_path: Path, store_url: str
) -> None:
    async with bench(tmp_path, store_url, seed=13, listen=("--delay", "8s"), max_in_flight=50) as it:
        node = await it.cluster.start("a")
        await at_work(it, node)

        began = monotonic()
        node.process.signal(signal.SIGTERM)
        await eventually("the first was heard", lambda: "stopping" in node.process.told)
        node.process.signal(signal.SIGTERM)
        assert await node.process.ended(within=10) == 0, node.process.told

        assert monotonic() - began < 5, "calls in the air are not waited for"
        assert claimed(it) == 0
