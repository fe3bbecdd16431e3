"""What dead nodes, silent executors and a store that goes away leave behind is dealt with."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.domain.envelopes import Envelope
from penstock.domain.filters import JobQuery
from penstock.domain.job import Job
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.ports.events import LeaderChanged, Recovered, ReturnedJobs
from penstock.ports.sink import NOT_STARTED, RUNNING, SUCCEEDED, Probed
from penstock.ports.store import Ask
from penstock.sinks.python import PythonSink
from penstock.stores.sql.store import SqlStore
from tests.scheduler.engine import Engine

SOON = timedelta(milliseconds=300)
EAGER = {"recover_every": timedelta(milliseconds=100), "leader_every": timedelta(milliseconds=100)}


def left_by_a_dead_node(engine: Engine, *, groups: bool = False, sending: bool = False) -> None:
    """Claim everything as a node that will never be heard of again."""
    node = engine.store.register_node("gone")
    claim = engine.store.claim_groups if groups else engine.store.claim
    taken = claim(Ask(lane="orders", node=node, lease=SOON))
    assert taken is not None
    if sending:
        engine.store.mark_sending(taken.epoch)


async def test_a_dead_nodes_claim_goes_again_under_the_same_number(engine: Engine) -> None:
    ids = engine.enqueue({}, {})
    left_by_a_dead_node(engine)
    async with engine.node(**EAGER):
        await engine.ended(*ids)

    assert {call.envelope.number for call in engine.sent} == {1}
    assert [engine.client.get(id_).live.recoveries for id_ in ids] == [1, 1]
    assert engine.seen(Recovered)


async def test_work_that_must_not_repeat_is_held_unless_it_was_never_marked(engine: Engine) -> None:
    engine.lane(on_unknown="hold")
    [unmarked] = engine.enqueue({})
    left_by_a_dead_node(engine)
    [marked] = engine.enqueue({})
    left_by_a_dead_node(engine, sending=True)
    async with engine.node(**EAGER):
        await engine.ended(unmarked)
        await engine.ended(marked, state=JobState.HELD)

    assert [call.envelope.id for call in engine.sent] == [unmarked]


async def test_the_sink_is_asked_before_anything_is_repeated(engine: Engine) -> None:
    ids = engine.enqueue({}, {}, {})
    fates = dict(zip(ids, (SUCCEEDED, RUNNING, NOT_STARTED), strict=True))
    engine.sinks["console"] = PythonSink(engine.answer, probe=lambda envelope: Probed(fates[envelope.id]))
    left_by_a_dead_node(engine)
    async with engine.node(**EAGER):
        await engine.ended(ids[0], ids[2])
        await engine.ended(ids[1], state=JobState.RUNNING)

    assert [call.envelope.id for call in engine.sent] == [ids[2]]


async def test_an_executor_that_falls_silent_is_given_up_in_the_end(engine: Engine) -> None:
    engine.lane(complete_on="reported", ack_timeout="200ms", max_recoveries=1)
    [id_] = engine.enqueue({})
    async with engine.node(**EAGER):
        await engine.ended(id_, state=JobState.DEAD)

    job = engine.client.get(id_).live
    assert (job.reason, job.recoveries) == ("unreported", 2)
    assert [call.envelope.number for call in engine.sent] == [1, 1]


async def test_a_group_goes_on_after_its_node_died(engine: Engine) -> None:
    engine.lane(mode="block_on_error")
    ids = engine.enqueue({"group": "a"}, {"group": "a"})
    left_by_a_dead_node(engine, groups=True)
    async with engine.node(**EAGER):
        await engine.ended(*ids)

    assert engine.order()["a"] == ids


async def test_one_node_leads_and_hands_over_when_it_stops(engine: Engine) -> None:
    async with engine.node(**EAGER) as first:
        await engine.until(first.leader.leads)
        async with engine.node(**EAGER) as second:
            await asyncio.wait_for(engine.until(lambda: second.deck.node > 0), 5)
            assert not second.leader.leads()
            first.stop.set()
            await engine.until(second.leader.leads)

    changes = [(e.node, e.leads) for e in engine.events if isinstance(e, LeaderChanged)]
    assert changes[0] == (first.deck.node, True)
    assert {(first.deck.node, False), (second.deck.node, True)} <= set(changes)  # whoever tells it sooner


async def test_on_standby_only_the_leader_dispatches(engine: Engine) -> None:
    async with engine.node(**EAGER) as leader:
        await engine.until(leader.leader.leads)
        engine.lane("other")
        async with engine.node(standby=True, **EAGER) as idle:
            await engine.until(lambda: "other" in idle.deck.board.lanes)
            leader.deck.board.served = ("orders",)
            [id_] = engine.enqueue({"lane": "other"})
            assert not idle.leader.leads()
            leader.stop.set()
            await engine.ended(id_)
            assert idle.leader.leads()


async def test_settings_that_cannot_work_are_bent_to_what_can(engine: Engine) -> None:
    """A lane may have them from before they were refused: no claim may end before anything could be sent."""
    store = engine.store
    assert isinstance(store, SqlStore)
    on = "" if store.db.dialect == "sqlite" else " ON penstock.lanes"
    name = "penstock_lanes_sense_update" if store.db.dialect == "sqlite" else "lanes_sense_update"
    store.db.write(lambda tx: tx.script(f"DROP TRIGGER {name}{on};"))
    row = lane("orders")
    broken = replace(row, settings={**row.settings, "lease": "1ms", "timeout": "1h", "poll_interval": "0s"})
    engine.store.put_lane(broken, actor="sql")
    ids = engine.enqueue({}, {})
    async with engine.node():
        await engine.ended(*ids)

    assert [call.envelope.number for call in engine.sent] == [1, 1]
    assert not engine.seen(ReturnedJobs)


async def test_a_job_without_its_context_keeps_nobody_from_being_asked_about(engine: Engine) -> None:
    ids = engine.enqueue({}, {}, {})
    asked: list[str] = []

    def probe(envelope: Envelope) -> Probed:
        asked.append(envelope.id)
        return Probed(SUCCEEDED)

    engine.sinks["console"] = PythonSink(engine.answer, probe=probe)
    left_by_a_dead_node(engine)
    arrival, store = engine.client.get(ids[1]).live.arrival, engine.store
    assert isinstance(store, SqlStore)
    store.db.write(lambda tx: tx.execute("DELETE FROM penstock.contexts WHERE arrival = :it", it=arrival))

    def held() -> Sequence[Job]:
        return engine.store.list_jobs(JobQuery(states=frozenset({JobState.HELD}))).jobs

    async with engine.node(**EAGER):
        await engine.ended(ids[0], ids[2])
        await engine.until(lambda: bool(held()))

    assert [(job.live.arrival, job.live.reason) for job in held()] == [(arrival, "context_missing")]
    assert sorted(asked) == sorted([ids[0], ids[2]])
    assert not engine.sent


async def test_a_node_that_was_forgotten_while_it_slept_is_listed_again_and_still_drained(
    engine: Engine,
) -> None:
    async with engine.node(name="sleeper") as node:
        await engine.until(lambda: bool(engine.seen(LeaderChanged)))
        number, store = node.deck.node, engine.store
        store.drain_node(number, draining=True, actor="ann", reason="upgrade")
        await engine.until(lambda: node.deck.board.drain is not None)
        assert isinstance(store, SqlStore)
        store.db.write(lambda tx: tx.execute("DELETE FROM penstock.nodes WHERE id = :id", id=number))
        await engine.until(lambda: [(one.id, one.name) for one in store.nodes()] == [(number, "sleeper")])
        await engine.until(lambda: '"drains"' in (store.nodes()[0].note or ""))

    assert node.deck.board.drain is not None
    assert node.deck.board.drain.actor == "ann"
