"""How asyncio code makes a blocking call: threads in production, inline in simulation."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from math import inf
from threading import Event, Lock
from time import monotonic, thread_time
from types import TracebackType
from typing import Protocol, Self, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs one blocking call beside the event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        """Return what the call returns, raise what it raises.

        Cancelling the wait does not undo the call: it may still take effect, even later.
        """
        ...


class ThreadExecutor:
    """A few threads of our own: a store's calls never queue behind somebody else's file reads.

    With `rest` threads that computed for a while do nothing for so many times as long before the next call:
    Python computes one thing at a time, and whoever asks on and on would take it from others. What one of
    them computed they rest for together, each a part: who asks does not wait for all of it at one call and
    for nothing at the next. When nobody asked for a while they have rested ahead, for as many seconds as they
    may `spare`.
    """

    def __init__(
        self, threads: int, *, name: str = "penstock", rest: float = 0.0, spare: float = 0.0
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._rest, self._spare, self._closed = rest / threads, spare, Event()
        self._until, self._lock = -inf, Lock()  # 0.0 is not long ago on a machine just started

    async def run(self, call: Callable[[], T]) -> T:
        """Return what the call returns, run by the next free thread with the caller's context variables."""
        context = copy_context()
        rested = partial(self._rested, call) if self._rest else call
        return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, rested)

    def _rested(self, call: Callable[[], T]) -> T:
        while (pause := self._until - monotonic()) > 0 and not self._closed.wait(pause):
            pass  # another thread may have computed meanwhile
        began = thread_time()
        try:
            return call()
        finally:
            computed = thread_time() - began
            with self._lock:
                since = max(self._until, monotonic() - self._spare)
                self._until = since + self._rest * computed

    def close(self) -> None:
        """Wait for calls that have begun, drop those that have not."""
        self._closed.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
