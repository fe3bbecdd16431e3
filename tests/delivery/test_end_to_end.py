"""Job, embedded queue, router, processing endpoint, webhook: in one process, as `penstock dev` runs it, and
with a router of its own that is killed in the middle of its work."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.client import Client
from penstock.stores.connect import connect
from penstock.testing.receiver import Answer, Request, receiver
from penstock.wire import timeline_object
from tests.chaos.processes import eventually
from tests.delivery.bench import Bench, ended


@pytest.fixture(params=["sqlite", "pg18"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/penstock.db"
    else:
        url = request.getfixturevalue("empty_postgres")()
    (tmp_path / "penstock.toml").write_text('[sinks.own]\nkind = "embedded"\nvisibility = "3s"\n')
    with closing(connect(url)) as store:
        store.migrate()
        yield Bench(url, Client(store), tmp_path)


async def test_every_hop_of_a_job_is_in_its_timeline(bench: Bench) -> None:
    async with receiver() as hook, ended(bench):
        bench.lane(target=hook.url)
        await bench.start("dev")
        [job_id] = bench.enqueue({"payload": {"n": 1}, "group": "g"})
        await bench.until([job_id], "succeeded")

    [request] = hook.requests
    job = bench.client.get(job_id)
    told = timeline_object(job, bench.client.timeline(job_id))["events"]
    assert [event["event"] for event in told] == ["enqueued", "claimed", "sent", "started", "succeeded"]
    assert (request.id, request.body, request.send) == (job_id, b'{"n":1}', 1)
    assert (job.live.attempt, job.live.receipt) == (1, "200")


@pytest.mark.parametrize("bench", ["pg18"], indirect=True)  # on SQLite it is tested with every broker
async def test_errors_retry_then_dead_then_the_group_waits_for_a_person(bench: Bench) -> None:
    def answer(request: Request) -> Answer:
        return Answer(status=500, body=b"broken") if request.body == b'"bad"' else Answer()

    async with receiver(answer=answer) as hook, ended(bench):
        bench.lane(target=hook.url)
        await bench.start("dev")
        ids = bench.enqueue(*({"payload": payload, "group": "g"} for payload in ("good", "bad", "next")))
        await bench.until(ids, "succeeded", "dead", "pending")
        [blocked] = bench.client.groups(blocked=True).groups
        dead, attempts = bench.client.get(ids[1]), bench.client.timeline(ids[1]).attempts
        bench.client.skip(ids[1], reason="not worth it")
        await bench.until(ids, "succeeded", "skipped", "succeeded")

    assert (blocked.group, blocked.blocker) == ("g", ids[1])
    assert (dead.live.reason, dead.error) == ("exhausted", "HTTP 500: broken")
    assert [(one.attempt, one.send, one.outcome) for one in attempts] == [
        (1, 1, "failed"),
        (2, 2, "exhausted"),
    ]
    good, bad, after = ids
    came = [(request.id, request.send) for request in hook.requests]
    assert came == [(good, 1), (bad, 1), (bad, 2), (after, 1)]


@pytest.mark.parametrize(("bench", "hold_until"), [("sqlite", "sent"), ("pg18", "done")], indirect=["bench"])
async def test_groups_keep_their_order_all_the_way(bench: Bench, hold_until: str) -> None:
    async with receiver() as hook, ended(bench):
        bench.lane(target=hook.url, hold_until=hold_until)
        await bench.start("dev")
        jobs = ({"payload": n, "group": f"g{n % 4}", "sequence": n} for n in range(40))
        ids = bench.enqueue(*jobs)
        await bench.until(ids, "succeeded")

    summary = hook.ledger.summary
    assert (summary.jobs, summary.out_of_order, summary.duplicates) == (40, 0, 0)


@pytest.mark.parametrize("bench", ["pg18"], indirect=True)
async def test_a_killed_router_loses_nothing_and_repeats_nothing(bench: Bench) -> None:
    """Its messages come again; whose job was at work meanwhile is told apart by the processing endpoint."""
    gate = asyncio.Event()
    async with receiver(answer=lambda _: Answer(gate=gate)) as hook, ended(bench):
        bench.lane(target=hook.url, mode="immediate")
        _, node = await bench.start("serve")
        first, _ = await bench.start_router(node)
        ids = bench.enqueue(*({"payload": n} for n in range(30)))
        await hook.received(10)
        first.kill()
        gate.set()  # what the node had begun it finishes, whoever asked for it
        await bench.start_router(node)
        await bench.until(ids, "succeeded")
        names = [f"{id_}:1" for id_ in ids]
        await eventually("an empty queue", lambda: not bench.client.store.queued("orders", names))

    sends = [(request.id, request.send) for request in hook.requests]
    assert sorted(sends) == sorted((id_, 1) for id_ in ids)


@pytest.mark.soak  # test_processing.py takes over a send that was begun without waiting for its time
@pytest.mark.parametrize("bench", ["sqlite"], indirect=True)
async def test_a_killed_node_is_made_up_for_and_its_repeats_are_of_the_same_send(bench: Bench) -> None:
    """It dies while it delivers: nobody knows what the receivers did, so those sends are made again."""
    never = asyncio.Event()
    held = 5

    def answer(request: Request) -> Answer:
        return Answer(gate=never) if len(hook.requests) < held and request.send == 1 else Answer()

    async with receiver(answer=answer) as hook, ended(bench):
        bench.lane(target=hook.url, mode="immediate", timeout="3s", lease="3s", retry=["0s"] * 9)
        node, _ = await bench.start("dev")
        ids = bench.enqueue(*({"payload": n} for n in range(15)))
        await hook.received(held)
        node.kill()
        never.set()
        await bench.start("dev")
        await bench.until(ids, "succeeded")

    again = [request for request in hook.requests if request.repeat is not None]
    assert {request.id for request in hook.requests} == set(ids)
    assert all(request.same_send or request.send == 2 for request in again)
    assert len(again) <= held + 10
