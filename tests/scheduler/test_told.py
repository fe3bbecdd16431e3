"""What is on record, and in the log, of stops that are over and of nodes that died."""

import asyncio
from datetime import datetime, timedelta
from random import Random

from penstock.domain.lanes import lane
from penstock.domain.notes import Said, read
from penstock.ports.clock import SystemClock
from penstock.ports.events import Claimed, Event, LaneChanged, Recovered, SettledBatch
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Ask
from penstock.scheduler.board import Board
from penstock.scheduler.ground import Ground
from penstock.testing.store_suite.factories import pause_and_wait
from penstock.wire import job_object
from tests.api.conftest import memory_store
from tests.scheduler.engine import Engine

EAGER = {"recover_every": timedelta(milliseconds=100), "leader_every": timedelta(milliseconds=100)}


async def test_a_lane_whose_pause_is_over_is_not_said_to_be_stopped(engine: Engine) -> None:

    def pause(until: datetime) -> None:
        engine.store.pause_lane("orders", paused=True, actor="ops", reason="storm", until=until)

    pause_and_wait(engine.store, pause)
    async with engine.node() as node:
        await engine.until(lambda: "orders" in node.deck.board.lanes)
        engine.lane(weight=2)
        await engine.until(lambda: bool(engine.seen(LaneChanged)))

    assert [event.stopped for event in engine.events if isinstance(event, LaneChanged)] == [False]


async def test_a_lapse_is_on_record_as_that_of_the_node_that_had_the_job(engine: Engine) -> None:
    engine.store.put_lane(lane("orders", poll_interval="50ms"), actor="test")
    [id_] = engine.enqueue({})
    gone = engine.store.register_node("gone")
    claim = engine.store.claim(Ask(lane="orders", node=gone, lease=timedelta(milliseconds=300)))
    assert claim is not None
    async with engine.node(**EAGER):
        await engine.ended(id_)
        await engine.until(lambda: any(read(node.note).recovered for node in engine.store.nodes()))

    [told] = [move for event in engine.events if isinstance(event, Recovered) for move in event.each()]
    assert (told.job, told.to) == (id_, "lapsed")
    [noted] = [said for node in engine.store.nodes() if (said := read(node.note).recovered)]
    assert (noted.fates, noted.lanes) == ({"unknown": 1}, ("orders",))
    [lapsed] = engine.client.timeline(id_).attempts
    assert (lapsed.outcome, lapsed.node) == ("lapsed", gone)
    job = engine.client.get(id_)
    assert job.context is not None
    assert job_object(job)["run_at"] == job.context.run_at


async def test_a_node_tells_what_it_has_claimed_how_it_does_and_since_when_it_leads(engine: Engine) -> None:
    """The process is known to whoever runs the node; the clocks and the term to the node itself."""
    gate = asyncio.Event()

    async def wait(_: object) -> None:
        await gate.wait()

    engine.lane()
    engine.answers["orders"] = wait
    engine.enqueue({}, {}, {})

    def said() -> Said:
        return read(engine.store.nodes()[0].note) if engine.store.nodes() else Said()

    async with engine.node(**EAGER) as node:
        node.figures = lambda: {"memory": 5 * 2**20, "loop_delay_us": 900}
        await engine.until(lambda: said().claimed == 3 and said().term is not None)
        told = said()
        gate.set()

    assert (told.memory, told.loop_delay) == (5 * 2**20, timedelta(microseconds=900))
    assert told.skew is not None
    assert abs(told.skew) < timedelta(seconds=30)  # the same machine, but it may be busy
    assert told.led_since is not None
    assert engine.store.now() - timedelta(minutes=5) < told.led_since <= engine.store.now()


async def test_whoever_sends_nothing_does_not_say_that_settings_are_in_force() -> None:
    """A router knows of lanes too; the node that sends may look half a second later."""
    store, told = memory_store(), list[Event]()
    store.put_lane(lane("orders"), actor="test")
    ground = Ground(store, ThreadExecutor(1), SystemClock(), Random(1), told.append)  # noqa: S311
    boards = [Board(ground, node=7), Board(ground, node=8, changed=lambda _: None)]
    for rate in (None, "5/s"):
        store.put_lane(lane("orders", rate=rate), actor="test")
        for board in boards:
            await board.refresh()

    assert told == [LaneChanged(lane="orders", version=store.lanes()["orders"].version, stopped=False)]


async def test_every_move_of_a_job_is_told_to_who_asks(engine: Engine) -> None:
    [id_] = engine.enqueue({"group": "g", "mode": "block_on_error"})
    async with engine.node() as node:
        await engine.ended(id_)
        this = node.deck.node

    told = [
        move for event in engine.events if isinstance(event, Claimed | SettledBatch) for move in event.each()
    ]
    assert [(move.job, move.group, move.node, move.attempt, move.to) for move in told] == [
        (id_, "g", this, 1, "claimed"),
        (id_, "g", this, 1, "succeeded"),
    ]
    assert told[0].epoch == told[1].epoch is not None
