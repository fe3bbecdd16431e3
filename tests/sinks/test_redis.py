"""Redis streams, on a real server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from redis.asyncio import Redis as RedisClient

from penstock.domain.outcomes import Accepted, Receipt, Rejected, Throttled, Unknown, Unsent
from penstock.domain.states import Reason
from penstock.ports.events import SinkFailed
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, Sink, SinkUnavailable
from penstock.sinks.redis import open_redis
from penstock.testing.sink_suite import Arrived, SinkSuite
from tests.brokers import Redis
from tests.sinks.line import Came, Trouble, line
from tests.sinks.network import Network, answers_lost, cut_meanwhile, cut_off, meanwhile, network
from tests.sinks.opening import complaint, opened, supplies

NAMES = count()


class Bed:
    """A stream of its own; it is read past the network."""

    largest = 4 * 1024 * 1024

    def __init__(self, net: Network, client: "RedisClient[bytes]", executor: ThreadExecutor) -> None:
        self.net = net
        self.client = client
        self.supplies = supplies(executor)
        self.writer = self.supplies.writer("redis", format="pointer")
        self.stream = f"stream-{next(NAMES)}"

    async def open(self, **options: str | int) -> Sink:
        return await open_redis({"url": f"redis://127.0.0.1:{self.net.port}/0"} | options, self.supplies)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope._replace(queue=self.stream, format="payload")

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def entries(self) -> list[dict[bytes, bytes]]:
        return [fields for _, fields in await self.client.xrange(self.stream)]

    async def arrived(self, number: int) -> Sequence[Arrived]:
        found = await self.entries()
        while len(found) < number:
            found = await self.entries()
        return [Arrived(one[b"id"].decode(), one[b"body"]) for one in found]

    def spoil(self, envelope: Envelope) -> Envelope | None:
        return envelope._replace(format="nonsense")

    def stall(self) -> AbstractContextManager[None]:
        return self.net.holding_answers()

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True


@asynccontextmanager
async def bed_on(server: Redis, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    client: RedisClient[bytes] = RedisClient(port=server.port)
    async with network(server.port) as net, client:
        yield Bed(net, client, executor)


@pytest.fixture
async def bed(redis_server: Redis, executor: ThreadExecutor) -> AsyncIterator[Bed]:
    async with bed_on(redis_server, executor) as bed:
        yield bed


class TestRedis(SinkSuite):
    pass


def envelope(number: int = 1, **more: str) -> Envelope:
    return Envelope(f"01REDIS{number:019}", 1, "orders", 1, "{}", **more)  # type: ignore[arg-type]


async def test_an_entry_says_what_it_is(bed: Bed) -> None:
    async with opened(bed.open(queue=bed.stream)) as sink:
        assert (sink.keeps_order, sink.format, sink.complete_on) == (False, "pointer", "reported")
        assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]
        message = envelope(group="g é", mode="block_on_error")
        [receipt] = await sink.send([message])
        [(entry_id, fields)] = await bed.client.xrange(bed.stream)

    assert receipt == Accepted(entry_id.decode())
    assert fields == {
        b"body": bed.body(message),
        b"id": message.id.encode(),
        b"send": b"1",
        b"lane": b"orders",
        b"group": "g é".encode(),
    }


async def test_the_lanes_queue_comes_first_and_its_name_last(bed: Bed) -> None:
    async with opened(bed.open()) as sink:
        await sink.send([envelope(1, queue=bed.stream), envelope(2)._replace(lane=f"{bed.stream}-lane")])

    assert await bed.client.xlen(bed.stream) == 1
    assert await bed.client.xlen(f"{bed.stream}-lane") == 1


async def test_a_stream_is_kept_short_where_that_is_wanted(bed: Bed) -> None:
    async with opened(bed.open(maxlen=100)) as sink:
        for _ in range(3):
            await sink.send([envelope(n, queue=bed.stream) for n in range(200)])

    assert 100 <= await bed.client.xlen(bed.stream) < 300


async def test_what_is_too_large_is_refused_and_the_rest_goes(bed: Bed) -> None:
    large = envelope(2, queue=bed.stream, format="payload")._replace(payload='"' + "x" * 1024 + '"')
    async with opened(bed.open(max_message="1KiB")) as sink:
        receipts = await sink.send([envelope(1, queue=bed.stream), large, envelope(3, queue=bed.stream)])

    assert [type(receipt) for receipt in receipts] == [Accepted, Rejected, Accepted]
    assert isinstance(receipts[1], Rejected)
    assert receipts[1].reason is Reason.TOO_LARGE


async def test_a_server_that_is_full_is_left_alone_for_a_while(bed: Bed) -> None:
    async with opened(bed.open(queue=bed.stream)) as sink:
        await bed.client.config_set("maxmemory", "1")
        try:
            [receipt] = await sink.send([envelope(1)])
        finally:
            await bed.client.config_set("maxmemory", "0")
        assert isinstance(receipt, Throttled)
        assert [type(receipt) for receipt in await sink.send([envelope(2)])] == [Accepted]


async def test_what_is_not_a_messages_fault_costs_no_attempt(bed: Bed) -> None:
    await bed.client.set(f"{bed.stream}-text", "x")
    async with opened(bed.open()) as sink:
        with pytest.raises(SinkUnavailable, match="is no stream: name another"):
            await sink.send([envelope(queue=f"{bed.stream}-text")])

        receipts = await sink.send([envelope(1, queue=f"{bed.stream}-text"), envelope(2, queue=bed.stream)])
        assert [type(receipt) for receipt in receipts] == [Unsent, Accepted]

        await bed.client.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            with pytest.raises(SinkUnavailable, match="write the primary's url"):
                await sink.send([envelope(3, queue=bed.stream)])
        finally:
            await bed.client.execute_command("REPLICAOF", "NO", "ONE")
        assert [type(receipt) for receipt in await sink.send([envelope(4, queue=bed.stream)])] == [Accepted]


async def test_of_a_batch_that_breaks_off_what_was_answered_is_known(bed: Bed) -> None:
    """A cut in the middle of the answers: some arrived, the rest is in doubt."""
    many = [envelope(n, queue=bed.stream, format="payload") for n in range(500)]
    net = bed.net
    receipts: list[Receipt] = []

    def first_line(data: bytes) -> bytes:
        """Let the first answers through and break off after them."""
        asyncio.get_running_loop().call_soon(net.cut)
        return data[: data.index(b"\r\n", len(data) // 2) + 2]

    async with opened(bed.open()) as sink:
        await sink.send([envelope(queue=f"{bed.stream}-warm")])
        net.rewrite = first_line
        receipts += await sink.send(many)
    kinds = [type(receipt) for receipt in receipts]

    assert kinds == sorted(kinds, key=[Accepted, Unknown].index)
    assert kinds[-1] is Unknown
    came = {one[b"id"].decode() for one in await bed.entries()}
    assert {m.id for m, kind in zip(many, kinds, strict=True) if kind is Accepted} <= came


async def test_a_node_loses_nothing_through_cuts_a_crash_and_a_full_server(
    executor: ThreadExecutor, tmp_path: Path, redis_server: Redis
) -> None:
    with Redis.running() as server:

        def crash() -> Trouble:
            """Kill the server during this call, and have it back before the next."""
            return meanwhile(executor.run(server.restart))

        @asynccontextmanager
        async def full() -> AsyncIterator[None]:
            await bed.client.config_set("maxmemory", "1")
            try:
                yield
            finally:
                await bed.client.config_set("maxmemory", "0")

        async with bed_on(server, executor) as bed, opened(bed.open(queue=bed.stream)) as sink:
            troubles = [answers_lost(bed.net), cut_off(bed.net), full(), cut_meanwhile(bed.net), crash()]
            async with line(tmp_path, sink, dict(zip((2, 4, 6, 8, 10), troubles, strict=True))) as ours:
                await ours.carry(groups=8, per_group=12)
                came = [Came(e[b"id"].decode(), int(e[b"send"]), e[b"body"]) for e in await bed.entries()]
                ours.judge(came, dedups=False)

                assert ours.tried["unanswered"]
                assert ours.tried["deferred"]
                assert ours.engine.seen(SinkFailed)


async def test_what_is_wrong_is_said_when_it_is_opened(bed: Bed, executor: ThreadExecutor) -> None:
    url = f"redis://127.0.0.1:{bed.net.port}/0"

    assert 'write url = "redis://127.0.0.1:6379/0"' in await complaint(open_redis, executor)
    assert "write redis://host:6379/0" in await complaint(open_redis, executor, url="nonsense")
    assert "write @ as %40" in (said := await complaint(open_redis, executor, url="redis://:top/sek@host"))
    assert "top" not in said
    assert "cannot be reached" in await complaint(open_redis, executor, url="redis://127.0.0.1:1/0")
    assert "maxlen" in await complaint(open_redis, executor, url=url, maxlen="many")
    assert "rediss" in await complaint(open_redis, executor, url=url, ca_file="/nowhere")
    await bed.client.execute_command("ACL", "SETUSER", "shop", "on", ">secret", "~*", "-@all", "+ping")
    assert "check username and password" in await complaint(
        open_redis,
        executor,
        url=url,
        username="shop",
        password="wrong",  # noqa: S106
    )
    async with opened(bed.open(username="shop", password="secret")) as sink:  # noqa: S106
        with pytest.raises(SinkUnavailable, match="allow XADD"):
            await sink.send([envelope(queue=bed.stream)])
