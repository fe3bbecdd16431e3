"""R3: PostgreSQL goes away, in every way it can, and comes back; nodes go on by themselves."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import psycopg
import pytest

from tests.chaos.bench import Bench, bench
from tests.chaos.processes import eventually, soon
from tests.chaos.traffic import offers
from tests.servers import Server, ServerUnavailableError, missing, running_server

BACK_WITHIN_S = 5.0
Mode = Literal["fast", "immediate"]
OTHERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of our own: these tests take it down, and bring it back."""
    try:
        with running_server(18, in_memory=True) as server:
            yield server
    except ServerUnavailableError as error:
        missing(str(error))


@asynccontextmanager
async def under_load(
    it: Bench, *, groups: int, per_second: int, at_most: int, within: float
) -> AsyncIterator[None]:
    """Have producers at work all the while; afterwards everything has to have come out right."""
    half = per_second * at_most // 2
    made = offers(it.rng, groups=groups, per_group=half // groups, unordered=half, ahead=4)
    over = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(it.producer().produce(made, per_second=per_second, until=over))
        await eventually("the first messages", lambda: it.listener.arrived() > 20)
        yield
        over.set()
        taken = await work
    await it.all_done(taken, within=within)
    assert all(node.process.alive for node in it.cluster.nodes.values())
    await it.cluster.stop()
    it.judge()
    assert it.cluster.troubles() == []


async def outage(server: Server, it: Bench, mode: Mode, *, down: float) -> None:
    """Take the server down, bring it back, and see messages arrive again."""
    await asyncio.to_thread(server.stop, mode)
    await soon(asyncio.Event(), down)
    await asyncio.to_thread(server.start)
    before = it.listener.arrived()
    await eventually("dispatch again", lambda: it.listener.arrived() > before, within=BACK_WITHIN_S)


@pytest.mark.timeout(120)
async def test_a_server_that_crashes_and_restarts_costs_nothing_but_time(
    tmp_path: Path, server: Server
) -> None:
    with server.database() as url:
        async with bench(tmp_path, url, seed=4, listen=("--delay", "20ms", "--fail", "3%")) as it:
            await it.start("a", "b")
            async with under_load(it, groups=50, per_second=120, at_most=90, within=45):
                await outage(server, it, "immediate", down=0)
                await outage(server, it, "fast", down=1)
                await outage(server, it, "immediate", down=4)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_outages_for_long(tmp_path: Path, server: Server) -> None:
    """However long the server is away: it is found again as soon as it is back."""
    with server.database() as url:
        async with bench(tmp_path, url, seed=17, listen=("--delay", "20ms", "--fail", "3%")) as it:
            await it.start("a", "b", "c")
            async with under_load(it, groups=50, per_second=60, at_most=800, within=120):
                await outage(server, it, "immediate", down=40)
                await outage(server, it, "fast", down=75)
                for _ in range(20):
                    await soon(asyncio.Event(), 3 + 7 * it.rng.random())
                    mode: Mode = "fast" if it.rng.random() < 0.5 else "immediate"
                    await outage(server, it, mode, down=5 * it.rng.random())


async def test_storms_of_terminated_connections_pass(tmp_path: Path, server: Server) -> None:
    with server.database() as url:
        async with bench(tmp_path, url, seed=5, listen=("--delay", "20ms")) as it:
            await it.start("a", "b")
            async with under_load(it, groups=12, per_second=80, at_most=60, within=45):
                for _ in range(8):
                    with suppress(psycopg.OperationalError), psycopg.connect(server.dsn) as connection:
                        connection.execute(OTHERS)
                    await soon(asyncio.Event(), 0.2)
                before = it.listener.arrived()
                await eventually("dispatch", lambda: it.listener.arrived() > before, within=BACK_WITHIN_S)
