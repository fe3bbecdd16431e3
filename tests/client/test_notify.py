"""Nodes hear of what a client committed; whether they can or not changes nothing for the client."""

from collections.abc import Collection
from contextlib import closing
from datetime import timedelta

from penstock import AsyncClient, Client
from penstock.errors import StoreUnavailable
from penstock.ports.wakeups import Wakeups
from penstock.stores.memory import MemoryStore
from tests.client.conftest import LANE, put_lane

LONG = timedelta(seconds=30)
SOON = timedelta(milliseconds=10)


class OutOfReach(MemoryStore):
    """A store whose nodes cannot be told."""

    def wake(self, lanes: Collection[str]) -> None:
        raise StoreUnavailable(f"notify {sorted(lanes)}")


def heard(wakeups: Wakeups) -> frozenset[str] | None:
    """Return what there is to hear now."""
    return wakeups.wait(SOON)


def test_nodes_are_told_of_new_jobs_by_lane(memory: MemoryStore) -> None:
    put_lane(memory, "other")
    with closing(memory.wakeups()) as wakeups, Client(memory) as client:
        wakeups.wait(LONG)
        client.enqueue_many([{"lane": LANE}, {"lane": "other"}, {"lane": LANE}])
        assert heard(wakeups) == {LANE, "other"}
        client.enqueue_many([{"lane": "nowhere"}])
        assert heard(wakeups) is None


def test_nodes_are_told_of_what_operators_and_executors_do(memory: MemoryStore) -> None:
    with closing(memory.wakeups()) as wakeups, Client(memory) as client:
        job = client.enqueue(LANE, 1)
        wakeups.wait(LONG)
        for verb in (client.hold, client.release, client.retry):
            verb(job.id, reason="because")
            assert heard(wakeups) == frozenset()
        client.edit(job.id, payload=2, reason="because")
        assert heard(wakeups) == {LANE}
        client.report(job.id, 7, "succeeded")
        assert heard(wakeups) is None


async def test_an_async_client_tells_too(memory: MemoryStore) -> None:
    with closing(memory.wakeups()) as wakeups:
        wakeups.wait(LONG)
        async with AsyncClient(memory) as client:
            await client.enqueue(LANE)
        assert heard(wakeups) == {LANE}
        async with AsyncClient(memory, notify=False) as client:
            await client.enqueue(LANE)
        assert heard(wakeups) is None


def test_a_client_may_keep_quiet(memory: MemoryStore) -> None:
    with closing(memory.wakeups()) as wakeups, Client(memory, notify=False) as client:
        wakeups.wait(LONG)
        client.cancel(client.enqueue(LANE).id, reason="because")
        assert heard(wakeups) is None


def test_a_job_is_accepted_though_nobody_can_be_told(memory: MemoryStore) -> None:
    store = OutOfReach(memory.now, iter([f"01ARZ3NDEKTSV4RRFFQ69G5FA{n}" for n in "VWX"]).__next__)
    put_lane(store)
    with Client(store) as client:
        job = client.enqueue(LANE)
        client.hold(job.id, reason="because")
        assert client.get(job.id).state.label == "held"
