"""What runs beside the event loop in production: threads, each with a loop and connections of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from penstock.ports.clock import Clock
from penstock.ports.events import Emit
from penstock.ports.executor import ThreadExecutor
from penstock.ports.store import Store
from penstock.scheduler.ground import Ground

Main = Callable[[Ground], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Threads:
    """A `Beside`. What a thread raises is handed to `failed`, on the loop that made the threads."""

    open_store: Callable[[], Store]
    clock: Clock
    emit: Emit
    failed: Callable[[BaseException], None]
    _home: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def __call__(self, name: str, main: Main) -> "Started":
        """Run `main` in a thread of its own until it is stopped."""
        started = Started()
        thread = threading.Thread(
            target=self._run, args=(main, started), name=f"penstock-{name}", daemon=True
        )
        started.thread = thread
        thread.start()
        return started

    def _run(self, main: Main, started: "Started") -> None:
        try:
            asyncio.run(self._main(main, started))
        except Exception as error:  # noqa: BLE001 - handed on: a node without its heartbeat must not go on
            if not started.stopping.is_set():
                with suppress(RuntimeError):  # that loop is closed: there is no node left to tell
                    self._home.call_soon_threadsafe(self.failed, error)

    async def _main(self, main: Main, started: "Started") -> None:
        store, executor = self.open_store(), ThreadExecutor(1, name=threading.current_thread().name)
        ground = Ground(store, executor, self.clock, Random(), self.emit)  # noqa: S311 - spreads waits
        try:
            task = asyncio.current_task()
            started.loop, started.cancel = asyncio.get_running_loop(), task.cancel if task else None
            if not started.stopping.is_set():
                with suppress(asyncio.CancelledError):
                    await main(ground)
        finally:
            executor.close()
            store.close()


@dataclass(slots=True)
class Started:
    """A thread that runs."""

    thread: threading.Thread | None = None
    loop: asyncio.AbstractEventLoop | None = None
    cancel: Callable[[], bool] | None = None
    stopping: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End it and wait for that, but not for ever: a store that hangs must not keep the node alive."""
        self.stopping.set()
        if self.loop is not None and self.cancel is not None:
            with suppress(RuntimeError):  # it ended by itself
                self.loop.call_soon_threadsafe(self.cancel)
        if self.thread is not None:
            self.thread.join(timeout=5)
