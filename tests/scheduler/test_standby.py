"""A lease in Redis says which node dispatches: one at a time, and nobody new while Redis is away."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import pytest
import redis.asyncio as redis

from penstock.domain.states import JobState
from penstock.errors import InvalidSetting
from penstock.ports.clock import SystemClock
from penstock.ports.events import Event, StoreFailed
from penstock.scheduler import board
from penstock.scheduler.board import count_nodes
from penstock.scheduler.standby import RedisLease
from tests.brokers import Redis
from tests.conftest import running
from tests.scheduler.engine import ONE, Engine

STORES = ONE
TTL = timedelta(milliseconds=600)
CLOCK = SystemClock()
Lease = Callable[[str], RedisLease]


@pytest.fixture
def own_server() -> Iterator[Redis]:
    """A Redis that a test may stop."""
    yield from running(Redis)


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
async def lease(redis_server: Redis, events: list[Event]) -> AsyncIterator[Lease]:
    """Return `lease("a")`: this node's way to a lease that the test has for itself."""
    async with leases(redis_server, events) as make:
        yield make


@asynccontextmanager
async def leases(server: Redis, events: list[Event]) -> AsyncIterator[Lease]:
    key, made = f"test:{uuid4()}", list[RedisLease]()

    def make(token: str) -> RedisLease:
        every = TTL / 3
        made.append(
            RedisLease(
                server.url, key=key, ttl=TTL, every=every, token=token, clock=CLOCK, emit=events.append
            )
        )
        return made[-1]

    yield make
    for one in made:
        await one.resign()


def test_an_option_of_the_address_that_redis_refuses_is_a_mistake_in_words(events: list[Event]) -> None:
    url, every = "redis://127.0.0.1?socket_timeout=abc", TTL / 3
    with pytest.raises(InvalidSetting, match=r"standby.redis_url: an option behind the \? is wrong"):
        RedisLease(url, key="k", ttl=TTL, every=every, token="a", clock=CLOCK, emit=events.append)  # noqa: S106


async def until_leads(lease: RedisLease) -> float:
    """Ask again and again until it leads; return when it began to."""
    until = CLOCK.monotonic() + 10
    while not lease.leads():
        assert CLOCK.monotonic() < until
        await lease.tick()
    return CLOCK.monotonic()


async def test_one_holds_it_and_keeps_it_by_renewing(lease: Lease) -> None:
    first, second = lease("a"), lease("b")
    await first.tick()
    until = CLOCK.monotonic() + 3 * TTL.total_seconds()
    while CLOCK.monotonic() < until:
        await second.tick()
        await first.tick()
        assert (first.leads(), second.leads()) == (True, False)


async def test_the_next_one_has_it_when_it_was_not_renewed_and_not_before(lease: Lease) -> None:
    first, second = lease("a"), lease("b")
    began = CLOCK.monotonic()
    await first.tick()
    while first.leads():  # it trusts the lease for less than Redis does
        await second.tick()
        assert not second.leads()
    took = await until_leads(second) - began

    assert TTL.total_seconds() <= took + 0.01
    await first.tick()
    assert not first.leads()  # whose token is another's renews nothing


async def test_who_resigns_hands_it_over_at_once(lease: Lease) -> None:
    first, second = lease("a"), lease("b")
    await first.tick()
    await second.tick()
    await first.resign()
    await second.tick()

    assert (first.leads(), second.leads()) == (False, True)


async def test_who_never_had_it_cannot_give_it_away(lease: Lease, redis_server: Redis) -> None:
    first, second = lease("a"), lease("b")
    await first.tick()
    await second.tick()
    await second.resign()
    client = redis.from_url(redis_server.url)
    try:
        assert await client.get(first._key) == b"a"
        left = await client.pttl(first._key)
    finally:
        await client.aclose()

    assert 0 < left <= TTL.total_seconds() * 1000
    assert first.leads()


