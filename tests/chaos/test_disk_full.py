"""R6: the disk is full. What is not written is not acknowledged; space is all it needs."""

import asyncio
import getpass
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from tests.servers import Server, ServerUnavailableError, missing, running_server, server_user

MIB = 1024 * 1024
BALLAST = 3 * MIB
PAYLOAD = 20_000
FULL = re.compile("full|No space left|disk I/O error")
GONE = re.compile("")  # a server that ends says whatever its connections die of


@contextmanager
def mounted(disk: Path, *, size: int, ballast: int = BALLAST) -> Iterator[None]:
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
        (disk / "ballast").write_bytes(b"x" * ballast)
        yield
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


async def fill(it: Bench, *, api_alone: bool = False, why: re.Pattern[str] = FULL) -> list[str]:
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
                by_client(it.client, offer, why)
                if len(refused) % 2 and not api_alone
                else by_api(session, node.url, offer, why)
            )
            if taken:
                it.ledger.accept(offer.fields["id"], offer.job, asked_after=len(it.ledger))
            else:
                refused.append(offer.fields["id"])
    return refused


async def by_client(client: Client, offer: Offer, why: re.Pattern[str]) -> bool:
    try:
        await asyncio.to_thread(client.enqueue, payload=Json(offer.payload), **offer.fields)
    except StoreUnavailable as error:
        if not why.search(str(error)):
            raise
        return False
    return True


async def by_api(session: aiohttp.ClientSession, url: str, offer: Offer, why: re.Pattern[str]) -> bool:
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}/api/jobs", data=offer.text.encode(), headers=headers) as answer:
        said = await answer.json(content_type=None)
    assert answer.status in (201, 503), said
    assert answer.status == 201 or why.search(said["detail"]), said
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


@pytest.mark.soak
async def test_a_server_that_ended_for_a_full_disk_under_its_log_has_all_it_acknowledged(
    tmp_path: Path,
) -> None:
    """Without room for its log PostgreSQL ends; nodes wait for it, and go on when it is started again."""
    try:
        with running_server(18, in_memory=True) as server, log_on_a_small_disk(server) as ballast:
            with server.database() as url:
                await fill_log_and_free(tmp_path, url, server, ballast)
            server.stop("fast")
    except ServerUnavailableError as error:
        missing(str(error))


@contextmanager
def log_on_a_small_disk(server: Server) -> Iterator[Path]:
    """Move a server's log to a disk with room for two of its files; give what takes the rest of it."""
    server.stop("fast")
    log, disk = server.data_dir / "pg_wal", server.home / "disk"
    with mounted(disk, size=100 * MIB, ballast=60 * MIB):
        shutil.copytree(log, disk / "pg_wal")
        subprocess.run(["chown", "-R", server_user() or getpass.getuser(), disk / "pg_wal"], check=True)
        shutil.rmtree(log)
        log.symlink_to(disk / "pg_wal")
        server.start()
        yield disk / "ballast"


async def fill_log_and_free(tmp_path: Path, url: str, server: Server, ballast: Path) -> None:
    """Enqueue until the server is gone, make room, start it, and see everything go."""
    async with bench(tmp_path, url, seed=20, listen=("--delay", "20ms")) as it:
        it.client.store.pause_lane(MAIL, paused=True, actor="test", reason="let it pile up")
        node = await it.cluster.start("a")

        refused = await fill(it, why=GONE)

        assert "No space left on device" in server.log()
        await asyncio.to_thread(ballast.unlink)
        with suppress(RuntimeError):  # it may still be trying to come up
            server.stop("immediate")
        await asyncio.to_thread(server.start)
        await eventually("room for one more", lambda: accepted(it))
        written = it.client.store.find(refused)  # they got no answer: nobody knew
        assert set(it.client.store.find(list(it.ledger.accepted))) == set(it.ledger.accepted)
        it.client.store.pause_lane(MAIL, paused=False, actor="test", reason="go")
        await it.all_done(within=30)
        assert node.process.alive
        await it.cluster.stop()
        it.judge(others=sorted(written))
        assert it.cluster.troubles() == []


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
