"""Queues of real brokers, filled by their own sinks, read by our sources through a network that can fail."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Any

import aio_pika
import boto3
import stomp
from redis.asyncio import Redis as RedisClient

from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.queue import Message
from penstock.ports.sink import Envelope, Sink
from penstock.ports.source import Options, Source, Supplies
from penstock.ports.store import Store
from penstock.sinks import activemq, rabbitmq, redis, sqs
from penstock.sources.activemq import open_activemq
from penstock.sources.embedded import DEAD, EmbeddedSource
from penstock.sources.posted import Posted, PostedSource
from penstock.sources.rabbitmq import open_rabbitmq
from penstock.sources.redis import open_redis
from penstock.sources.sqs import open_sqs
from tests.brokers import ActiveMq, RabbitMq, Redis, Sqs
from tests.sinks.network import Network
from tests.sinks.opening import supplies

NAMES = count()
MINUTE, BRIEF = timedelta(minutes=1), timedelta(seconds=3)


def group_in(body: str) -> str | None:
    with suppress(ValueError):
        group = json.loads(body)["messageGroupId"]
        return None if group is None else str(group)
    return None


class Bed:
    """What all of them have in common."""

    keeps_order = False
    orders = True
    pattern = "{}"

    def __init__(self, net: Network, executor: ThreadExecutor) -> None:
        self.net = net
        self.executor = executor
        self.queues = [self.pattern.format(f"q{next(NAMES)}") for _ in range(2)]
        self.ids = count(1)
        self.sink: Sink | None = None

    @property
    def supplies(self) -> Supplies:
        return Supplies(name="suite", queues=lambda: self.queues, executor=self.executor, clock=SystemClock())

    async def open(self, **more: str) -> Source:
        """Return a source that hides messages for a minute unless told otherwise."""
        raise NotImplementedError

    async def open_brief(self) -> Source:
        return await self.open(visibility="3s")

    async def open_sink(self) -> Sink:
        """Return the sink that fills the queues, past the network."""
        raise NotImplementedError

    async def put(self, queue: str, bodies: Sequence[str]) -> None:
        """Send bodies as they are, each as a job of the group that it names."""
        if self.sink is None:
            self.sink = await self.open_sink()
        sent = [self.envelope(queue, body) for body in bodies]
        for begin in range(0, len(sent), self.sink.max_batch):
            receipts = await self.sink.send(sent[begin : begin + self.sink.max_batch])
            assert {type(receipt).__name__ for receipt in receipts} == {"Accepted"}, receipts

    def envelope(self, queue: str, body: str) -> Envelope:
        group = group_in(body)
        return Envelope(
            f"01SOURCE{next(self.ids):018}", 1, "suite", 1, body, queue=queue, format="payload",
            group=group, mode="immediate" if group is None else "block_on_error",
        )  # fmt: skip

    async def ready(self) -> None:
        """Make the queues, where somebody has to."""

    async def break_down(self) -> bool:
        await self.net.go_down()
        return True

    async def repair(self) -> None:
        await self.net.come_up()

    async def close(self) -> None:
        """Let go of connections."""
        if self.sink is not None:
            await self.sink.close()


class EmbeddedBed(Bed):
    keeps_order = True

    def __init__(self, store: Store, executor: ThreadExecutor) -> None:
        super().__init__(Network(0), executor)
        self.store = store
        self.dedups: list[str] = []

    async def open(self, **_: str) -> Source:
        return self.hiding(MINUTE)

    async def open_brief(self) -> Source:
        return self.hiding(BRIEF)

    def hiding(self, visibility: timedelta) -> Source:
        return EmbeddedSource(
            self.store, queues=lambda: self.queues, executor=self.executor, visibility=visibility
        )

    async def put(self, queue: str, bodies: Sequence[str]) -> None:
        names = [f"{queue}:{next(self.ids)}" for _ in bodies]
        self.dedups += names
        self.store.push(queue, [Message(b, group_in(b), n) for b, n in zip(bodies, names, strict=True)])

    async def left(self, queue: str) -> int:
        return len(self.store.queued(queue, self.dedups))

    async def dead(self, queue: str) -> Sequence[str]:
        return [one.body for one in self.store.receive(queue + DEAD, 10, visibility=MINUTE)]

    async def break_down(self) -> bool:
        return False


class PostedBed(Bed):
    """One router's memory: every source that is opened is the same."""

    keeps_order = True

    def __init__(self, executor: ThreadExecutor) -> None:
        super().__init__(Network(0), executor)
        self.queues = ["posted"]
        self.source = PostedSource(SystemClock(), visibility=BRIEF)

    async def open(self, **_: str) -> Source:
        return self.source

    async def put(self, _: str, bodies: Sequence[str]) -> None:
        self.source.post([Posted(body, group_in(body), f"{next(self.ids)}") for body in bodies])

    async def left(self, _: str) -> int:
        return 10_000 - self.source.room

    async def dead(self, _: str) -> Sequence[str]:
        return list(self.source.buried)

    async def break_down(self) -> bool:
        return False


