"""What tests of sinks open them with."""

import io
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from penstock.errors import InvalidSetting
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import OpenKind, Sink, SinkUnavailable, Supplies


def supplies(executor: ThreadExecutor) -> Supplies:
    return Supplies(
        executor=executor, clock=SystemClock(), stream=io.StringIO(), endpoint="http://node/process"
    )


@asynccontextmanager
async def opened(opening: Awaitable[Sink]) -> AsyncIterator[Sink]:
    sink = await opening
    try:
        yield sink
    finally:
        await sink.close()


async def complaint(open_kind: OpenKind, executor: ThreadExecutor, **options: str | float | bool) -> str:
    """Return what it says instead of opening."""
    with pytest.raises((SinkUnavailable, InvalidSetting)) as caught:
        await open_kind(options, supplies(executor))
    return str(caught.value)
