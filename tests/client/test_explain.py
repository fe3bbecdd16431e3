"""`Client.explain`: what a store and its nodes know, put together."""

import os
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.async_client import AsyncClient
from penstock.client import Client
from penstock.domain.gates import Gate
from penstock.domain.lanes import lane
from penstock.domain.pools import pool
from penstock.domain.states import JobState
from penstock.domain.ulid import Ulids
from penstock.errors import NotFound
from penstock.ports.store import Ask, Store
from penstock.stores.memory import MemoryStore
from penstock.stores.sqlite.store import SqliteStore

URL = "https://example.com/hook"
HOUR = LATER = timedelta(hours=1)
ZERO = timedelta(0)


@pytest.fixture
def store() -> MemoryStore:
    ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
    store = MemoryStore(clock=lambda: datetime.now(UTC), ids=ids)
    store.put_pool(pool("web", rate="10/s", key="tenant"), actor="test")
    store.put_lane(lane("orders", sink="http", target=URL, pool="web"), actor="test")
    return store


@pytest.fixture
def client(store: MemoryStore) -> Client:
    return Client(store, actor="ann")


@pytest.fixture
def job(client: Client) -> str:
    return client.enqueue("orders", {"n": 1}, tenant="acme").id


def serve(store: MemoryStore, note: str = "{}") -> int:
    node = store.register_node("host-1")
    store.beat(node, note)
    return node


def test_a_job_that_nothing_holds_goes_next(store: MemoryStore, client: Client, job: str) -> None:
    assert client.explain(job).gate is Gate.LANE
    serve(store)

    found = client.explain(job.lower())
    assert (found.gate, found.state) == (Gate.DUE, JobState.PENDING)
    assert found.eta is not None


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_second_pause_is_dated_by_itself(tmp_path: Path, kind: str) -> None:
    """The row says paused all the time when the first pause ended by itself."""
    at = [datetime(2026, 3, 1, 12, tzinfo=UTC)]
    ids = Ulids(clock=lambda: time.time_ns() // 1_000_000, entropy=os.urandom)
    store: Store = MemoryStore(clock=lambda: at[0], ids=ids)
    if kind == "sqlite":
        store = SqliteStore(tmp_path / "penstock.db", clock=lambda: at[0])
        store.migrate()
    with closing(store):
        store.put_pool(pool("web"), actor="test")
        store.put_lane(lane("orders", pool="web"), actor="test")
        job = Client(store).enqueue("orders", {"n": 1}).id
        for name, pause in (("orders", store.pause_lane), ("web", store.pause_pool)):
            first = at[0]
            pause(name, paused=True, actor="ann", reason="a", until=first + HOUR)
            at[0] += HOUR / 2
            pause(name, paused=True, actor="ann", reason="longer", until=first + 2 * HOUR)
            assert Client(store).explain(job).since == first
            at[0] += 4 * HOUR
            pause(name, paused=True, actor="bob", reason="a", until=at[0] + HOUR)
            found = Client(store).explain(job)
            assert (found.since, found.by, found.until) == (at[0], "bob", at[0] + HOUR)
            pause(name, paused=True, actor="bob", reason="b")
            assert Client(store).explain(job).since == at[0]
            pause(name, paused=False, actor="bob", reason="over")


def test_a_job_that_nobody_knows_cannot_be_explained(client: Client) -> None:
    for unknown in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "nonsense"):
        with pytest.raises(NotFound):
            client.explain(unknown)


def test_who_disabled_or_paused_a_lane_is_found(store: MemoryStore, client: Client, job: str) -> None:
    serve(store)
    store.pause_lane(
        "orders", paused=True, actor="bob", reason="their API is down", until=store.now() + LATER
    )
    found = client.explain(job)
    assert (found.gate, found.by) == (Gate.LANE, "bob")
    assert found.since is not None
    assert (found.until is None, found.eta) == (False, None)  # others may share the rate of its pool

    changed = lane("orders", sink="http", target=URL, pool="web", enabled=False)
    store.put_lane(changed, actor="carl")
    found = client.explain(job)
    assert (found.gate, found.by) == (Gate.LANE, "carl")
    assert found.since is not None


def test_who_did_it_so_long_ago_that_nobody_looks_is_not_found(
    store: MemoryStore, client: Client, job: str
) -> None:
    serve(store)
    store.pause_lane("orders", paused=True, actor="bob", reason="x")
    for _ in range(1001):
        store.pause_group("orders", "g", paused=True, actor="bob", reason="x")
        store.pause_group("orders", "g", paused=False, actor="bob", reason="x")

    found = client.explain(job)
    assert (found.by, found.since) == ("bob", None)


def test_pools_targets_and_the_store_are_asked(store: MemoryStore, client: Client, job: str) -> None:
    serve(store)
    store.mark_target("https://example.com", failed=3, ok=0, trip_after=3, open_for=LATER, slow_for=ZERO)
    assert client.explain(job).gate is Gate.BREAKER
    store.pause_pool("web", paused=True, actor="bob", reason="x")
    found = client.explain(job)
    assert (found.gate, found.by) == (Gate.POOL, "bob")
    assert found.since is not None
    store.pause_store(paused=True, actor="bob", reason="x")
    assert client.explain(job).gate is Gate.STORE


def test_what_nodes_say_is_heard(store: MemoryStore, client: Client, job: str) -> None:
    node = serve(store, '{"lanes": ["orders"], "limits": {"pool/web/acme": "2999-01-01T00:00:00Z"}}')
    found = client.explain(job)
    assert (found.gate, found.until) == (Gate.KEY, datetime(2999, 1, 1, tzinfo=UTC))
    store.beat(node, '{"sinks": {"http": "no route"}}')
    assert client.explain(job).gate is Gate.SINK


def test_a_job_in_flight_and_one_that_ended_are_explained(
    store: MemoryStore, client: Client, job: str
) -> None:
    claim = store.claim(Ask(lane="orders", node=serve(store)))
    assert claim is not None
    found = client.explain(job)
    assert (found.gate, found.by) == (Gate.LEASE, "host-1 (node 1)")
    store.settle(claim)
    assert client.explain(job).gate is Gate.FINAL


async def test_the_async_client_explains_too(store: MemoryStore, job: str) -> None:
    async with AsyncClient(store) as client:
        assert (await client.explain(job)).gate is Gate.LANE
        assert (await client.groups()).groups == []


def test_a_group_is_found_by_lane_and_name(client: Client) -> None:
    head = client.enqueue("orders", group="A-1", mode="block_on_error").id

    assert client.group("orders", "A-1").head == head
    assert [row.group for row in client.groups(lane="orders").groups] == ["A-1"]
    with pytest.raises(NotFound, match='no group "A-2"'):
        client.group("orders", "A-2")
