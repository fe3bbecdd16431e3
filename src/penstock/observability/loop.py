"""How late the event loop is: everything in a node waits as long as this says."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

EVERY: Final = timedelta(milliseconds=500)


async def watch_loop(
    report: Callable[[float], None],
    *,
    monotonic: Callable[[], float],
    stop: asyncio.Event,
    every: timedelta = EVERY,
) -> None:
    """Report, again and again until `stop`, by how many seconds a wake-up came late."""
    while not stop.is_set():
        due = monotonic() + every.total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(every.total_seconds()):
                await stop.wait()
        if not stop.is_set():
            report(max(0.0, monotonic() - due))
