"""Operators and settings win over what is already claimed, and nothing needs a restart."""

import asyncio
from datetime import timedelta

import pytest

from penstock.domain.envelopes import Envelope
from penstock.domain.gates import Explanation, Gate
from penstock.domain.notes import is_alive, read
from penstock.domain.outcomes import Receipt, Rejected, TryAgain
from penstock.domain.pools import pool
from penstock.domain.states import JobState
from penstock.ports.events import Halted, NodeStopped, ReturnedJobs, TargetChanged
from penstock.sinks.python import PythonSink
from tests.scheduler.engine import Engine


def claimed(engine: Engine, *ids: str) -> bool:
    return all(engine.client.get(id_).state is JobState.CLAIMED for id_ in ids)


async def test_a_cancel_since_the_claim_wins(engine: Engine) -> None:
    engine.lane(lookahead="5s")
    async with engine.node():
        soon = engine.store.now() + timedelta(seconds=1.5)
        ids = engine.enqueue({"run_at": soon}, {"run_at": soon})
        await engine.until(lambda: claimed(engine, *ids))

        engine.client.cancel(ids[0], reason="changed my mind")
        await engine.ended(ids[1])

    assert engine.client.get(ids[0]).state is JobState.CANCELLED
    assert [call.envelope.id for call in engine.sent] == [ids[1]]


@pytest.mark.parametrize("how", ["pause", "disable", "pool", "store"])
async def test_a_stopped_lane_gives_back_what_it_has_not_sent(engine: Engine, how: str) -> None:
    engine.store.put_pool(pool("web"), actor="test")
    engine.lane(lookahead="5m", pool="web")
    async with engine.node():
        [id_] = engine.enqueue({"run_at": engine.store.now() + timedelta(minutes=2)})
        await engine.until(lambda: claimed(engine, id_))
        if how == "pause":
            engine.store.pause_lane("orders", paused=True, actor="ann", reason="incident")
        elif how == "disable":
            engine.lane(lookahead="5m", pool="web", enabled=False)
        elif how == "pool":
            engine.store.pause_pool("web", paused=True, actor="ann", reason="incident")
        else:
            engine.store.pause_store(paused=True, actor="ann", reason="incident")
        await engine.until(lambda: engine.client.get(id_).state is JobState.PENDING)  # long before its time

    assert engine.sent == []
    assert engine.seen(ReturnedJobs)


async def test_a_setting_takes_effect_without_a_restart(engine: Engine) -> None:
    engine.lane(retry=["0s"], sink="http")
    engine.closed_sinks["http"] = "not there"
    async with engine.node():
        [id_] = engine.enqueue({})
        engine.lane(retry=["0s"], sink="console")
        await engine.ended(id_)


async def test_what_is_claimed_ahead_goes_to_the_sink_the_lane_has_then(engine: Engine) -> None:
    engine.lane(sink="old", lookahead="30s")
    engine.sinks["old"] = PythonSink(lambda _: Rejected("this sink is of the past"))
    async with engine.node():
        [id_] = engine.enqueue({"run_at": engine.store.now() + timedelta(seconds=2)})
        await engine.until(lambda: claimed(engine, id_))
        engine.lane(sink="new", lookahead="30s")
        await engine.ended(id_)

    assert [event.why for event in engine.seen(ReturnedJobs)] == ["the lane sends to new now"]  # type: ignore[attr-defined]


async def test_a_lane_and_a_pool_that_are_made_anew_are_other_ones(engine: Engine) -> None:
    """They count their versions from 1 again."""

    def make(target: str, rate: str | None) -> None:
        engine.store.delete_lane("orders", actor="test", reason="made anew")
        engine.store.delete_pool("web", actor="test", reason="made anew")
        engine.store.put_pool(pool("web", rate=rate), actor="test")
        engine.lane(pool="web", target=target)

    engine.store.put_pool(pool("web"), actor="test")
    make("http://old.example", "1/h")
    async with engine.node() as node:
        await engine.ended(*engine.enqueue({}))
        make("http://new.example", None)
        new = engine.store.lanes()["orders"]
        await engine.until(lambda: node.deck.board.lanes.get("orders") == new)
        await engine.ended(*engine.enqueue({}, {}))

    assert [call.envelope.target for call in engine.sent][1:] == ["http://new.example"] * 2


async def test_a_new_lane_is_served_and_so_is_a_node_that_serves_some_only(engine: Engine) -> None:
    async with engine.node(lanes=("orders", "more")):
        engine.lane("more")
        engine.lane("others")
        mine, theirs = engine.enqueue({"lane": "more"}, {"lane": "others"})
        await engine.ended(mine)

    assert engine.client.get(theirs).state is JobState.PENDING


