"""A store, and processes of Penstock on it, as an operator starts them."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.client import Client
from penstock.domain.lanes import lane
from tests.chaos.processes import BUG, PENSTOCK, Process, address, eventually, start

WAIT_S = 90.0


@dataclass(slots=True)
class Bench:
    """A store, and processes on it."""

    url: str
    client: Client
    folder: Path
    processes: list[Process] = field(default_factory=list)

    def lane(self, **said: Any) -> None:  # noqa: ANN401
        usual = {"sink": "own", "poll_interval": "50ms", "mode": "block_on_error", "retry": ["0s", "0s"]}
        self.client.store.put_lane(lane("orders", **{**usual, **said}), actor="test")

    def enqueue(self, *jobs: dict[str, Any]) -> list[str]:
        answers = self.client.enqueue_many([{"lane": "orders", **job} for job in jobs])
        return [answer.id for answer in answers]  # type: ignore[union-attr]

    async def until(self, ids: list[str], *states: str) -> None:
        """Wait until the jobs are in these states; one state is for all of them."""
        wanted = list(states) * len(ids) if len(states) == 1 else list(states)
        await eventually(f"{states}", lambda: self.states(ids) == wanted, within=WAIT_S)

    def states(self, ids: list[str]) -> list[str]:
        found = self.client.store.find(ids)
        return [found[id_].state.label for id_ in ids]

    async def start_router(self, node: str) -> tuple[Process, str]:
        """Start a router that brings messages to this node."""
        return await self.start("router", PENSTOCK_ROUTER__PROCESSING_ENDPOINT=f"{node}/api/dispatch/process")

    async def start(self, command: str, **environment: str) -> tuple[Process, str]:
        """Start a command on the store, and wait until it listens."""
        name = f"{command}-{len(self.processes)}"
        options = ("--store", self.url, "--port", "0")
        variables = {"PENSTOCK_HTTP__ALLOW_NETWORKS": "127.0.0.0/8"} | environment
        process = start(name, self.folder, *PENSTOCK, command, *options, environment=variables)
        self.processes.append(process)
        return process, await address(process)


@asynccontextmanager
async def ended(bench: Bench) -> AsyncIterator[Bench]:
    """End every process when the block does, and see that none found a bug."""
    try:
        yield bench
        for process in bench.processes:
            if process.alive:
                process.signal(signal.SIGTERM)
                assert await process.ended() == 0, process.told
            assert not BUG.search(process.told), process.told
    finally:
        for process in bench.processes:
            process.kill()
