"""How many calls go to one host at a time: a host that hangs holds up its own messages, not those of others.

Calls beyond the limit wait for a moment: a host that answers frees places all the time. One that has freed
none for that long is left alone, the longer the longer it has been silent: its messages wait in the store,
and not in the places that others need. The limit is that of all nodes, each of which has a part: by
themselves they would fill the slots of a lane with calls to one host that hangs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from penstock.errors import PenstockError

PATIENCE_S: Final = 1.0
SHORTEST_REST_S: Final = 2.0
LONGEST_REST_S: Final = 5.0  # it may answer any moment, and nobody would notice sooner


class HostBusy(PenstockError):
    """Nothing was sent: all the places of this host stayed taken. `rest` is how long to leave it alone."""

    def __init__(self, name: str, most: int, silent_s: float) -> None:
        super().__init__(f"{name} has {most} calls to answer already (max_per_host)")
        self.rest = timedelta(seconds=min(max(silent_s, SHORTEST_REST_S), LONGEST_REST_S))


@dataclass(slots=True)
class _Host:
    places: asyncio.Semaphore
    most: int
    freed: float  # when a place was last given back, in seconds of the loop
    users: int = 0


class Hosts:
    """The places of each host that somebody uses or waits for; the others are not remembered."""

    def __init__(self, most: int, *, patience: float = PATIENCE_S) -> None:
        self._most = most
        self._nodes = 1
        self._patience = patience
        self._hosts: dict[str, _Host] = {}

    def divide(self, nodes: int) -> None:
        """Have a part of the places of every host; one in use that has more keeps them for now."""
        if nodes == self._nodes:
            return
        self._nodes = nodes
        for host in self._hosts.values():
            for _ in range(self._part - host.most):
                host.places.release()
            host.most = max(host.most, self._part)

    @property
    def _part(self) -> int:
        return max(1, self._most // self._nodes)

    @asynccontextmanager
    async def place(self, name: str, within: timedelta | None = None) -> AsyncIterator[None]:
        """Hold a place of this host, or raise HostBusy.

        `within` is how long whoever asks has for its whole call: it spends a small part of that here at most.
        """
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(asyncio.Semaphore(self._part), self._part, _now())
        host.users += 1
        try:
            await self._taken(host, name, within)
            try:
                yield
            finally:
                host.freed = _now()
                host.places.release()
        finally:
            host.users -= 1
            if not host.users:
                del self._hosts[name]

    async def _taken(self, host: _Host, name: str, within: timedelta | None) -> None:
        if not host.places.locked():  # nearly always, and it costs no timer
            await host.places.acquire()
            return
        until = host.freed + self._patience
        if within is not None:
            until = min(until, _now() + within.total_seconds() / 10)
        try:
            async with asyncio.timeout_at(until):
                await host.places.acquire()
        except TimeoutError:
            raise HostBusy(name, host.most, _now() - host.freed) from None


def _now() -> float:
    return asyncio.get_running_loop().time()
