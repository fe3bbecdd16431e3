"""Job, broker, router, processing endpoint, webhook, each a process of its own, on real brokers."""

import asyncio
import re
import urllib.request
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.client import Client
from penstock.ports.executor import ThreadExecutor
from penstock.stores.connect import connect
from penstock.testing.receiver import Answer, Request, receiver
from penstock.wire import timeline_object
from tests.brokers import Redis
from tests.chaos.processes import eventually
from tests.delivery.bench import Bench, ended
from tests.sinks.network import Network
from tests.sources.beds import ActiveBed, Bed, RabbitBed, RedisBed, SqsBed

KEYS = 'access_key = "test"\nsecret_key = "test"\nregion = "eu-central-1"\n'


@dataclass(slots=True)
class Line:
    """Where the jobs of the lane `orders` go: a queue of a broker, and what `[sinks.own]` says of it."""

    bed: Bed
    settings: str

    @property
    def queue(self) -> str:
        return self.bed.queues[0]

    async def is_empty(self) -> bool:
        return await self.bed.left(self.queue) == 0  # type: ignore[attr-defined,no-any-return]


def line_on(kind: str, request: pytest.FixtureRequest, executor: ThreadExecutor) -> Line:
    server = request.getfixturevalue(f"{kind}_server")
    said = f'[sinks.own]\nkind = "{kind}"\nurl = "{server.url}"\nvisibility = "3s"\n'
    net = Network(server.port)
    match kind:
        case "sqs":
            return Line(SqsBed(server, net, executor, fifo=True), said + KEYS)
        case "redis":
            return Line(RedisBed(server, net, executor), said)
        case "rabbitmq":
            return Line(RabbitBed(server, net, executor), said)
        case _:
            return Line(ActiveBed(server, net, executor), said)


SLOW = [pytest.param(kind, marks=pytest.mark.soak) for kind in ("redis", "activemq")]


@pytest.fixture(params=["sqs", "rabbitmq", *SLOW])
async def line(request: pytest.FixtureRequest, executor: ThreadExecutor) -> AsyncIterator[Line]:
    line = line_on(request.param, request, executor)
    await line.bed.ready()
    yield line
    await line.bed.close()


@pytest.fixture
async def bench(line: Line, tmp_path: Path) -> AsyncIterator[Bench]:
    (tmp_path / "penstock.toml").write_text(line.settings)
    url = f"sqlite:///{tmp_path}/penstock.db"
    with closing(connect(url)) as store:
        store.migrate()
        yield Bench(url, Client(store), tmp_path)


def routed(url: str, fate: str) -> int:
    """Return how many messages a router was done with in this way."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:  # noqa: S310 - it is ours
        text = answer.read().decode()
    found = re.findall(rf'penstock_routed_total{{fate="{fate}",.*source="own"}} ([0-9.]+)', text)
    return int(sum(map(float, found)))


async def test_errors_retry_then_dead_then_the_group_waits_for_a_person(bench: Bench, line: Line) -> None:
    """Every hop is in the timeline, and the router's metrics tell what it did."""

    def answer(request: Request) -> Answer:
        return Answer(status=500, body=b"broken") if request.body == b'"bad"' else Answer()

    async with receiver(answer=answer) as hook, ended(bench):
        bench.lane(target=hook.url, queue=line.queue)
        _, node = await bench.start("serve")
        _, router = await bench.start_router(node)
        ids = bench.enqueue(*({"payload": payload, "group": "g"} for payload in ("good", "bad", "next")))
        await bench.until(ids, "succeeded", "dead", "pending")
        [blocked] = bench.client.groups(blocked=True).groups
        attempts = bench.client.timeline(ids[1]).attempts
        bench.client.skip(ids[1], reason="not worth it")
        await bench.until(ids, "succeeded", "skipped", "succeeded")
        await eventually("four acknowledged messages", lambda: routed(router, "ack") >= 4)
        assert routed(router, "buried") == 0

    good, bad, after = ids
    job = bench.client.get(good)
    told = timeline_object(job, bench.client.timeline(good))["events"]
    assert [event["event"] for event in told] == ["enqueued", "claimed", "sent", "started", "succeeded"]
    assert (job.live.attempt, job.live.receipt) == (1, "200")
    assert (blocked.group, blocked.blocker) == ("g", bad)
    assert [(one.attempt, one.send, one.outcome) for one in attempts] == [
        (1, 1, "failed"),
        (2, 2, "exhausted"),
    ]
    came = [(request.id, request.send) for request in hook.requests]
    assert came == [(good, 1), (bad, 1), (bad, 2), (after, 1)]
    assert await line.is_empty()


async def test_a_killed_router_loses_nothing_and_keeps_order(bench: Bench, line: Line) -> None:
    """Its messages come again; whose job was at work meanwhile is told apart by the processing endpoint."""
    gate = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=gate)) as hook, ended(bench):
        bench.lane(target=hook.url, queue=line.queue)
        _, node = await bench.start("serve")
        first, _ = await bench.start_router(node)
        jobs = ({"payload": n, "group": f"g{n % 8}", "sequence": n} for n in range(24))
        ids = bench.enqueue(*jobs)
        await hook.received(4)
        first.kill()
        gate.set()  # what the node had begun it finishes, whoever asked for it
        await bench.start_router(node)
        await bench.until(ids, "succeeded")

    summary = hook.ledger.summary
    assert (summary.jobs, summary.out_of_order, summary.duplicates) == (24, 0, 0)
    assert await line.is_empty() or await eventually_empty(line)


async def eventually_empty(line: Line) -> bool:
    """Say that the queue is empty, as soon as the broker has noticed."""
    async with asyncio.timeout(60):
        while not await line.is_empty():  # noqa: ASYNC110 - nobody rings
            await asyncio.sleep(0.1)
    return True


async def test_a_broker_that_is_down_when_everything_starts_is_waited_for(
    tmp_path: Path, executor: ThreadExecutor, redis_server: Redis
) -> None:
    """The node and the router run, each job says what it waits for, and nobody has to restart anything."""
    server, url = Redis(), f"sqlite:///{tmp_path}/penstock.db"
    (tmp_path / "penstock.toml").write_text(f'[sinks.own]\nkind = "redis"\nurl = "{server.url}"\n')
    try:
        with closing(connect(url)) as store:
            store.migrate()
            bench = Bench(url, Client(store), tmp_path)
            async with receiver() as hook, ended(bench):
                bench.lane(target=hook.url)
                _, node = await bench.start("serve")
                await bench.start_router(node)
                ids = bench.enqueue({"payload": 1, "group": "g"})
                waits = 'sink "own" cannot be opened: Redis cannot be reached: Connection refused: check url'
                await eventually("a reason", lambda: waits in bench.client.explain(ids[0]).text)
                await executor.run(server.start)
                await bench.until(ids, "succeeded")
    finally:
        server.close()
