"""How a long run is going: counts, and one line for whoever watches."""

import os
import stat
from dataclasses import dataclass
from io import UnsupportedOperation
from typing import Final, NamedTuple, TextIO

from penstock.cli.lines import Source
from penstock.domain.job import Enqueued
from penstock.errors import PenstockError

SHOW_EVERY_S: Final = 0.2
BAR: Final = 24
_ERASE: Final = "\r\x1b[K"


class Result(NamedTuple):
    """What became of one line."""

    line: int
    answer: Enqueued | PenstockError
    unordered: bool = False  # it asks for order that its mode does not keep


@dataclass(slots=True)
class Tally:
    """How it went so far; `line` is the last one that was dealt with."""

    line: int = 0
    enqueued: int = 0
    duplicates: int = 0
    refused: int = 0
    unordered: int = 0

    def add(self, results: list[Result]) -> None:
        """Count a batch."""
        for result in results:
            self.unordered += result.unordered
            if isinstance(result.answer, PenstockError):
                self.refused += 1
            elif result.answer.duplicate:
                self.duplicates += 1
            else:
                self.enqueued += 1
        self.line = results[-1].line

    @property
    def done(self) -> int:
        """How many lines that is."""
        return self.enqueued + self.duplicates + self.refused


def size_of(stream: Source) -> int | None:
    """Return how many bytes are to come, if it is a file; a pipe does not say."""
    try:
        descriptor = stream.fileno()
        status = os.fstat(descriptor)
        return status.st_size - os.lseek(descriptor, 0, os.SEEK_CUR) if stat.S_ISREG(status.st_mode) else None
    except (OSError, UnsupportedOperation):
        return None


class Progress:
    """One line that is written over and over, for a person; `total` bytes make it a bar."""

    def __init__(self, out: TextIO, *, total: int | None, began: float) -> None:
        self._out = out
        self._total = total
        self._began = began
        self._shown = began - SHOW_EVERY_S

    def show(self, tally: Tally, read: int, now: float) -> None:
        """Draw it anew, unless that was just done."""
        if now - self._shown >= SHOW_EVERY_S:
            self._shown = now
            self._out.write(_ERASE + self.text(tally, read, now - self._began))
            self._out.flush()

    def text(self, tally: Tally, read: int, seconds: float) -> str:
        """Return the line."""
        parts = [f"{tally.done:,} lines", f"{rate(tally.done, seconds)}/s"]
        parts += [f"{tally.duplicates:,} already there"] if tally.duplicates else []
        parts += [f"{tally.refused:,} refused"] if tally.refused else []
        if not self._total:
            return "  ".join(parts)
        share = min(1.0, read / self._total)
        full = int(share * BAR)
        left = int(seconds / share - seconds) if share else 0
        bar = f"[{'#' * full}{'.' * (BAR - full)}] {share:4.0%}"
        return "  ".join([bar, *parts, f"{left // 60}:{left % 60:02} left"])

    def clear(self) -> None:
        """Leave no trace, so that what is said next begins at the margin."""
        self._out.write(_ERASE)
        self._out.flush()


def rate(count: int, seconds: float) -> str:
    """Return how many in a second, for people."""
    return f"{count / max(seconds, 0.001):,.0f}"