class SqsBed(Bed):
    keys = {"access_key": "test", "secret_key": "test", "region": "eu-central-1"}  # noqa: RUF012

    def __init__(self, server: Sqs, net: Network, executor: ThreadExecutor, *, fifo: bool) -> None:
        self.pattern = "{}.fifo" if fifo else "{}"
        self.keeps_order = self.orders = fifo
        super().__init__(net, executor)
        self.server = server
        self.client: Any = boto3.client(
            "sqs",
            endpoint_url=server.url,
            region_name="eu-central-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106
        )

    async def ready(self) -> None:
        for queue in self.queues:
            attributes = {"FifoQueue": "true"} if queue.endswith(".fifo") else {}
            self.client.create_queue(QueueName=queue, Attributes=attributes)

    async def open(self, **more: str) -> Source:
        # Queues are named by moto as it was asked for them, so answers lead back through the network.
        given: Options = self.keys | {"url": f"http://127.0.0.1:{self.net.port}", "visibility": "1m"} | more
        return await open_sqs(given, self.supplies)

    async def open_sink(self) -> Sink:
        given: Options = self.keys | {"url": self.server.url}
        return await sqs.open_sqs(given, supplies(self.executor))

    async def left(self, queue: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = self.client.get_queue_url(QueueName=queue)["QueueUrl"]
        said = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(value) for value in said.values())

    async def dead(self, queue: str) -> Sequence[str]:
        base = queue.removesuffix(".fifo")
        name = queue.replace(base, f"{base}-dead")
        url = self.client.get_queue_url(QueueName=name)["QueueUrl"]
        return [one["Body"] for one in self.client.receive_message(QueueUrl=url).get("Messages", ())]


class RedisBed(Bed):
    def __init__(self, server: Redis, net: Network, executor: ThreadExecutor) -> None:
        super().__init__(net, executor)
        self.server = server
        self.client: Any = RedisClient(port=server.port)

    async def open(self, **more: str) -> Source:
        given = {"url": f"redis://127.0.0.1:{self.net.port}/0", "visibility": "1m"} | more
        return await open_redis(given, self.supplies)

    async def open_sink(self) -> Sink:
        return await redis.open_redis({"url": self.server.url}, supplies(self.executor))

    async def left(self, queue: str) -> int:
        return int(await self.client.xlen(queue))

    async def dead(self, queue: str) -> Sequence[str]:
        return [fields[b"body"].decode() for _, fields in await self.client.xrange(f"{queue}/dead")]

    async def close(self) -> None:
        await super().close()
        await self.client.aclose()


class RabbitBed(Bed):
    def __init__(self, server: RabbitMq, net: Network, executor: ThreadExecutor) -> None:
        super().__init__(net, executor)
        self.server = server

    async def ready(self) -> None:
        for queue in self.queues:
            await self.ask(lambda channel, name=queue: channel.declare_queue(name, durable=True))

    async def ask(self, question: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401
        async with await aio_pika.connect(self.server.url) as connection, connection.channel() as channel:
            return await question(channel)

    async def open(self, **more: str) -> Source:
        url = f"amqp://guest:guest@127.0.0.1:{self.net.port}/"
        return await open_rabbitmq({"url": url, "visibility": "1m"} | more, self.supplies)

    async def open_sink(self) -> Sink:
        return await rabbitmq.open_rabbitmq({"url": self.server.url}, supplies(self.executor))

    async def left(self, queue: str) -> int:
        """What is out comes back when its receiver is closed, which the suite does first."""
        found = await self.ask(lambda channel: channel.declare_queue(queue, passive=True))
        return int(found.declaration_result.message_count)

    async def dead(self, queue: str) -> Sequence[str]:
        async def read(channel: Any) -> str:  # noqa: ANN401
            dead = await channel.get_queue(f"{queue}/dead")
            return str((await dead.get()).body.decode())

        return [await self.ask(read)]


class Browser(stomp.ConnectionListener):  # type: ignore[misc]
    """Looks at what is in a queue and leaves it there."""

    def __init__(self, port: int, queue: str, loop: asyncio.AbstractEventLoop) -> None:
        self.bodies: list[str] = []
        self.done: asyncio.Future[None] = loop.create_future()
        self.loop = loop
        self.connection = stomp.StompConnection12([("127.0.0.1", port)], auto_decode=False)
        self.connection.set_listener("browser", self)
        self.connection.connect(wait=True)
        self.connection.subscribe(f"/queue/{queue}", id="1", ack="auto", headers={"browser": "true"})

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        if frame.headers.get("browser") == "end":
            self.loop.call_soon_threadsafe(self.done.set_result, None)
        else:
            self.bodies.append(frame.body.decode())


class ActiveBed(Bed):
    keeps_order = True

    def __init__(self, server: ActiveMq, net: Network, executor: ThreadExecutor) -> None:
        super().__init__(net, executor)
        self.server = server

    async def open(self, **more: str) -> Source:
        given = {"url": f"stomp://127.0.0.1:{self.net.port}", "visibility": "1m"} | more
        return await open_activemq(given, self.supplies)

    async def open_sink(self) -> Sink:
        return await activemq.open_activemq({"url": self.server.url}, supplies(self.executor))

    async def browse(self, queue: str) -> list[str]:
        loop = asyncio.get_running_loop()
        browser = await self.executor.run(lambda: Browser(self.server.port, queue, loop))
        await browser.done
        await self.executor.run(lambda: browser.connection.disconnect("bye"))
        return browser.bodies

    async def left(self, queue: str) -> int:
        return len(await self.browse(queue))

    async def dead(self, queue: str) -> Sequence[str]:
        return await self.browse(f"{queue}/dead")
