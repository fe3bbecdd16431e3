"""R6: the disk under SQLite is full. What is not written is not acknowledged; space is all it needs."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from penstock import Client
from penstock.domain.payloads import Json
from penstock.errors import StoreUnavailable
from tests.chaos.bench import Bench, bench
from tests.chaos.processes import Overdue, eventually
from tests.chaos.traffic import MAIL, Offer, new_ids
from tests.servers import missing

SIZE = 8 * 1024 * 1024
BALLAST = 3 * 1024 * 1024
PAYLOAD = 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB, some of it taken by somebody else."""
    if os.geteuid() != 0:
        missing("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk],
        check=False,
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        missing(f"a small disk cannot be mounted here: {mounted.stderr}")
    try:
        (disk / "ballast").write_bytes(b"x" * BALLAST)
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


async def fill(it: Bench) -> list[str]:
    """Enqueue by client and by API until both are refused; return the ids that were refused."""
    refused: list[str] = []
    ids = new_ids(it.rng)
    [node] = it.cluster.alive()
    async with aiohttp.ClientSession() as session:
        while len(refused) < 6:
            offer = Offer({"lane": MAIL, "id": ids()}, '"' + "x" * PAYLOAD + '"')
            if len(it.ledger) > 1000:
                raise Overdue("this disk does not get full")
            taken = await (
                by_client(it.client, offer) if len(refused) % 2 else by_api(session, node.url, offer)
            )
            if taken:
                it.ledger.accept(offer.fields["id"], offer.job, asked_after=len(it.ledger))
            else:
                refused.append(offer.fields["id"])
    return refused


async def by_client(client: Client, offer: Offer) -> bool:
    try:
        await asyncio.to_thread(client.enqueue, payload=Json(offer.payload), **offer.fields)
    except StoreUnavailable as error:
        if "full" not in str(error):
            raise
        return False
    return True


async def by_api(session: aiohttp.ClientSession, url: str, offer: Offer) -> bool:
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}/api/jobs", data=offer.text.encode(), headers=headers) as answer:
        said = await answer.json(content_type=None)
    assert answer.status in (201, 503), said
    assert answer.status == 201 or "full" in said["detail"], said
    return answer.status == 201


@pytest.mark.timeout(120)
async def test_a_full_disk_refuses_jobs_and_space_is_all_it_takes(tmp_path: Path, small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'penstock.db'}"
    async with bench(tmp_path, url, seed=8, listen=("--delay", "20ms")) as it:
        it.client.store.pause_lane(MAIL, paused=True, actor="test", reason="let it pile up")
        node = await it.cluster.start("a")

        refused = await fill(it)

        assert it.client.store.find(refused) == {}
        assert set(it.client.store.find(list(it.ledger.accepted))) == set(it.ledger.accepted)
        (small_disk / "ballast").unlink()
        await eventually("room for one more", lambda: accepted(it))
        it.client.store.pause_lane(MAIL, paused=False, actor="test", reason="go")
        await it.all_done(within=30)
        assert node.process.alive
        await it.cluster.stop()
        it.judge()
        assert it.cluster.troubles() == []


def accepted(it: Bench) -> bool:
    offer = Offer({"lane": MAIL, "id": new_ids(it.rng)()}, '"one more"')
    try:
        it.client.enqueue(payload=Json(offer.payload), **offer.fields)
    except StoreUnavailable:
        return False
    it.ledger.accept(offer.fields["id"], offer.job, asked_after=len(it.ledger))
    return True
