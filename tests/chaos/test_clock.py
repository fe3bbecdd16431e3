"""R7: clocks that jump by an hour or run at another rate under a node: nothing goes early, twice or never."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp

from penstock.ports.clock import SystemClock
from penstock.testing.invariants.received import read_lines
from tests.chaos.bench import Bench, bench
from tests.chaos.clocks import Clock
from tests.chaos.processes import Node, eventually

HOUR = timedelta(hours=1)
ON_TIME = timedelta(seconds=5)  # a clock that is off would make it an hour


async def enqueue(node: Node, times: Sequence[datetime]) -> list[str]:
    """Enqueue jobs of the lane without order, through the node whose clock is set; return their ids."""
    jobs = [{"lane": "mail", "run_at": time.isoformat(), "payload": n} for n, time in enumerate(times)]
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{node.url}/api/jobs", json={"jobs": jobs}) as said,
    ):
        return [result["id"] for result in (await said.json())["results"]]


def arrivals(it: Bench) -> dict[str, list[datetime]]:
    found: dict[str, list[datetime]] = {}
    for line in read_lines(it.listener.log):
        found.setdefault(line["id"], []).append(datetime.fromisoformat(line["time"]))
    return found


async def wait_for(it: Bench, ids: Sequence[str], *, within: float) -> dict[str, list[datetime]]:
    await eventually("their arrival", lambda: arrivals(it).keys() >= set(ids), within=within)
    return {id_: times for id_, times in arrivals(it).items() if id_ in ids}


async def test_a_node_whose_clock_jumps_keeps_the_time_of_the_database(
    tmp_path: Path, pg18_dsn: str, clock: Clock
) -> None:
    async with bench(tmp_path, pg18_dsn, seed=14, lease="15s") as it:  # a busy machine renews late
        node = await it.cluster.start("a", environment=clock.environment)
        await eventually("a node at work", node.leads)
        start = SystemClock().now()
        due = [start + timedelta(milliseconds=1000 + 50 * n) for n in range(80)]
        ids = await enqueue(node, due)
        by_id = dict(zip(ids, due, strict=True))
        for after, offset in [(1.5, HOUR), (2.5, -HOUR), (3.5, timedelta(0)), (4.0, 2 * HOUR)]:
            until = start + timedelta(seconds=after)
            await eventually("the next step", lambda until=until: SystemClock().now() >= until)
            clock.step(offset)

        came = await wait_for(it, ids, within=20)

        assert {len(times) for times in came.values()} == {1}
        late = {id_: times[0] - by_id[id_] for id_, times in came.items()}
        assert min(late.values()) >= timedelta(0)
        assert max(late.values()) < ON_TIME
        assert node.metric("recovered_total") == node.metric("fenced_writes_total") == 0
        assert it.cluster.troubles() == []


async def test_a_node_whose_clock_runs_fast_or_slow_keeps_the_time_of_the_database(
    tmp_path: Path, pg18_dsn: str, clock: Clock
) -> None:
    async with bench(tmp_path, pg18_dsn, seed=19, lease="15s") as it:
        clock.drift(4)
        node = await it.cluster.start("a", environment=clock.environment)
        await eventually("a node at work", node.leads)
        start = SystemClock().now()
        due = [start + timedelta(milliseconds=1000 + 50 * n) for n in range(60)]
        ids = await enqueue(node, due)
        by_id = dict(zip(ids, due, strict=True))
        half = start + timedelta(seconds=2.5)
        await eventually("the next rate", lambda: SystemClock().now() >= half)
        clock.drift(0.25)

        came = await wait_for(it, ids, within=20)

        assert {len(times) for times in came.values()} == {1}
        late = {id_: times[0] - by_id[id_] for id_, times in came.items()}
        assert min(late.values()) >= timedelta(0)
        assert max(late.values()) < ON_TIME
        assert node.metric("recovered_total") == node.metric("fenced_writes_total") == 0
        assert it.cluster.troubles() == []


async def test_a_clock_that_jumps_under_sqlite_sends_once_and_never_early(
    tmp_path: Path, clock: Clock
) -> None:
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    async with bench(tmp_path, url, seed=15, listen=("--delay", "700ms")) as it:
        node = await it.cluster.start("a", environment=clock.environment)
        now = SystemClock().now()
        soon = await enqueue(node, [now + timedelta(milliseconds=1500 + 10 * n) for n in range(50)])
        clock.step(-HOUR)  # set back: what was about to go is due in an hour
        at_once = await enqueue(node, [now - 2 * HOUR] * 20)
        await wait_for(it, at_once, within=10)
        await eventually("their old time", lambda: SystemClock().now() > now + timedelta(seconds=3))
        assert not arrivals(it).keys() & set(soon)

        clock.step(timedelta(0))  # set right: they are late
        in_the_air = await wait_for(it, soon, within=10)
        later = await enqueue(node, [now + HOUR / 2] * 50)
        clock.step(HOUR)  # set forward: they are due
        await wait_for(it, later, within=10)
        clock.step(timedelta(0))
        again = await enqueue(node, [SystemClock().now() + timedelta(seconds=1)] * 10)
        await wait_for(it, again, within=10)
        await it.all_done(within=20)

        assert Counter(len(times) for times in arrivals(it).values()) == {1: 130}
        assert in_the_air.keys() == set(soon)
        assert it.cluster.troubles() == []


async def test_a_clock_that_is_set_forward_does_not_end_leases(tmp_path: Path, clock: Clock) -> None:
    """Every lease looks as if it had run out; whoever holds one must get the time to renew it."""
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    async with bench(tmp_path, url, seed=16, listen=("--delay", "2s"), max_in_flight=20) as it:
        node = await it.cluster.start("a", environment=clock.environment)
        await eventually("a leader", node.leads)
        ids = await enqueue(node, [SystemClock().now()] * 40)
        for jump in range(1, 6):
            before = SystemClock().now()
            await eventually("a moment", lambda before=before: SystemClock().now() - before > HOUR / 7200)
            clock.step(jump * HOUR)
        await it.all_done(within=30)

        assert Counter(len(times) for times in arrivals(it).values()) == {1: len(ids)}
        assert node.metric("recovered_total") == node.metric("fenced_writes_total") == 0
