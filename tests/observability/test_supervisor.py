"""What systemd is told."""

import socket
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM

import pytest

from penstock.observability.supervisor import Supervisor
from tests.chaos.processes import PENSTOCK, address, start
from tests.observability.ticking import Ticking


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        yield listener


def test_nobody_is_told_when_nobody_listens(tmp_path: Path) -> None:
    for place in ("", str(tmp_path / "gone"), "@gone"):
        supervisor = Supervisor({"NOTIFY_SOCKET": place}, lambda: 0.0)
        supervisor.ready("http://127.0.0.1:7070")
        supervisor.stopping()


def test_it_says_that_it_is_alive_three_times_before_it_is_killed(
    tmp_path: Path, systemd: socket.socket
) -> None:
    clock = Ticking()
    variables = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"}
    supervisor = Supervisor(variables, clock.monotonic)
    for _ in range(20):
        supervisor.alive()
        clock.seconds += 1

    systemd.setblocking(False)
    assert systemd.recv(100) == b"WATCHDOG=1"
    assert systemd.recv(100) == b"WATCHDOG=1"
    with pytest.raises(BlockingIOError):
        systemd.recv(100)


@pytest.mark.parametrize(
    "variables", [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}]
)
def test_a_watchdog_of_somebody_else_is_not_fed(
    tmp_path: Path, systemd: socket.socket, variables: dict[str, str]
) -> None:
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "notify"), **variables}, lambda: 1.0).alive()

    systemd.setblocking(False)
    with pytest.raises(BlockingIOError):
        systemd.recv(100)


async def test_a_node_says_when_it_serves_lives_and_stops(tmp_path: Path, systemd: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "600000"}
    made = start("dev", tmp_path, *PENSTOCK, "dev", "--once")
    assert await made.ended() == 0, made.told
    node = start("serve", tmp_path, *PENSTOCK, "serve", "--port", "0", environment=environment)
    try:
        assert systemd.recv(1000).decode() == f"READY=1\nSTATUS=serving {await address(node)}"
        assert systemd.recv(1000) == b"WATCHDOG=1"
        node.signal(SIGTERM)
        while (said := systemd.recv(1000)) != b"STOPPING=1":
            assert said == b"WATCHDOG=1"
        assert await node.ended() == 0
    finally:
        node.popen.kill()
        node.popen.wait()
