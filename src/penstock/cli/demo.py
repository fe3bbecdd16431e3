"""`penstock dev --demo`: believable traffic, and somebody to receive it.

orders     strict order per customer; now and then one is refused, and those behind it wait for an operator
payments   a herd due at the next full minute, drained at the lane's rate
sms        a provider that fails now and then, and asks to slow down
mail       shares the provider's rate with sms; some mailboxes do not exist, which are the dead letters
reports    due at full hours, paused by somebody who said why
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final

from aiohttp import web

from penstock.client import Client
from penstock.domain.lanes import Lane, lane
from penstock.domain.pools import pool
from penstock.errors import PenstockError
from penstock.ports.clock import SystemClock
from penstock.ports.executor import Executor
from penstock.ports.store import Store

CUSTOMERS: Final = ("acme", "birch", "corvus", "delta", "ember", "fjord", "gale", "harbor")
BLOCKED: Final = "acme"
HERD: Final = 300
MOST_WAITING: Final = 5_000
RECALLS_EVERY: Final = 3_000  # orders, about ten minutes
POOL: Final = "messages"
TICK_S: Final = 0.5


def demo_lanes(base: str, provider: str) -> list[Lane]:
    """Return the lanes of the demonstration, which send to the shop and to its sms provider."""
    return [
        lane("orders", sink="http", target=f"{base}/orders", mode="block_on_error", retry=["0s", "2s", "5s"]),
        lane("payments", sink="http", target=f"{base}/payments", rate="20/s", retention="1d"),
        lane(
            "sms",
            sink="http",
            target=f"{provider}/sms",
            pool=POOL,
            retry=["0s", "1s", "3s", "10s"],
            retention="1d",
            dead_retention="1d",
        ),
        lane("mail", sink="http", target=f"{provider}/mail", pool=POOL, retention="1d", dead_retention="1d"),
        lane("reports", sink="http", target=f"{base}/reports", retention="1d"),
    ]


def operated(client: Client) -> None:
    """Do what operators do: pause until a time, park a job, both with a reason. Once per store."""
    now = client.store.now()
    due = [now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=hour) for hour in range(1, 13)]
    made = [client.enqueue("reports", {"hour": f"{at:%H}:00"}, run_at=at).id for at in due]
    client.hold(made[0], reason="the quarter is not closed yet")
    until = now + timedelta(hours=4)
    client.store.pause_lane("reports", paused=True, actor="ann", reason="the warehouse moves", until=until)


class Receiver:
    """The other side: takes orders and payments, refuses one order, and is a flaky sms provider."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        app = web.Application()
        app.router.add_post("/orders", self._order)
        app.router.add_post("/payments", self._payment)
        app.router.add_post("/sms", self._sms)
        app.router.add_post("/mail", self._mail)
        app.router.add_post("/reports", self._payment)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> str:
        """Listen on a free port of this machine; return the address."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port, *_ = self._runner.addresses[0]
        return f"http://{host}:{port}"

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _order(self, request: web.Request) -> web.Response:
        order = await request.json()
        if order.get("sku") == "recalled":
            return web.Response(status=422, text="sku is recalled: change the order or skip it")
        return web.Response(status=200)

    async def _payment(self, request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=202)

    async def _mail(self, request: web.Request) -> web.Response:
        mail = await request.json()
        if self._rng.random() < 0.04:
            why = self._rng.choice(("does not exist", "is full", "refuses us"))
            return web.Response(status=404, text=f"mailbox '{mail['to']}' {why}")
        return web.Response(status=202)

    async def _sms(self, request: web.Request) -> web.Response:
        await request.read()
        roll = self._rng.random()
        if roll < 0.02:
            return web.Response(status=429, headers={"Retry-After": "2"})
        if roll < 0.25:
            return web.Response(status=503 if roll < 0.1 else 500, text="the provider is having a bad day")
        return web.Response(status=200)


async def demonstrate(
    store: Store, executor: Executor, ready: asyncio.Event, stop: asyncio.Event, over: asyncio.Event
) -> None:
    """Receive, make the lanes, and enqueue until `stop`; receive until the node is `over`.

    The lanes of an earlier run point to ports that nobody listens on: it is `ready` when they are moved.
    """
    rng, clock = Random(), SystemClock()  # noqa: S311 - it is a show
    shop, provider = Receiver(rng), Receiver(rng)
    try:
        await executor.run(partial(store.put_pool, pool(POOL, rate="15/s"), actor="penstock dev --demo"))
        first = "reports" not in await executor.run(store.lanes)
        for each in demo_lanes(await shop.start(), await provider.start()):
            await executor.run(partial(store.put_lane, each, actor="penstock dev --demo"))
        ready.set()
        client = Client(store, actor="demo", clock=clock)
        if first:
            await executor.run(partial(operated, client))
        await Traffic(client, executor, rng, clock.now).run(stop)
        await over.wait()
    finally:
        await shop.close()
        await provider.close()


@dataclass(slots=True)
class Traffic:
    """Enqueues what a small shop would."""

    client: Client
    executor: Executor
    rng: Random
    now: Callable[[], datetime]
    _orders: int = 0
    _recalled_after: int = 20
    _herd_at: datetime = field(default=datetime.min.replace(tzinfo=UTC))

    async def run(self, stop: asyncio.Event) -> None:
        """Enqueue a little every moment, until told to stop; a store that is away is waited for."""
        while not stop.is_set():
            with suppress(PenstockError):
                await self.executor.run(self._some)
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await stop.wait()

    def _some(self) -> None:
        waiting = sum(n for (_, state), n in self.client.counts().items() if state.label == "pending")
        if waiting > MOST_WAITING:  # the demonstration never fills a disk
            return
        jobs = [self._order() for _ in range(self.rng.randint(1, 4))]
        jobs += [self._sms() for _ in range(self.rng.randint(0, 2))]
        jobs += [self._mail() for _ in range(self.rng.randint(0, 2))]
        self.client.enqueue_many([*jobs, *self._payments()])

    def _order(self) -> dict[str, Any]:
        self._orders += 1
        customer = self.rng.choice(CUSTOMERS)
        refused = customer == BLOCKED and self._orders > self._recalled_after
        if refused:
            self._recalled_after = self._orders + RECALLS_EVERY
        sku = "recalled" if refused else self.rng.choice(("lamp", "chair", "desk"))
        payload = {"order": self._orders, "customer": customer, "sku": sku}
        return {"lane": "orders", "group": customer, "tenant": customer, "payload": payload}

    def _sms(self) -> dict[str, Any]:
        number = f"+1555{self.rng.randint(0, 9999):04}"
        return {"lane": "sms", "payload": {"to": number, "text": "Your parcel is on its way"}}

    def _mail(self) -> dict[str, Any]:
        who = self.rng.choice(CUSTOMERS)
        return {"lane": "mail", "tenant": who, "payload": {"to": f"desk@{who}.example", "subject": "Invoice"}}

    def _payments(self) -> list[dict[str, Any]]:
        """Return a herd due at the next full minute, once per minute."""
        minute = self.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
        if minute <= self._herd_at:
            return []
        self._herd_at = minute
        return [
            {
                "lane": "payments",
                "run_at": minute,
                "key": f"{minute:%H%M}-{number}-{self.rng.randint(0, 999_999)}",
                "payload": {"iban": f"DE{number:020}", "amount": self.rng.randint(1, 900)},
            }
            for number in range(HERD)
        ]
