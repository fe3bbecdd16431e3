"""R6: the disk is full. What is not written is not acknowledged; space is all it needs."""

import asyncio
import getpass
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import psycopg
import pytest

from penstock import Client
from penstock.domain.payloads import Json
from penstock.errors import StoreUnavailable
from tests.chaos.bench import Bench, bench
from tests.chaos.processes import Node, Overdue, eventually
from tests.chaos.traffic import MAIL, Offer, new_ids
from tests.conftest import PgServer
from tests.servers import server_user

MIB = 1024 * 1024
BALLAST = 3 * MIB
PAYLOAD = 20_000
FULL = re.compile("full|No space left|disk I/O error")


@contextmanager
def mounted(disk: Path, *, size: int) -> Iterator[None]:
    """Mount a small disk, some of it taken by somebody else."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")  # a right, not a server: nobody has to have it
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr}")
    try:
        (disk / "ballast").write_bytes(b"x" * BALLAST)
        yield
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


async def fill(it: Bench, *, api_alone: bool = False) -> list[str]:
    """Enqueue by client and by API until both are refused; return the ids that were refused."""
    refused: list[str] = []
    ids = new_ids(it.rng)
    [node] = it.cluster.alive()
    async with aiohttp.ClientSession() as session:
        while len(refused) < 6:
            # Random, for PostgreSQL packs what can be packed.
            offer = Offer({"lane": MAIL, "id": ids()}, f'"{it.rng.randbytes(PAYLOAD // 2).hex()}"')
            if len(it.ledger) > 1000:
                raise Overdue("this disk does not get full")
            taken = await (
                by_client(it.client, offer)
                if len(refused) % 2 and not api_alone
                else by_api(session, node.url, offer)
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
        if not FULL.search(str(error)):
            raise
        return False
    return True


async def by_api(session: aiohttp.ClientSession, url: str, offer: Offer) -> bool:
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}/api/jobs", data=offer.text.encode(), headers=headers) as answer:
        said = await answer.json(content_type=None)
    assert answer.status in (201, 503), said
    assert answer.status == 201 or FULL.search(said["detail"]), said
    return answer.status == 201


@pytest.mark.timeout(120)
async def test_a_full_disk_refuses_jobs_and_space_is_all_it_takes(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, size=8 * MIB):
        await fill_and_free(tmp_path, f"sqlite:///{disk / 'penstock.db'}", disk / "ballast")


async def test_files_that_may_not_grow_refuse_jobs_and_the_limit_is_all_it_takes(tmp_path: Path) -> None:
    """A process at its limit of file size, as `ulimit -f` sets it: others who use the file go on."""
    async with bench(tmp_path, f"sqlite:///{tmp_path / 'penstock.db'}", seed=18) as it:
        it.client.store.pause_lane(MAIL, paused=True, actor="test", reason="let it pile up")
        node = await it.cluster.start("a")
        limit_files(node, MIB)

        refused = await fill(it, api_alone=True)

        assert it.client.store.find(refused) == {}
        assert set(it.client.store.find(list(it.ledger.accepted))) == set(it.ledger.accepted)
        assert accepted(it), "another process"
        limit_files(node, resource.RLIM_INFINITY)
        it.client.store.pause_lane(MAIL, paused=False, actor="test", reason="go")
        await it.all_done(within=30)
        assert node.process.alive
        await it.cluster.stop()
        it.judge()
        assert it.cluster.troubles() == []


def limit_files(node: Node, size: int) -> None:
    """Let the files that a node writes to get that large."""
    resource.prlimit(node.process.popen.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def test_a_full_tablespace_refuses_jobs_and_space_is_all_it_takes(
    tmp_path: Path, pg_server: PgServer
) -> None:
    server = pg_server(18)
    disk = server.home / "disk"
    with mounted(disk, size=24 * MIB), psycopg.connect(server.dsn, autocommit=True) as admin:
        space = disk / "space"
        space.mkdir()
        shutil.chown(space, server_user() or getpass.getuser())
        admin.execute(f"CREATE TABLESPACE small LOCATION '{space}'".encode())
        admin.execute(b"CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
        try:
            await fill_and_free(tmp_path, server.url("small"), disk / "ballast")
        finally:
            admin.execute(b"DROP DATABASE small WITH (FORCE)")
            admin.execute(b"DROP TABLESPACE small")


async def fill_and_free(tmp_path: Path, url: str, ballast: Path) -> None:
    """Enqueue until the disk is full, make room, and see everything go."""
    async with bench(tmp_path, url, seed=8, listen=("--delay", "20ms")) as it:
        it.client.store.pause_lane(MAIL, paused=True, actor="test", reason="let it pile up")
        node = await it.cluster.start("a")

        refused = await fill(it)

        assert it.client.store.find(refused) == {}
        assert set(it.client.store.find(list(it.ledger.accepted))) == set(it.ledger.accepted)
        await asyncio.to_thread(ballast.unlink)
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
