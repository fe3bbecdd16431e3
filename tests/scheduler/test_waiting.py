"""Whoever waits for a limit is told of every change: what is not for him costs him one look at the limit."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from penstock.domain.rates import Rate
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.flow import Limit
from penstock.scheduler.ground import Ground, wait_for
from penstock.scheduler.limits import Limits
from penstock.stores.memory.store import MemoryStore

SLOW = Limit("pool", "web", rate=Rate(1, timedelta(hours=1)), burst=4)
WIDE = Limit("lane", "orders", max_in_flight=1_000)
LONG_S = 60.0


@dataclass(slots=True)
class Orders:
    """A lane whose jobs are numbers, and all need the same."""

    limits: tuple[Limit, ...]
    name: str = "orders"
    weight: int = 1
    looked_at: int = 0

    def limits_of(self, _: int, /) -> tuple[Limit, ...]:
        self.looked_at += 1
        return self.limits


@asynccontextmanager
async def asking() -> AsyncIterator[Limits]:
    """Limits on a store, with the loop that asks it."""
    store = MemoryStore(lambda: datetime.now(UTC), lambda: "none")
    stop = asyncio.Event()
    with ThreadExecutor(1) as executor:
        async with asyncio.TaskGroup() as tasks:
            limits = Limits(Ground(store, executor, SystemClock(), Random(1), lambda _: None))  # noqa: S311
            tasks.create_task(limits.run(stop))
            try:
                yield limits
            finally:
                stop.set()
                limits.call()


async def take(limits: Limits, plan: Orders, jobs: Sequence[int], *, who: int) -> list[int]:
    """Return those that had to wait after some of them could go."""
    news = asyncio.Event()
    limits.watch(news)
    go, wait = limits.admit(plan, jobs, who=who)
    while not go:
        assert await wait_for(news, LONG_S)
        news.clear()
        go, wait = limits.admit(plan, jobs, who=who)
    limits.unwatch(news)
    return wait


async def test_those_whom_one_limit_keeps_ask_it_alone() -> None:
    plan = Orders((WIDE, SLOW))
    async with asking() as limits:
        wait = await take(limits, plan, range(100), who=1)
        news = asyncio.Event()
        limits.watch(news)
        while not limits.shut(plan.name, who=1):  # until the pool's few tokens are spent
            _, wait = limits.admit(plan, wait, who=1)
            await wait_for(news, 0.05)
            news.clear()
        before = plan.looked_at
        assert limits.shut(plan.name, who=1)
        assert plan.looked_at == before
        assert not limits.shut(plan.name, who=2)  # of whom nothing is known


async def test_what_comes_back_is_told_to_those_whom_it_lets_go() -> None:
    plan = Orders((Limit("lane", "orders", max_in_flight=1),))
    async with asking() as limits:
        [second] = await take(limits, plan, [1, 2], who=1)
        flight, claims = asyncio.Event(), asyncio.Event()
        limits.watch(flight)
        limits.watch(claims, claims=True)
        limits.admit(plan, [second], who=1)
        limits.release(plan, [1])
        assert (flight.is_set(), claims.is_set()) == (True, True)
        assert limits.admit(plan, [second], who=1) == ([second], [])
