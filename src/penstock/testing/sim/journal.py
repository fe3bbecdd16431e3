"""What happened in a world, line by line."""

from collections.abc import Iterator
from typing import Final, NamedTuple

_TAIL: Final = 60


class Event(NamedTuple):
    """One line: when (virtual seconds), to whom ("" = the world), what."""

    time: float
    node: str
    event: str

    def __str__(self) -> str:
        """Return the line as it is printed."""
        return f"{self.time:12.6f}  {self.node or '-':<8}  {self.event}"


class Journal(list[Event]):
    """All events in order."""

    def of(self, node: str) -> list[str]:
        """Return what happened to a node (`a`, all its lives) or to one life of it (`a.2`)."""
        return [line.event for line in self if line.node == node or line.node.startswith(f"{node}.")]

    def tail(self, lines: int = _TAIL) -> Iterator[str]:
        """Yield the last lines for a report."""
        if len(self) > lines:
            yield f"... {len(self) - lines} events before"
        yield from map(str, self[-lines:])