async def test_stopping_finishes_what_is_being_sent_and_gives_back_the_rest(engine: Engine) -> None:
    engine.lane(lookahead="5s")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Envelope) -> None:
        begun.set()
        await go_on.wait()

    engine.answers["orders"] = slow
    async with engine.node() as node:
        sent, ahead = engine.enqueue({}, {"run_at": engine.store.now() + timedelta(seconds=4)})
        await begun.wait()
        await engine.until(lambda: claimed(engine, ahead))
        node.stop.set()
        await engine.until(lambda: engine.client.get(ahead).state is JobState.PENDING)
        assert engine.client.get(sent).state is JobState.CLAIMED
        await engine.until(lambda: read(engine.store.nodes()[0].note).stops)
        why, due = engine.client.explain(ahead), engine.client.explain(*engine.enqueue({}))
        [row] = engine.store.nodes()
        assert is_alive(row, engine.store.now())
        go_on.set()

    assert engine.client.get(sent).state is JobState.SUCCEEDED
    assert engine.seen(NodeStopped)
    assert why.gate is Gate.DUE  # its time comes first; nobody will be there then
    assert due.text.endswith(f"(node (node {node.deck.node}) stops): start penstock serve")
    later = engine.client.explain(*engine.enqueue({}))
    assert later.text == 'no running node serves lane "orders": start penstock serve'
    [row] = engine.store.nodes()
    assert (read(row.note).gone, is_alive(row, engine.store.now())) == (True, False)


async def test_told_twice_it_waits_for_nobody(engine: Engine) -> None:
    begun = asyncio.Event()

    async def never(_: Envelope) -> None:
        begun.set()
        await asyncio.Event().wait()

    engine.answers["orders"] = never
    async with engine.node() as node:
        [id_] = engine.enqueue({})
        await begun.wait()
        node.stop.set()
        node.hurry.set()

    job = engine.client.get(id_).live
    assert (job.state, job.recoveries, job.open) == (JobState.PENDING, 1, True)  # the same number goes again


async def test_a_target_that_fails_again_and_again_is_left_alone_and_tried_again(engine: Engine) -> None:
    engine.lane(target="http://shop.example/hook", retry=["0s", *["10ms"] * 30])
    broken = {"is": True}

    def answer(_: Envelope) -> Receipt | None:
        return TryAgain("HTTP 500: broken") if broken["is"] else None

    engine.answers["orders"] = answer
    async with engine.node(trip_after=5, open_for=timedelta(seconds=1)):
        ids = engine.enqueue(*({} for _ in range(4)))
        await engine.until(lambda: any(e.state == "open" for e in engine.seen(TargetChanged)))  # type: ignore[attr-defined]
        tried = len(engine.sent)
        assert engine.store.targets()["http://shop.example"].state == "open"
        broken["is"] = False
        await engine.ended(*ids)
        await engine.until(lambda: engine.store.targets() == {})  # the node tells of it by and by

    assert tried < 40


async def test_jobs_of_a_paused_target_wait_and_those_of_others_flow(engine: Engine) -> None:
    engine.lane(mode="block_on_error")
    house, office = "http://house.example", "http://office.example"
    engine.store.pause_target(house, paused=True, actor="ann", reason="they move")
    async with engine.node():
        kept = engine.enqueue(*({"target": f"{house}/{n}", "group": "house"} for n in range(3)))
        gone = engine.enqueue(*({"target": f"{office}/{n}", "group": "office"} for n in range(3)))
        await engine.ended(*gone)
        # The node takes the job up now and then to look again: keep the answer that named the gate.
        answers: list[Explanation] = []

        def paused() -> bool:
            answers.append(engine.client.explain(kept[0]))
            return answers[-1].gate is Gate.BREAKER

        await engine.until(paused)
        why = answers[-1]
        assert {call.envelope.group for call in engine.sent} == {"office"}

        engine.store.pause_target(house, paused=False, actor="ann", reason="they are there")
        await engine.ended(*kept)

    assert why.text.startswith(f"{house} is paused by ann (they move): penstock targets resume")
    assert (why.by, why.until, why.eta) == ("ann", None, None)
    assert engine.order()["house"] == kept
    assert [engine.client.get(id_).live.attempt for id_ in kept] == [1, 1, 1]


async def test_a_drained_node_finishes_what_it_has_and_claims_nothing_more(engine: Engine) -> None:
    engine.lane(lookahead="2h")
    begun, finish = asyncio.Event(), asyncio.Event()

    async def answer(_: Envelope) -> None:
        begun.set()
        await finish.wait()

    engine.answers["orders"] = answer
    async with engine.node() as node:
        [sent] = engine.enqueue({})
        await begun.wait()
        [ahead] = engine.enqueue({"run_at": engine.store.now() + timedelta(hours=1)})
        await engine.until(lambda: claimed(engine, ahead))
        number = node.deck.node
        engine.store.drain_node(number, draining=True, actor="ann", reason="a new machine")
        await engine.until(lambda: read(engine.store.nodes()[0].note).drains == 1)
        await engine.until(lambda: engine.client.get(ahead).state is JobState.PENDING)
        finish.set()
        await engine.ended(sent)
        await engine.until(lambda: read(engine.store.nodes()[0].note).drains == 0)
        [late] = engine.enqueue({})
        why = engine.client.explain(late)
        assert (why.gate, engine.client.get(late).state) == (Gate.LANE, JobState.PENDING)
        assert f"(node (node {number}) was told to drain)" in why.text

        engine.lane(lookahead="5s")  # nor does it claim that one now, before it is edited
        engine.store.drain_node(number, draining=False, actor="ann", reason="it stays")
        await engine.ended(late)
        engine.client.edit(ahead, run_at=engine.store.now(), reason="no need to wait")
        await engine.ended(ahead)

    assert [call.envelope.id for call in engine.sent] == [sent, late, ahead]
    assert [event.why for event in engine.seen(ReturnedJobs)] == ["the node drains"]
    assert engine.seen(Halted) == [Halted(node=number, by="ann", reason="a new machine"), Halted(node=number)]
