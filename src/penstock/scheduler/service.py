"""A background service: call it again and again, at a pace, through failures, until told to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from penstock.errors import StoreUnavailable
from penstock.ports.events import StoreBack, StoreFailed, StoreGivenUp
from penstock.scheduler.ground import Ground, wait_for

FIRST_BACKOFF: Final = timedelta(milliseconds=100)
LONGEST_BACKOFF: Final = timedelta(seconds=5)
Tick = Callable[[], Awaitable[bool | None]]


async def run_service(
    part: str,
    tick: Tick,
    *,
    every: timedelta,
    ground: Ground,
    stop: asyncio.Event,
    start_at_once: bool = True,
) -> None:
    """Call `tick` until `stop` is set: again at once while it says there is more, else every `every`.

    A store that is away is waited for, longer each time; any other error ends the service, loudly.
    A tick that returns None had nothing to ask of the store: after a failure that is no sign that it answers
    again, but nobody waits for the call that failed any more.
    """
    failures, since = 0, 0.0
    if not start_at_once:
        await wait_for(stop, ground.spread(every))
    while not stop.is_set():
        busy: bool | None = False
        try:
            busy = await tick()
        except StoreUnavailable as error:
            since = since if failures else ground.monotonic()
            failures += 1
            ground.emit(StoreFailed(part=part, error=str(error), failures=failures))
        else:
            if failures and busy is None:
                ground.emit(StoreGivenUp(part=part))
            elif failures:
                ground.emit(StoreBack(part=part, after=ground.monotonic() - since))
            failures = 0
        if not busy:
            await wait_for(stop, ground.spread(backoff(every, failures)))


def backoff(every: timedelta, failures: int) -> timedelta:
    """Return how long to wait after so many failures in a row: as always at first, then doubling.

    What is done rarely is tried again sooner than it would be done: until it succeeds the node is not ready.
    """
    if not failures:
        return every
    doubled = FIRST_BACKOFF * (2.0 ** min(failures - 1, 10))
    return min(max(every, doubled), LONGEST_BACKOFF)
