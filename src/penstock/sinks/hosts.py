"""How many calls go to one host at a time: a host that hangs holds up its own messages, not those of others.

Calls beyond the limit wait for a moment: a host that answers frees places all the time. One that does not is
left alone for a while, so that its messages wait in the store and not in the places that others need.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from penstock.errors import PenstockError

PATIENCE_S: Final = 1.0


class HostBusy(PenstockError):
    """Nothing was sent: all the places of this host stayed taken."""


@dataclass(slots=True)
class _Host:
    places: asyncio.Semaphore
    users: int = 0


class Hosts:
    """The places of each host that somebody uses or waits for; the others are not remembered."""

    def __init__(self, most: int, *, patience: float = PATIENCE_S) -> None:
        self._most = most
        self._patience = patience
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[None]:
        """Hold a place of this host, or raise HostBusy."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(asyncio.Semaphore(self._most))
        host.users += 1
        try:
            await self._taken(host.places, name)
            try:
                yield
            finally:
                host.places.release()
        finally:
            host.users -= 1
            if not host.users:
                del self._hosts[name]

    async def _taken(self, places: asyncio.Semaphore, name: str) -> None:
        if not places.locked():  # nearly always, and it costs no timer
            await places.acquire()
            return
        try:
            async with asyncio.timeout(self._patience):
                await places.acquire()
        except TimeoutError:
            raise HostBusy(f"{name} has {self._most} calls to answer already (max_per_host)") from None
