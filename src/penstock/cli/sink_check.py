"""Mistakes in `[sinks.NAME]`, and lanes whose sink lacks settings: found by opening each connection.

Every kind reads its options before it connects, so a mistake shows whether or not anybody answers; whether
somebody does is for `penstock doctor` to say.
"""

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from penstock.config.settings import Settings
from penstock.domain.lanes import Lane
from penstock.domain.sense import HTTP, check_url
from penstock.errors import InvalidSetting, StoreUnavailable
from penstock.observability.logs import hush_drivers
from penstock.ports.clock import Clock, SystemClock
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import OpenSink, SinkUnavailable
from penstock.ports.store import Store
from penstock.sinks.open import KINDS, load, make_open
from penstock.stores.connect import connect, queues_file
from penstock.stores.memory import MemoryStore

PATIENCE_S: Final = 5.0


def sink_mistakes(settings: Settings, lanes: Iterable[Lane]) -> Iterator[str]:
    """Yield what is wrong with connections, and with lanes because of them."""
    sinks, users = settings.sinks(), {str(lane["sink"]): lane.name for lane in lanes}
    kinds = {name: str(options.get("kind")) for name, options in sinks.items()}
    known = sorted({*sinks, *(users.keys() & KINDS.keys())})
    hush_drivers()
    for name in list(sinks):
        try:
            load(kinds[name])  # first of all, and without a limit: a driver may take its time
        except SinkUnavailable as missing:
            known.remove(name)
            yield f"{_where(settings, name, 'kind')}{missing}"
    for name, error in asyncio.run(_mistakes(settings, known)).items():
        if name in sinks:
            yield f"{_where(settings, name, error.setting)}{error.problem}"
        else:
            lacks = f'"{name}" cannot be opened: {error.setting} {error.problem}'
            yield f'lanes.{users[name]}.sink: {lacks}, in a section [sinks.{name}] with kind = "{name}"'
    yield from _targets(kinds, lanes)


def _where(settings: Settings, name: str, setting: str) -> str:
    """Return the beginning of a complaint: where it is written, and what it is about."""
    where = settings.file.where(["sinks", name, setting]) if settings.file else ""
    return f"{where}: sinks.{name}.{setting}: " if where else f"sinks.{name}.{setting}: "


def _targets(kinds: Mapping[str, str], lanes: Iterable[Lane]) -> Iterator[str]:
    for lane in lanes:
        if kinds.get(lane["sink"]) == HTTP and lane["target"] is not None:
            try:
                check_url(lane["target"])
            except InvalidSetting as error:
                yield f"lanes.{lane.name}.{error}"


def queues_there(url: str, clock: Clock) -> Store:
    """Return the queues of a file; one that is not there is not made, but it must be possible to make it."""
    file = Path(queues_file(url))
    if file.exists():
        return connect(url)
    if not os.access(file.absolute().parent, os.W_OK):
        raise StoreUnavailable(f"connect to {file} (its folder is missing, or not ours to write in)")
    return MemoryStore(clock.now, str)


async def _mistakes(settings: Settings, names: Iterable[str]) -> dict[str, InvalidSetting]:
    executor = ThreadExecutor(2, name="penstock-check")
    clock = SystemClock()
    open_sink = make_open(
        settings.sinks(),
        executor=executor,
        clock=clock,
        queue=MemoryStore(clock.now, str),
        open_queues=lambda url: queues_there(url, clock),
        stream=sys.stderr,
    )
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
