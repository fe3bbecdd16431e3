"""A node of its own process for the dispatch benchmarks: the real engine, a sink that only notes the time.

`python -m bench.node URL` runs until its standard input ends, then prints one line of JSON: the time of each
call of the sink and how late it was after `run_at`, both in seconds of the machine's clock, and its memory.
"""

import asyncio
import json
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from penstock.app import hear
from penstock.domain.envelopes import Envelope
from penstock.garbage import spare_what_is_loaded
from penstock.ports.clock import SystemClock
from penstock.ports.events import Event
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Sink
from penstock.scheduler.ground import Ground
from penstock.scheduler.node import Node, NodeOptions
from penstock.scheduler.threads import Threads
from penstock.sinks.python import PythonSink
from penstock.stores.connect import connect

THREADS = 6
LOUD = {"LaneFailed", "StoreFailed", "SinkFailed", "LeaseLost"}


class Notebook:
    """The sink: notes when it was called, for which lane, and when that should have been."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float, str]] = []

    def note(self, envelope: Envelope) -> None:
        now = time.time()
        due = envelope.run_at.timestamp() if envelope.run_at else now
        self.calls.append((now, now - due, envelope.lane))


async def main(url: str, batch: int) -> None:
    clock, notebook = SystemClock(), Notebook()
    store, executor = connect(url), ThreadExecutor(THREADS)

    def emit(event: Event) -> None:
        if type(event).__name__ in LOUD:
            print(f"{datetime.now(UTC):%T} {event}", file=sys.stderr)

    async def open_sink(name: str) -> Sink:  # noqa: ARG001
        return PythonSink(notebook.note, max_batch=batch)

    def failed(error: BaseException) -> None:
        raise error

    ground = Ground(store, executor, clock, Random(), emit)  # noqa: S311
    node = Node(ground, open_sink, Threads(lambda: connect(url), clock, emit, failed), NodeOptions())
    loop = asyncio.get_running_loop()
    threading.Thread(target=hear, args=(store, loop, node.wake, node.stop), daemon=True).start()
    threading.Thread(target=_until_told, args=(loop, node), daemon=True).start()
    spare_what_is_loaded()
    await node.run()
    print(json.dumps({"calls": notebook.calls, "rss_mb": most_memory()}))
    executor.close()
    store.close()


def most_memory() -> float:
    """Return how many MB this process had at most; what getrusage says is also that of its parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def _until_told(loop: asyncio.AbstractEventLoop, node: Node) -> None:
    sys.stdin.read()
    loop.call_soon_threadsafe(node.stop.set)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
