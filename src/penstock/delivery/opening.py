"""Finds sources by the name of the sink that fills them: a connection of `[sinks.NAME]`, or a kind.

Kinds of other packages come through the entry points of the group `penstock.sources`: the entry's name is the
kind, and it leads to an async function that takes options and supplies (ports/source.py).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from penstock.brokers.options import with_files
from penstock.domain.names import near
from penstock.errors import InvalidSetting, StoreUnavailable
from penstock.ports.source import Incoming, OpenKind, Options, Source, SourceUnavailable, Supplies
from penstock.scheduler.board import Board
from penstock.sinks.open import EXTRAS

GROUP: Final = "penstock.sources"
KINDS: Final[Mapping[str, str]] = {
    "activemq": "penstock.sources.activemq:open_activemq",
    "embedded": "penstock.sources.embedded:open_embedded",
    "rabbitmq": "penstock.sources.rabbitmq:open_rabbitmq",
    "redis": "penstock.sources.redis:open_redis",
    "sqs": "penstock.sources.sqs:open_sqs",
}
UNOPENED: Final = timedelta(seconds=3)  # short, so that nobody finds out late how short it really is
IDLE_S: Final = 0.5


def source_kinds() -> list[str]:
    """Return every kind of sink that messages can be received from here."""
    return sorted({*KINDS, *(point.name for point in entry_points(group=GROUP))})


def sources_of(sinks: Mapping[str, Options]) -> list[str]:
    """Return the names of all sinks that messages can be received from: kinds, and connections of them."""
    kinds = source_kinds()
    named = [name for name, options in sinks.items() if options.get("kind") in kinds]
    return [*(kind for kind in kinds if kind not in sinks), *named]


def queues_of(board: Board, sink: str, default: str | None = None) -> Callable[[], Sequence[str]]:
    """Return what tells the queues of all lanes that send pointers to a sink, as of the board's last look.

    `default` is the own `queue` of the sink. Other formats are for consumers of other kinds, from whom nobody
    is to take messages away.
    """
    return lambda: sorted(
        {
            lane["queue"] or default or name
            for name, lane in board.lanes.items()
            if lane["sink"] == sink and lane["format"] in (None, "pointer")
        }
    )


class LateSource:
    """A source that is opened when there is a queue to be read; while that fails, asking fails."""

    def __init__(self, options: Options | None, supplies: Supplies) -> None:
        self.name = supplies.name
        self._options = options
        self._supplies = supplies
        self._source: Source | None = None

    @property
    def visibility(self) -> timedelta:
        """As the source has it."""
        return UNOPENED if self._source is None else self._source.visibility

    async def receive(self, limit: int) -> Sequence[Incoming]:
        """Ask the source, which is opened when the first lane uses it: most kinds are never used."""
        if self._source is None and not self._supplies.queues():
            await asyncio.sleep(IDLE_S)
            return []
        return await (await self._opened()).receive(limit)

    async def ack(self, messages: Sequence[Incoming]) -> None:
        """As the source does."""
        await (await self._opened()).ack(messages)

    async def nack(self, messages: Sequence[Incoming], *, delay: timedelta) -> None:
        """As the source does."""
        await (await self._opened()).nack(messages, delay=delay)

    async def extend(self, messages: Sequence[Incoming]) -> Sequence[Incoming]:
        """As the source does."""
        return await (await self._opened()).extend(messages)

    async def bury(self, messages: Sequence[Incoming]) -> None:
        """As the source does."""
        await (await self._opened()).bury(messages)

    async def close(self) -> None:
        """Close what was opened."""
        if self._source is not None:
            await self._source.close()

    async def _opened(self) -> Source:
        if self._source is None:
            options, executor = self._options or {}, self._supplies.executor
            kind = self.name if self._options is None else str(options.get("kind"))
            try:
                found = await executor.run(lambda: opener(kind))
                given = await executor.run(lambda: with_files(options))
                self._source = await found(given, self._supplies)
            except InvalidSetting as error:
                raise SourceUnavailable(f"[sinks.{self.name}] {error}") from error
            except StoreUnavailable as error:  # queues in a file of their own
                why = f"[sinks.{self.name}] url: {error}: check the file and its folder"
                raise SourceUnavailable(why) from error
        return self._source


def opener(kind: str) -> OpenKind:
    """Return what opens a source of this kind, or raise SourceUnavailable.

    It imports the kind's driver, which may take as long as a second the first time.
    """
    if kind in KINDS:
        return _loaded(EntryPoint(kind, KINDS[kind], GROUP))
    for point in entry_points(group=GROUP, name=kind):
        return _loaded(point)
    close = near(kind, source_kinds())
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(source_kinds())}"
    raise SourceUnavailable(f'messages cannot be received from "{kind}"; {hint}')


def _loaded(point: EntryPoint) -> OpenKind:
    try:
        return cast("OpenKind", point.load())
    except ImportError as error:
        extra = f': pip install "penstock[{point.name}]"' if point.name in EXTRAS else ""
        raise SourceUnavailable(f'source kind "{point.name}" lacks a package ({error}){extra}') from error
    except AttributeError as error:
        raise SourceUnavailable(f'source kind "{point.name}" of {point.value} is broken: {error}') from error
