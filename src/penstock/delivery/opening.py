"""Finds sources by the name of the sink that fills them: a connection of `[sinks.NAME]`, or a kind.

Kinds of other packages come through the entry points of the group `penstock.sources`: the entry's name is the
kind, and it leads to an async function that takes options and supplies (ports/source.py).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, cast

from penstock.domain.names import near
from penstock.errors import InvalidSetting
from penstock.ports.source import Incoming, OpenKind, Options, Source, SourceUnavailable, Supplies
from penstock.scheduler.board import Board

GROUP: Final = "penstock.sources"
KINDS: Final[Mapping[str, str]] = {"embedded": "penstock.sources.embedded:open_embedded"}
UNOPENED: Final = timedelta(seconds=30)


def source_kinds() -> list[str]:
    """Return every kind of sink that messages can be received from here."""
    return sorted({*KINDS, *(point.name for point in entry_points(group=GROUP))})


def sources_of(sinks: Mapping[str, Options]) -> list[str]:
    """Return the names of all sinks that messages can be received from: kinds, and connections of them."""
    kinds = source_kinds()
    return [*kinds, *(name for name, options in sinks.items() if options.get("kind") in kinds)]


def queues_of(board: Board, sink: str) -> Callable[[], Sequence[str]]:
    """Return what tells the queues of all lanes that send pointers to a sink, as of the board's last look.

    Other formats are for consumers of other kinds, whom nobody is to take messages away from.
    """
    return lambda: sorted(
        {
            lane["queue"] or name
            for name, lane in board.lanes.items()
            if lane["sink"] == sink and lane["format"] in (None, "pointer")
        }
    )


class LateSource:
    """A source that is opened when it is first asked; while that fails, asking fails."""

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
        """Open the source if that was not done, and ask it."""
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
            try:
                kind = self.name if self._options is None else str(self._options.get("kind"))
                self._source = await opener(kind)(self._options or {}, self._supplies)
            except InvalidSetting as error:
                raise SourceUnavailable(f'source "{self.name}": {error}') from error
        return self._source


def opener(kind: str) -> OpenKind:
    """Return what opens a source of this kind, or raise SourceUnavailable."""
    if kind in KINDS:
        module, _, function = KINDS[kind].partition(":")
        return cast("OpenKind", getattr(import_module(module), function))
    for point in entry_points(group=GROUP, name=kind):
        try:
            return cast("OpenKind", point.load())
        except (ImportError, AttributeError) as error:
            raise SourceUnavailable(f'source kind "{kind}" of {point.value} is broken: {error}') from error
    close = near(kind, source_kinds())
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(source_kinds())}"
    raise SourceUnavailable(f'messages cannot be received from "{kind}"; {hint}')