async def test_while_redis_is_away_nobody_starts_and_the_holder_stops_in_time(
    own_server: Redis, events: list[Event]
) -> None:
    async with leases(own_server, events) as lease:
        first, second = lease("a"), lease("b")
        began = CLOCK.monotonic()
        await first.tick()
        own_server.stop()
        await first.tick()
        assert first.leads()  # for as long as it may trust what it has
        asked = CLOCK.monotonic()
        while first.leads():
            assert asked - began < TTL.total_seconds()
            await second.tick()
            await first.tick()
            assert not second.leads()
            asked = CLOCK.monotonic()
        told = [event for event in events if isinstance(event, StoreFailed)]
        assert {event.part for event in told} == {"standby"}
        assert all("redis" in event.error for event in told)

        own_server.start()
        await until_leads(second)
        assert not first.leads()


async def test_only_the_node_that_holds_it_dispatches(engine: Engine, lease: Lease) -> None:
    first, second = lease("a"), lease("b")
    await first.tick()
    async with engine.node(standby=True, lease=first) as holder, engine.node(standby=True, lease=second):
        [one] = engine.enqueue({})
        await engine.ended(one)
        assert (first.leads(), second.leads()) == (True, False)
        holder.stop.set()
        await engine.until(second.leads)
        [other] = engine.enqueue({})
        await engine.ended(other)
        assert not first.leads()

    nodes = [engine.client.get(id_).live.node for id_ in (one, other)]
    assert nodes[0] != nodes[1]
    assert {engine.client.get(id_).state for id_ in (one, other)} == {JobState.SUCCEEDED}


async def test_while_nobody_has_the_lease_jobs_say_so(
    engine: Engine, own_server: Redis, events: list[Event]
) -> None:
    async with leases(own_server, events) as lease:
        own_server.stop()
        async with engine.node(standby=True, lease=lease("a")):
            [one] = engine.enqueue({})
            await engine.until(lambda: "stands by" in engine.client.explain(one).text)
            await engine.until(lambda: "(redis: " in engine.client.explain(one).text)
            own_server.start()
            await engine.ended(one)


@pytest.mark.parametrize("in_redis", [True, False], ids=["redis", "database"])
async def test_the_node_that_dispatches_hands_over_when_it_drains(
    engine: Engine, lease: Lease, monkeypatch: pytest.MonkeyPatch, *, in_redis: bool
) -> None:
    monkeypatch.setattr(board, "COUNT_NODES_EVERY_S", 0.2)
    first, second = (lease("a"), lease("b")) if in_redis else (None, None)
    every = timedelta(milliseconds=100)
    async with (
        engine.node(standby=True, lease=first, leader_every=every) as one,
        engine.node(standby=True, lease=second, leader_every=every) as other,
    ):
        [before] = engine.enqueue({})
        await engine.ended(before)
        drains, stays = (one, other) if engine.client.get(before).live.node == one.deck.node else (other, one)
        await engine.until(lambda: (drains.deck.board.nodes, drains.deck.board.heirs) == (1, 1))
        engine.store.drain_node(drains.deck.node, draining=True, actor="ann", reason="a new version")
        await engine.until(lambda: drains.deck.board.drain is not None)
        [after] = engine.enqueue({})
        await engine.ended(after)

    assert engine.client.get(after).live.node == stays.deck.node


async def test_only_nodes_that_send_share_the_limits_and_those_that_could_inherit(
    engine: Engine,
) -> None:
    notes = ["{}", '{"standby": ""}', '{"drains": 0}', '{"stops": true}', '{"lanes": []}']
    sends, stands_by, *_ = numbers = [engine.store.register_node(f"node {note}") for note in notes]
    for number, note in zip(numbers, notes, strict=True):
        engine.store.beat(number, note)

    assert count_nodes(engine.store, sends) == (1, 1)  # all of it is its own; the one on standby could
    assert count_nodes(engine.store, stands_by) == (1, 1)
    assert count_nodes(engine.store, 0) == (1, 2)


def test_the_password_of_an_address_that_cannot_be_read_is_not_quoted(events: list[Event]) -> None:
    with pytest.raises(InvalidSetting, match="write @ as %40") as caught:
        RedisLease(
            "redis://:top/sek@host", key="k", ttl=TTL, every=TTL, token="", clock=CLOCK, emit=events.append
        )
    assert "top" not in str(caught.value)
