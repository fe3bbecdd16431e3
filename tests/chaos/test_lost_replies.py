"""R4: answers of the database that never arrive. Nobody knows then, so everybody has to look again."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest

from penstock.app import WEDGED
from penstock.stores.postgres.database import PostgresDatabase
from tests.chaos.bench import IMPATIENT, bench, prepare
from tests.chaos.processes import address, soon, start
from tests.chaos.proxy import Fault, proxy
from tests.chaos.traffic import offers

OFTEN = (Fault.LOSE_COMMIT, Fault.LOSE_REPLY, Fault.CUT)
FAULTS = (*OFTEN, *OFTEN, *OFTEN, Fault.DELAY, Fault.HALF_CLOSE, Fault.BLACK_HOLE)


@pytest.mark.timeout(120)
async def test_lost_answers_lead_to_no_loss_and_no_second_claim(tmp_path: Path, pg18_dsn: str) -> None:
    done = await lose_answers(tmp_path, pg18_dsn, seed=6, groups=40)

    assert all(done[fault] for fault in Fault), done


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
async def test_lost_answers_for_long(tmp_path: Path, postgres_url: str, seed: int) -> None:
    await lose_answers(tmp_path, postgres_url, seed=seed, groups=400)


async def lose_answers(tmp_path: Path, url: str, *, seed: int, groups: int) -> Counter[Fault]:
    """Run two nodes behind a network that fails again and again; return what happened to it."""
    async with (
        proxy(url) as network,
        bench(tmp_path, url, seed=seed, listen=("--delay", "20ms")) as it,
    ):
        async with asyncio.TaskGroup() as tasks:
            for name in ("a", "b"):
                tasks.create_task(it.cluster.start(name, store=network.url))
        jobs = offers(it.rng, groups=groups, per_group=12, unordered=8 * groups, ahead=8)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(it.producer(over_api=0.9).produce(jobs, per_second=80))
            work.add_done_callback(lambda _: over.set())
            while not await soon(over, 0.2):
                missing = [fault for fault in Fault if not network.done[fault]]
                fault = it.rng.choice(missing or FAULTS)  # each kind at least once, however long it takes
                network.strike(fault, lambda links: it.rng.choice(sorted(links, key=id)))
        network.clear()
        await it.all_done(jobs, within=45)
        await it.cluster.stop()

        it.judge()

        assert it.cluster.troubles() == []
        return network.done


async def test_a_node_whose_store_neither_answers_nor_fails_ends_and_says_why(
    tmp_path: Path, pg18_dsn: str
) -> None:
    prepare(pg18_dsn, "http://127.0.0.1:1")
    async with proxy(pg18_dsn) as network:
        process = start("node", tmp_path, sys.executable, "-c", IMPATIENT, network.url)
        try:
            await address(process)
            network.silence()

            assert await process.ended(within=20) == WEDGED, process.told
            assert "the store has neither answered nor failed for 3s: giving up" in process.told
        finally:
            process.kill()


def test_a_network_that_says_nothing_is_noticed_unless_the_url_says_otherwise(pg18_dsn: str) -> None:
    for url, patience in [(pg18_dsn, 20_000), (f"{pg18_dsn}?tcp_user_timeout=1000&keepalives_idle=60", 1000)]:
        database = PostgresDatabase(url)
        try:
            said = database.read(lambda tx: tx.connection.info.get_parameters())
        finally:
            database.close()
        assert int(said["tcp_user_timeout"]) == patience
        assert int(said["keepalives_idle"]) == (10 if patience == 20_000 else 60)
