"""Bulk operations by a real node: worked off by whoever leads, in order, through a change of leaders."""

from datetime import timedelta

from penstock.domain.outcomes import Rejected
from penstock.domain.states import JobState
from penstock.ports.sink import Envelope
from penstock.stores.sql.store import SqlStore
from tests.scheduler.engine import ONE, Engine

STORES = ONE
QUICK = timedelta(milliseconds=50)


async def test_a_replay_goes_on_with_the_next_leader_and_keeps_the_order(engine: Engine) -> None:
    engine.lane(mode="next_on_error")
    broken = {"is": True}

    def answer(_: Envelope) -> Rejected | None:
        return Rejected("HTTP 410") if broken["is"] else None

    engine.answers["orders"] = answer
    async with engine.node(leader_ttl=timedelta(seconds=1), leader_every=QUICK):
        ids = engine.enqueue(*({"group": f"g{n % 2}"} for n in range(8)))
        await engine.ended(*ids, state=JobState.DEAD)
    broken["is"] = False
    engine.sent.clear()
    operation = engine.client.start("retry", "error:410", reason="it is back", rate=4)

    async with engine.node(leader_ttl=timedelta(seconds=1), leader_every=QUICK, operate_every=QUICK):
        await engine.until(lambda: engine.client.operation(operation.id).done > 0)
    begun = engine.client.operation(operation.id)
    async with engine.node(leader_ttl=timedelta(seconds=1), leader_every=QUICK, operate_every=QUICK):
        await engine.until(lambda: engine.client.operation(operation.id).state == "done")
        await engine.ended(*ids)

    ended = engine.client.operation(operation.id)
    assert (begun.matched, ended.done, ended.refused) == (8, 8, 0)
    assert engine.order() == {"g0": ids[0::2], "g1": ids[1::2]}


async def test_a_bug_that_one_operation_meets_ends_that_one_alone(engine: Engine) -> None:
    """Else it would end every node that leads, one after the other, and again after each start."""
    engine.lane(mode="next_on_error", enabled=False)
    ids = engine.enqueue({"group": "a"}, {"group": "b"})
    [broken, good] = [engine.client.start("hold", f"group:{name}", reason="x") for name in "ab"]
    spoilt = "UPDATE penstock.operations SET state = 'working', place = 'nowhere' WHERE id = :id"
    store = engine.store
    assert isinstance(store, SqlStore)
    store.db.write(lambda tx: tx.execute(spoilt, id=broken.id))

    async with engine.node(leader_every=QUICK, operate_every=QUICK):
        await engine.until(lambda: engine.client.operation(good.id).state == "done")
    ended = engine.client.operation(broken.id)
    assert (ended.state, str(ended.problem)[:17]) == ("failed", "a bug in Penstock")
    found = engine.store.find(ids)
    assert [found[id_].state for id_ in ids] == [JobState.PENDING, JobState.HELD]
