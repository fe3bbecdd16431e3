"""Mistakes in `[sinks.NAME]`, and lanes whose sink lacks settings: found by opening each connection.

Every kind reads its options before it connects, so a mistake shows whether or not anybody answers; whether
somebody does is for `penstock doctor` to say.
"""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from penstock.config.settings import Settings
from penstock.domain.lanes import Lane
from penstock.domain.sense import HTTP, check_url
from penstock.errors import InvalidSetting
from penstock.ports.clock import SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import OpenSink, SinkUnavailable
from penstock.sinks.open import KINDS, make_open

PATIENCE_S: Final = 1.0


def sink_mistakes(settings: Settings, lanes: Iterable[Lane]) -> Iterator[str]:
    """Yield what is wrong with connections, and with lanes because of them."""
    sinks, users = settings.sinks(), {str(lane["sink"]): lane.name for lane in lanes}
    kinds = {name: str(options.get("kind")) for name, options in sinks.items()}
    known = sorted({*sinks, *(users.keys() & KINDS.keys())})
    for name, error in asyncio.run(_mistakes(settings, known)).items():
        if name in sinks:
            place = f"sinks.{name}.{error.setting}"
            where = settings.file.where(["sinks", name, error.setting]) if settings.file else ""
            yield f"{where}: {place}: {error.problem}" if where else f"{place}: {error.problem}"
        else:
            lacks = f'"{name}" cannot be opened: {error.setting} {error.problem}'
            yield f'lanes.{users[name]}.sink: {lacks}, in a section [sinks.{name}] with kind = "{name}"'
    yield from _targets(kinds, lanes)


def _targets(kinds: Mapping[str, str], lanes: Iterable[Lane]) -> Iterator[str]:
    for lane in lanes:
        if kinds.get(lane["sink"]) == HTTP and lane["target"] is not None:
            try:
                check_url(lane["target"])
            except InvalidSetting as error:
                yield f"lanes.{lane.name}.{error}"


async def _mistakes(settings: Settings, names: Iterable[str]) -> dict[str, InvalidSetting]:
    executor = ThreadExecutor(2, name="penstock-check")
    open_sink = make_open(settings.sinks(), executor=executor, clock=SystemClock(), stream=sys.stderr)
    try:
        async with asyncio.TaskGroup() as tasks:
            asked = {name: tasks.create_task(_mistake(open_sink, name)) for name in names}
    finally:
        executor.close()
    return {name: error for name, task in asked.items() if (error := task.result()) is not None}


async def _mistake(open_sink: OpenSink, name: str) -> InvalidSetting | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            sink = await open_sink(name)
            await sink.close()
    except SinkUnavailable as error:
        return error.__cause__ if isinstance(error.__cause__, InvalidSetting) else None
    except TimeoutError:
        return None
    return None
