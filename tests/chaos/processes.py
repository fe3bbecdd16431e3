"""Real processes of Penstock: started, watched through what they write, and ended in every way there is.

What a process prints goes to files in its folder, so that it is there to be read when the process is not.
With `setpriv` a process dies with the test run, however that ends.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final, TypeVar

T = TypeVar("T")
PENSTOCK: Final = (sys.executable, "-m", "penstock")
LOOK_S: Final = 0.05
STARTS_WITHIN_S: Final = 60.0
BUG: Final = re.compile(
    r"Traceback|part of the node broke|never retrieved|never awaited|This is a bug| critical"
)


class Overdue(AssertionError):
    """Something that must happen did not happen in time."""


async def eventually(what: str, look: Callable[[], T], *, within: float = 60.0) -> T:
    """Return the first answer of `look` that is true; it is asked in a thread, for it may block."""
    deadline, last = monotonic() + within, None
    while monotonic() < deadline:
        last = await asyncio.to_thread(look)
        if last:
            return last
        await asyncio.sleep(LOOK_S)
    raise Overdue(f"not within {within:g} s: {what} (last seen: {last!r})")


async def soon(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, but only so long; say whether it came. What paces a disaster."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


@dataclass(slots=True)
class Process:
    """A command that was started. `said` is what it printed, `told` what it wrote to its log."""

    name: str
    folder: Path
    popen: subprocess.Popen[bytes]

    @property
    def said(self) -> str:
        return _read(self.folder / f"{self.name}.out")

    @property
    def told(self) -> str:
        return _read(self.folder / f"{self.name}.err")

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut does."""
        self.popen.kill()
        self.popen.wait()

    async def ended(self, *, within: float = 60.0) -> int:
        """Return its exit code."""
        await eventually(f"the end of {self.name}", lambda: not self.alive, within=within)
        return self.popen.returncode

    @property
    def most_memory(self) -> int:
        """What it occupied at most since it was started, in bytes."""
        lines = Path(f"/proc/{self.popen.pid}/status").read_text(encoding="utf-8").splitlines()
        [peak] = [line for line in lines if line.startswith("VmHWM:")]
        return int(peak.split()[1]) * 1024


def start(
    name: str,
    folder: Path,
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start a command in a folder."""
    leash = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_")}
    with (folder / f"{name}.out").open("ab") as out, (folder / f"{name}.err").open("ab") as err:
        popen = subprocess.Popen(
            [*leash, *command],
            cwd=folder,
            env=inherited | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    return Process(name, folder, popen)


@dataclass(slots=True)
class Node:
    """A `penstock serve` and where its API is."""

    process: Process
    url: str

    def metric(self, name: str) -> float:
        """Return a series of its /metrics, summed over its labels."""
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.get("/metrics").splitlines()
            if re.match(rf"penstock_{name}(\{{| )", line)
        )

    @property
    def number(self) -> int | None:
        """The number under which the store knows this node; None = it has told nobody yet."""
        number: int | None = json.loads(self.get("/api/stats"))["node"]["id"]
        return number

    def leads(self) -> bool:
        return self.metric("leader") == 1

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:  # noqa: S310 - its own
            return str(answer.read().decode())


@dataclass(slots=True)
class Cluster:
    """Nodes on one store. A node that is started again under its name is another node."""

    folder: Path
    store: str
    config: Path
    nodes: dict[str, Node] = field(default_factory=dict)
    everything: list[Process] = field(default_factory=list)
    _lives: int = 0

    async def start(self, name: str, *options: str, **how: Mapping[str, str] | str) -> Node:
        """Start a node and wait until it serves; `store` and `environment` may be its own."""
        process = self.launch(name, *options, **how)
        node = self.nodes[name] = Node(process, await address(process))
        return node

    def launch(
        self,
        name: str,
        *options: str,
        store: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a node and do not wait for it."""
        self._lives += 1
        command = (*PENSTOCK, "serve", "--store", store or self.store, "--config", str(self.config))
        process = start(
            f"{name}-{self._lives}", self.folder, *command, "--port", "0", *options, environment=environment
        )
        self.everything.append(process)
        return process

    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.process.alive]

    async def stop(self) -> None:
        """Ask every node to end, and insist that it does."""
        for node in self.alive():
            node.process.signal(signal.SIGTERM)
        for node in self.alive():
            assert await node.process.ended() == 0, node.process.told

    def close(self) -> None:
        for process in self.everything:
            if process.alive:
                process.signal(signal.SIGCONT)
                process.kill()

    def troubles(self) -> list[str]:
        """Return lines of the nodes' logs that no fault of the outside world explains."""
        return [
            f"{process.name}: {line}"
            for process in self.everything
            for line in process.told.splitlines()
            if BUG.search(line)
        ]


@asynccontextmanager
async def cluster(folder: Path, store: str, config: str) -> AsyncIterator[Cluster]:
    """Give a cluster without nodes; what was started in it is gone afterwards."""
    path = folder / "penstock.toml"
    path.write_text(config, encoding="utf-8")
    ours = Cluster(folder, store, path)
    try:
        yield ours
    except BaseException as error:
        for process in ours.everything:
            error.add_note(f"--- {process.name} ({process.popen.poll()})\n{process.told[-3000:]}")
        raise
    finally:
        ours.close()


@dataclass(slots=True)
class Listener:
    """A `penstock listen` with its log, in a process of its own that no fault hits."""

    process: Process
    url: str
    log: Path
    _seen: int = 0
    _offset: int = 0

    def arrived(self) -> int:
        """Return how many requests are on record."""
        with self.log.open("rb") as log:
            log.seek(self._offset)
            new = log.read()
        whole = new.rfind(b"\n") + 1
        self._seen += new.count(b"\n", 0, whole)
        self._offset += whole
        return self._seen


@asynccontextmanager
async def listening(folder: Path, *options: str) -> AsyncIterator[Listener]:
    """Give a receiver that keeps a log."""
    log = folder / "received.jsonl"
    process = start("listen", folder, *PENSTOCK, "listen", "--port", "0", "--json", "--log", log, *options)
    try:
        yield Listener(process, await address(process), log)
    finally:
        process.kill()


async def address(process: Process) -> str:
    """Return where a process serves, as soon as it says so."""

    def told() -> str | None:
        if not process.alive:
            raise Overdue(f"{process.name} ended: {process.said}{process.told}")
        line, whole, _ = process.said.partition("\n")
        if not whole:
            return None
        return str(json.loads(line)["listening"]) if line.startswith("{") else line.split()[-1]

    return await eventually(f"the address of {process.name}", told, within=STARTS_WITHIN_S)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
