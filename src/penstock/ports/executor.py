"""How asyncio code makes a blocking call: threads in production, inline in simulation."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
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
    """A few threads of our own: a store's calls never queue behind somebody else's file reads."""

    def __init__(self, threads: int, *, name: str = "penstock") -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, call: Callable[[], T]) -> T:
        """Return what the call returns, run by the next free thread with the caller's context variables."""
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, call)

    def close(self) -> None:
        """Wait for calls that have begun, drop those that have not."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
