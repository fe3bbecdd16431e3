"""R2: nodes that sleep through their lease wake up, and find that nothing is theirs any more."""

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import Client
from penstock.app import WEDGED
from penstock.domain.lanes import lane
from penstock.domain.states import JobState
from penstock.stores.connect import file_of
from tests.chaos.bench import IMPATIENT, LEASE, Bench, bench
from tests.chaos.processes import Node, address, eventually, start
from tests.chaos.traffic import offers

LEADER_TTL_S = 15


def freeze(node: Node, url: str) -> None:
    """Stop a node in mid-work, but not while it is SQLite's one writer: then everybody would wait for it."""
    file = file_of(url)
    while True:
        node.process.signal(signal.SIGSTOP)
        # Its threads stop one by one: until the last has, one of them may still begin to write.
        os.waitid(os.P_PID, node.process.popen.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if file is None:
            return
        db = sqlite3.connect(file, timeout=0.5, isolation_level=None)
        with closing(db), suppress(sqlite3.OperationalError):
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
            return
        node.process.signal(signal.SIGCONT)


def held_by(it: Bench, numbers: set[int]) -> list[str]:
    """Return the jobs that these nodes have claimed."""
    page = it.client.list(state="claimed", limit=500)
    return [job.id for job in page.jobs if job.live.node in numbers]


def noticed(node: Node) -> float:
    """Say whether a node has found that a claim is not its own any more."""
    return node.metric("fenced_writes_total") + node.metric("leases_lost_total")


@pytest.mark.timeout(120)
async def test_a_leader_and_a_node_that_slept_too_long_change_nothing_when_they_wake(
    tmp_path: Path, store_url: str
) -> None:
    await sleepers(tmp_path, store_url)


@pytest.mark.soak
@pytest.mark.parametrize("again", range(5))
async def test_sleepers_again_and_again(tmp_path: Path, store_url: str, again: int) -> None:
    await sleepers(tmp_path, store_url, seed=again)


async def sleepers(tmp_path: Path, store_url: str, seed: int = 2) -> None:
    """Freeze the leader and another node under load until their work was taken over, then let them go on."""
    async with bench(tmp_path, store_url, seed=seed, listen=("--delay", "300ms"), max_in_flight=60) as it:
        await it.start("a", "b", "c")
        jobs = offers(it.rng, groups=40, per_group=20, unordered=400)
        async with asyncio.TaskGroup() as tasks:
            awake: list[Node] = []
            producer = it.producer(urls=lambda: [node.url for node in awake])
            work = tasks.create_task(producer.produce(jobs, per_second=60))
            leader = await eventually("a leader", lambda: next(filter(Node.leads, it.cluster.alive()), None))
            awake += [node for node in it.cluster.alive() if node is not leader]
            asleep = [leader, awake.pop()]
            await eventually("work for all", lambda: all(node.metric("claimed_total") for node in asleep))
            numbers = {await eventually("its number", lambda node=node: node.number) for node in asleep}
            for node in asleep:
                await asyncio.to_thread(freeze, node, store_url)
            assert held_by(it, numbers)

            await eventually("another leader", awake[0].leads, within=LEADER_TTL_S + 10)
            await eventually("their jobs taken over", lambda: not held_by(it, numbers), within=20)
            for node in asleep:
                node.process.signal(signal.SIGCONT)
            # By a write that is refused, or before it writes: whatever comes first.
            await eventually("that they notice", lambda: any(map(noticed, asleep)), within=15)
            await eventually("the old leader's retreat", lambda: not leader.leads(), within=10)
            await work
        await it.all_done(jobs, within=30)
        await it.cluster.stop()

        it.judge()

        assert it.cluster.troubles() == []
        logs = "".join(process.told for process in it.cluster.everything)
        assert "breaker open" not in logs, "the target was well all the time"


PLUG_IN = """
import os, time
from penstock.domain.outcomes import Accepted
from penstock.ports.sink import UNKNOWN, Probed

class Blocking:
    max_batch, keeps_order, format, complete_on = 1, False, "payload", "sent"

    async def send(self, batch):
        with open("blocking.log", "a") as log:
            print(batch[0].id, file=log, flush=True)
        time.sleep(float(batch[0].payload))  # it does not know better: the event loop stands still
        return [Accepted()]

    async def probe(self, sends):
        return [Probed(UNKNOWN)] * len(sends)

    async def close(self):
        pass

async def open_blocking(options, supplies):
    return Blocking()
"""


def install_plug_in(folder: Path) -> dict[str, str]:
    """Put a package with a sink of its own where a node finds it."""
    info = folder / "plugin" / "blocking-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blocking\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[penstock.sinks]\nblocking = blocking:open_blocking\n")
    (folder / "plugin" / "blocking.py").write_text(PLUG_IN)
    path = [str(folder / "plugin"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path)}


async def test_a_loop_that_is_blocked_for_twice_the_lease_loses_nothing(
    tmp_path: Path, store_url: str
) -> None:
    """R2b: the heartbeat is a thread; what the node holds stays its own, and nobody sends it again."""
    plug_in = install_plug_in(tmp_path)
    async with bench(tmp_path, store_url, seed=3, listen=("--delay", "300ms")) as it:
        it.client.store.put_lane(lane("blocking", sink="blocking", lease=LEASE), actor="test")
        leader = await it.cluster.start("a", "--lanes", "orders")
        await eventually("a leader", leader.leads)
        busy = await it.cluster.start("b", "--lanes", "blocking,mail", environment=plug_in)
        claimed = [it.client.enqueue("mail", n) for n in range(100)]
        waiting = ("mail", JobState.PENDING)
        await eventually("all are claimed", lambda: not it.client.counts().get(waiting))
        blocking = it.client.enqueue("blocking", 6.5)
        log = tmp_path / "blocking.log"
        await eventually("the call", lambda: log.exists() and blocking.id in log.read_text())

        ended = await asyncio.to_thread(it.client.wait, blocking.id, timedelta(seconds=15))

        await it.all_done(within=10)
        jobs = [ended, *it.client.store.find([job.id for job in claimed]).values()]
        assert log.read_text().split() == [blocking.id]
        assert ended.live.node == busy.number
        assert {(job.state.label, job.live.recoveries) for job in jobs} == {("succeeded", 0)}
        assert busy.metric("loop_delay_seconds_sum") > 6
        assert leader.metric("recovered_total") == busy.metric("fenced_writes_total") == 0
        assert it.listener.arrived() == len(claimed)


async def test_a_node_whose_event_loop_no_longer_turns_ends_and_says_why(
    tmp_path: Path, migrated_sqlite: str
) -> None:
    with Client(migrated_sqlite) as client:
        client.store.put_lane(lane("blocking", sink="blocking"), actor="test")
        process = start(
            "node",
            tmp_path,
            *(sys.executable, "-c", IMPATIENT, migrated_sqlite),
            environment=install_plug_in(tmp_path),
        )
        try:
            await address(process)
            job = client.enqueue("blocking", 600)

            assert await process.ended(within=20) == WEDGED, process.told
        finally:
            process.kill()
        assert "the event loop has not turned for 3s: giving up" in process.told
        assert (tmp_path / "blocking.log").read_text().split() == [job.id]
        assert client.get(job.id).state is JobState.CLAIMED, "whoever leads next finds it"
