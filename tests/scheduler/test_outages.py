"""A part of the node that says that the store fails it says when that is over: the node is ready again."""

import asyncio
from datetime import timedelta
from random import Random

import pytest

from penstock.client import Client
from penstock.domain.states import JobState
from penstock.errors import StoreUnavailable
from penstock.observability.health import Health
from penstock.ports.events import Event, LaneFailed, LeaseLost, StoreBack, StoreFailed, StoreGivenUp
from penstock.ports.executor import ThreadExecutor
from penstock.scheduler.cycle import FIRST_BACKOFF
from penstock.scheduler.ground import Ground
from penstock.scheduler.holding import Holdings, heartbeat
from penstock.scheduler.service import LONGEST_BACKOFF, backoff, run_service
from tests.faulty import Faulty
from tests.scheduler.engine import ONE, Engine

STORES = ONE


@pytest.fixture
def faulty(engine: Engine) -> Faulty:
    """Return the engine's store, which fails when it is told to; client and heartbeat are spared."""
    faulty = Faulty(engine.store)
    engine.client = Client(engine.store)
    engine.store = faulty  # type: ignore[assignment]
    return faulty


def why_unready(engine: Engine) -> set[str]:
    """Return the parts that keep the node from being ready, by all that it emitted so far."""
    health = Health()
    for event in list(engine.events):
        health(event)
    return {reason.part for reason in health.reasons()}


async def test_settling_recovers_with_the_first_settle_that_is_written(
    engine: Engine, faulty: Faulty
) -> None:
    async with engine.node():
        faulty.errors["settle"] = StoreUnavailable("settle")
        ids = engine.enqueue({}, {})
        await engine.until(lambda: "settle" in why_unready(engine))
        del faulty.errors["settle"]
        await engine.ended(*ids)
        await engine.until(lambda: why_unready(engine) == set())

    assert [event.part for event in engine.events if isinstance(event, StoreBack)] == ["settle"]


async def test_settling_that_gives_up_its_claim_waits_for_nothing(engine: Engine, faulty: Faulty) -> None:
    async with engine.node() as node:
        faulty.errors["settle"] = StoreUnavailable("settle")
        engine.enqueue({})
        await engine.until(lambda: "settle" in why_unready(engine))
        node.stop.set()
        node.hurry.set()
        await engine.until(lambda: bool(engine.seen(LeaseLost)))
        assert "settle" not in why_unready(engine)


async def test_a_lane_that_could_not_claim_says_when_it_can(engine: Engine, faulty: Faulty) -> None:
    async with engine.node():
        faulty.errors["claim"] = StoreUnavailable("claim")
        ids = engine.enqueue({})
        await engine.until(lambda: "claim orders" in why_unready(engine))
        del faulty.errors["claim"]
        await engine.ended(*ids)
        await engine.until(lambda: why_unready(engine) == set())


async def test_a_bug_in_one_lanes_pass_backs_off_that_lane_only(engine: Engine, faulty: Faulty) -> None:
    engine.lane("mail")
    faulty.errors["claim"] = ZeroDivisionError("a bug")
    faulty.meant = lambda ask: ask.lane == "orders"
    async with engine.node():
        stuck = engine.enqueue({}, {})
        await engine.until(lambda: bool(engine.seen(LaneFailed)))
        await engine.ended(*engine.enqueue({"lane": "mail"}, {"lane": "mail"}))
        await engine.until(lambda: len(engine.seen(LaneFailed)) == 2)
        assert {job.state for job in engine.store.find(stuck).values()} == {JobState.PENDING}
        faulty.errors.clear()
        await engine.ended(*stuck)

    failed = [event for event in engine.events if isinstance(event, LaneFailed)]
    assert [(event.lane, event.pause) for event in failed] == [
        ("orders", FIRST_BACKOFF),
        ("orders", 2 * FIRST_BACKOFF),
    ]
    assert "a bug" in failed[0].error
    assert {call.envelope.attempt for call in engine.sent} == {1}


async def test_a_node_that_waited_for_its_store_to_start_is_ready_then(
    engine: Engine, faulty: Faulty
) -> None:
    faulty.errors["register_node"] = StoreUnavailable("register")
    async with engine.node():
        await engine.until(lambda: "start" in why_unready(engine))
        del faulty.errors["register_node"]
        await engine.until(lambda: why_unready(engine) == set())


@pytest.mark.parametrize("part", ["scout", "lanes", "elect", "expire"])
async def test_every_service_that_fails_says_when_it_is_over(
    engine: Engine, faulty: Faulty, part: str
) -> None:
    faulty.errors[part] = StoreUnavailable(part)
    async with engine.node(leader_every=timedelta(milliseconds=50), expire_every=timedelta(milliseconds=50)):
        engine.enqueue({})
        await engine.until(lambda: len(engine.seen(StoreFailed)) >= 3)
        faulty.errors.clear()
        await engine.until(lambda: bool(engine.seen(StoreBack)) and why_unready(engine) == set())


def test_what_is_done_rarely_is_not_waited_for_that_long_after_a_failure() -> None:
    assert backoff(timedelta(seconds=60), 0) == timedelta(seconds=60)
    assert backoff(timedelta(seconds=60), 1) == LONGEST_BACKOFF
    assert backoff(timedelta(seconds=1), 1) == timedelta(seconds=1)
    assert backoff(timedelta(seconds=1), 20) == LONGEST_BACKOFF


def ground(engine: Engine, heard: asyncio.Queue[Event]) -> Ground:
    loop = asyncio.get_running_loop()

    def emit(event: Event) -> None:
        loop.call_soon_threadsafe(heard.put_nowait, event)

    return Ground(engine.store, ThreadExecutor(1), engine.clock, Random(7), emit)  # noqa: S311 - spreads waits


async def test_a_service_that_skips_its_call_does_not_say_that_the_store_answers(
    engine: Engine, faulty: Faulty
) -> None:
    faulty.errors["leader"] = StoreUnavailable("leader")
    heard: asyncio.Queue[Event] = asyncio.Queue()
    stop, base, skips = asyncio.Event(), ground(engine, heard), False

    async def tick() -> bool | None:
        if skips:
            return None
        await base.call(base.store.leader)
        return False

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        every = timedelta(milliseconds=1)
        tasks.create_task(run_service("chore", tick, every=every, ground=base, stop=stop))
        assert isinstance(await heard.get(), StoreFailed)
        skips = True
        while isinstance(event := await heard.get(), StoreFailed):
            continue
        stop.set()

    assert event == StoreGivenUp(part="chore")


async def test_a_heartbeat_with_nothing_to_renew_says_that_the_store_answers_when_it_does(
    engine: Engine, faulty: Faulty
) -> None:
    faulty.errors["beat"] = StoreUnavailable("beat")
    heard: asyncio.Queue[Event] = asyncio.Queue()
    node = engine.store.register_node("n")
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        beats = tasks.create_task(heartbeat(Holdings(), node, "n", ground(engine, heard)))
        told = [await heard.get() for _ in range(3)]
        assert {type(event) for event in told} == {StoreFailed}
        del faulty.errors["beat"]
        while isinstance(event := await heard.get(), StoreFailed):
            continue
        beats.cancel()

    assert isinstance(event, StoreBack)
