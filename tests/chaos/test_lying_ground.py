"""R13: a store on lying ground is called that, by `penstock check` and by every node that starts on it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from penstock.ports.clock import SystemClock
from penstock.stores.health import disk_of, skew
from penstock.stores.memory.store import MemoryStore
from tests.chaos.bench import CONFIG, prepare
from tests.chaos.clocks import Clock
from tests.chaos.processes import PENSTOCK, cluster
from tests.servers import ServerUnavailableError, missing, running_server


def check(url: str, folder: Path, *, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Return how `penstock check` ends, and what it says."""
    done = subprocess.run(
        [*PENSTOCK, "check", "--store", url],
        check=False,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write into a folder, not even root, who needs a mount for that."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    bound = subprocess.run(["mount", "--bind", folder, folder], check=False, capture_output=True, text=True)
    if bound.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {bound.stderr}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


async def test_a_server_that_does_not_write_to_disk_is_named_at_every_start(tmp_path: Path) -> None:
    try:
        with (
            running_server(18, in_memory=True) as server,
            psycopg.connect(server.dsn, autocommit=True) as admin,
        ):
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                admin.execute(f"ALTER SYSTEM SET {setting} = off".encode())
            server.restart("fast")
            with server.database() as url:
                prepare(url, "http://127.0.0.1:1")
                code, said = check(url, tmp_path)
                async with cluster(tmp_path, url, CONFIG) as nodes:
                    node = await nodes.start("a")
                    told = node.process.told
    except ServerUnavailableError as error:
        missing(str(error))

    assert code == 0
    for warning in (
        "fsync = off: a crash may lose jobs that were accepted: set fsync = on",
        "synchronous_commit = off: a crash may lose jobs that were accepted",
        "full_page_writes = off: a crash may damage the database",
    ):
        assert f"warning: store: {warning}" in said
        assert f"warning: store: {warning}" in told


async def test_a_clock_that_is_off_is_named_at_every_start(
    tmp_path: Path, pg18_dsn: str, clock: Clock
) -> None:
    prepare(pg18_dsn, "http://127.0.0.1:1")
    clock.step(timedelta(seconds=10))

    _, said = check(pg18_dsn, tmp_path, environment=clock.environment)
    async with cluster(tmp_path, pg18_dsn, CONFIG) as nodes:
        node = await nodes.start("a", environment=clock.environment)
        told = node.process.told

    warning = "warning: store: clock = 10 s off this machine's: let both keep time by NTP"
    assert warning in said
    assert warning in told


@pytest.mark.parametrize(
    ("answered_after", "theirs", "said"),
    [(0, 0, []), (8, 4, []), (8, 7, []), (0, 3, ["3 s"]), (4, -8, ["10 s"]), (4, 9, ["7 s"])],
)
def test_a_store_that_answers_late_is_not_said_to_have_a_clock_that_is_off(
    answered_after: int, theirs: int, said: list[str]
) -> None:
    asked = SystemClock().now()
    store = MemoryStore(lambda: asked + timedelta(seconds=theirs), str)
    times = iter([asked, asked + timedelta(seconds=answered_after)])

    found = skew(store, lambda: next(times))

    assert [health.value for health in found] == [f"{off} off this machine's" for off in said]


def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    url = f"sqlite:///{folder / 'penstock.db'}"
    prepare(url, "http://127.0.0.1:1")

    with read_only(folder):
        code, said = check(url, tmp_path)
        served = subprocess.run(
            [*PENSTOCK, "serve", "--store", url, "--port", "0"],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    assert code == served.returncode == 4
    assert "is read-only, and SQLite writes beside its file: make it writable" in said
    assert "is read-only, and SQLite writes beside its file: make it writable" in served.stderr


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/srv/data/penstock.db", "nfs4"),
        ("/srv/data/local/penstock.db", None),
        ("/srv/a b/penstock.db", "cifs"),
        ("/srv/database/penstock.db", None),
        (None, None),
    ],
)
def test_a_file_on_a_network_is_named(file: str | None, kind: str | None) -> None:
    mounts = (
        "/dev/sda1 / ext4 rw 0 0\nhost:/x /srv/data nfs4 rw 0 0\n"
        "/dev/sdb1 /srv/data/local ext4 rw 0 0\n//host/y /srv/a\\040b cifs rw 0 0\n"
    )

    found = disk_of(file, mounts)

    assert [health.value for health in found] == ([] if kind is None else [kind])
    assert all("keep the file on a local disk" in str(health) for health in found)
