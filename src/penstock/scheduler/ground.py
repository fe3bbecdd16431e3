"""What every part of a node stands on: a store it can call, a clock, luck, and somebody to tell."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, ParamSpec, Protocol, TypeVar

from penstock.ports.clock import Clock
from penstock.ports.events import Emit
from penstock.ports.executor import Executor
from penstock.ports.store import Store

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ground:
    """The ports of one node, or of a thread of it."""

    store: Store
    executor: Executor
    clock: Clock
    rng: Random
    emit: Emit

    async def call(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make one call of the store; it may take effect even when this raises or is cancelled."""
        return await self.executor.run(partial(method, *args, **kwargs))

    def monotonic(self) -> float:
        """Return the clock to wait by."""
        return self.clock.monotonic()

    def spread(self, delay: timedelta) -> float:
        """Return the delay in seconds, up to a tenth longer: nodes must not march in step."""
        return delay.total_seconds() * (1 + self.rng.random() / 10)


class Running(Protocol):
    """What was started beside the node."""

    def stop(self) -> None:
        """End it; what it is doing may still take effect."""


class Beside(Protocol):
    """Starts what a busy event loop must not delay: a thread with connections of its own.

    In simulation it is a task that never counts as busy. What it raises ends the node.
    """

    def __call__(self, name: str, main: Callable[[Ground], Coroutine[Any, Any, None]]) -> Running:
        """Run `main` beside the node until it is stopped."""


def cancelled() -> bool:
    """Say whether somebody cancelled this task; else a CancelledError came out of what it called.

    Drivers cancel futures of their own when a connection ends. Taken for ours it would end the task silently.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set or the time is up; say whether it is set."""
    if not event.is_set() and seconds > 0:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
    return event.is_set()
