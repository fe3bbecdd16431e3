"""What `explain` says of jobs that a node has claimed, while it has them."""

import asyncio
from datetime import timedelta

import pytest

from penstock.domain.envelopes import Envelope
from penstock.domain.gates import Gate
from penstock.domain.pools import pool
from tests.scheduler.engine import Engine


async def test_a_job_whose_own_pool_was_deleted_counts_against_its_lanes_and_says_so(engine: Engine) -> None:
    engine.store.put_pool(pool("own"), actor="test")
    engine.store.put_pool(pool("narrow", max_in_flight=1), actor="test")
    engine.lane(pool="narrow")
    out: list[int] = []
    most: list[int] = []

    async def slow(_: Envelope) -> None:
        out.append(1)
        most.append(len(out))
        await asyncio.sleep(0)
        out.pop()

    engine.answers["orders"] = slow
    ids = engine.enqueue(*({"pool": "own"} for _ in range(8)))
    engine.store.delete_pool("own", actor="test")
    gone = 'its own pool "own" was deleted: beside its lane\'s those of pool "narrow" count'
    assert engine.client.explain(ids[0]).text.endswith(gone)
    async with engine.node():
        await engine.ended(*ids)

    assert most == [1] * 8


async def test_a_job_is_being_sent_and_another_waits_for_a_slot_of_its_pool(engine: Engine) -> None:
    engine.store.put_pool(pool("narrow", max_in_flight=1), actor="test")
    done = asyncio.Event()

    async def slow(_: Envelope) -> None:
        await done.wait()

    engine.answers["orders"] = slow
    ids = engine.enqueue({"pool": "narrow"}, {"pool": "narrow"})

    def texts() -> list[str]:
        return [engine.client.explain(id_).text for id_ in ids]

    async with engine.node(name="host"):
        await engine.until(lambda: any("is being sent by host (node" in text for text in texts()))
        await engine.until(lambda: any('the limit of pool "narrow"' in text for text in texts()))
        [sent] = [id_ for id_ in ids if "is being sent" in engine.client.explain(id_).text]
        first, again = engine.client.explain(sent), engine.client.explain(sent)
        assert (first.gate, first.eta) == (Gate.LEASE, None)
        assert first.since is not None
        assert first.since == again.since
        done.set()
        await engine.ended(*ids)


@pytest.mark.parametrize(
    ("settings", "job", "why"),
    [
        ({"max_in_flight": 1}, {}, "(max_in_flight = 1)"),
        ({"max_groups": 1}, {"mode": "next_on_error"}, "(max_groups = 1)"),
        ({"batch_size": 1}, {}, "(batch_size = 1)"),
        ({"rate": "2/h"}, {}, "(rate = 2/h)"),
    ],
)
async def test_a_job_that_no_node_may_claim_names_the_setting_that_keeps_it(
    engine: Engine, settings: dict[str, object], job: dict[str, object], why: str
) -> None:
    engine.lane(**settings)
    done = asyncio.Event()

    async def slow(_: Envelope) -> None:
        await done.wait()

    engine.answers["orders"] = slow
    ids = engine.enqueue(*({"group": f"g{n}", **job} for n in range(6)))
    async with engine.node(grace=timedelta(0)):
        await engine.until(lambda: why in engine.client.explain(ids[-1]).text)
        found = engine.client.explain(ids[-1])
        assert found.gate in (Gate.LANE, Gate.LEASE)  # the one that waits for a token is claimed
        assert found.eta is None or found.eta > engine.store.now() + timedelta(hours=1)
        done.set()
