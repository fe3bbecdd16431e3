"""What systemd is told (`Type=notify`): that a node serves, that it is alive, that it stops.

Without the variable NOTIFY_SOCKET nobody wants to know, and nothing is sent.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress

PARTS = 3  # of the time after which it counts as dead: how often it says that it is not


class Supervisor:
    """Whoever started this process, if it listens."""

    def __init__(self, variables: Mapping[str, str], monotonic: Callable[[], float]) -> None:
        place = variables.get("NOTIFY_SOCKET", "")
        self._place = f"\0{place[1:]}" if place.startswith("@") else place
        self._monotonic = monotonic
        self._every = _seconds(variables) / PARTS
        self._next = monotonic()

    def ready(self, url: str) -> None:
        """Say that the process serves."""
        self._say(f"READY=1\nSTATUS=serving {url}")

    def alive(self) -> None:
        """Say that the event loop turns, as often as somebody wants to hear it."""
        if self._every and self._monotonic() >= self._next:
            self._next = self._monotonic() + self._every
            self._say("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the process ends when it is done with what it has begun."""
        self._say("STOPPING=1")

    def _say(self, text: str) -> None:
        if not self._place:
            return
        # A supervisor that does not listen is no reason to stop.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.connect(self._place)
            out.send(text.encode())


def _seconds(variables: Mapping[str, str]) -> float:
    """Return after how many seconds of silence we are killed; 0 = never, or somebody else is meant."""
    if variables.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    text = variables.get("WATCHDOG_USEC", "")
    return int(text) / 1_000_000 if text.isdigit() else 0.0
