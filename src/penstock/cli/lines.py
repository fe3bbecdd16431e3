"""Lines of a stream in batches, and Ctrl-C that never tears one apart."""

import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from types import FrameType
from typing import Final, NamedTuple, Protocol

MAX_LINES: Final = 5_000
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
PATIENCE_S: Final = 0.1
_CHUNK: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class Source(Protocol):
    """What stdin is made of."""

    def read1(self, size: int, /) -> bytes:
        """Return what is there, at least one byte; nothing at the end."""
        ...

    def fileno(self) -> int:
        """Return the descriptor, or raise UnsupportedOperation."""
        ...


class Line(NamedTuple):
    """One line and its number, from 1; None = too long to be kept."""

    number: int
    text: bytes | None


class Lines:
    """Full batches when there is plenty, small ones when the writer is slow: no line waits for company."""

    def __init__(self, stream: Source) -> None:
        self.bytes_read = 0
        self.number = 0
        self._stream = stream
        self._ready: deque[Line] = deque()
        self._rest = bytearray()
        self._oversize = False
        self._ended = False

    def batch(self) -> list[Line]:
        """Return the next lines that are not blank; none at the end."""
        lines: list[Line] = []
        size = 0
        while len(lines) < MAX_LINES and size < MAX_BYTES:
            if self._ready:
                line = self._ready.popleft()
                size += len(line.text or b"")
                lines.append(line)
            elif self._ended or (lines and not self._more_soon()):
                break
            else:
                self._read()
        return lines

    def _more_soon(self) -> bool:
        try:
            return bool(select.select([self._stream.fileno()], [], [], PATIENCE_S)[0])
        except (UnsupportedOperation, ValueError):
            return True

    def _read(self) -> None:
        chunk = self._stream.read1(_CHUNK)
        self.bytes_read += len(chunk)
        if not chunk:
            self._ended = True
            chunk = b"\n" if self._rest or self._oversize else b""
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._keep(part)
            self._finish()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        if len(self._rest) + len(part) > MAX_LINE_BYTES:
            self._oversize = True
            self._rest.clear()
        elif not self._oversize:
            self._rest += part

    def _finish(self) -> None:
        self.number += 1
        text = None if self._oversize else bytes(self._rest)
        if self.number == 1 and text is not None:
            text = text.removeprefix(_BOM)
        self._oversize = False
        self._rest.clear()
        if text is None or text.strip():
            self._ready.append(Line(self.number, text))


class Interrupt:
    """Ctrl-C stops at once while lines are read; a batch that is being written is finished first.

    So what was written is known exactly. A second Ctrl-C does not wait: then it is not known (`cut`).
    """

    def __init__(self) -> None:
        self.asked = False
        self.cut = False
        self._reading = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take over SIGINT and SIGTERM for a while."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Mark the time in which nothing is lost by stopping; asked before, it stops here."""
        if self.asked:
            raise KeyboardInterrupt
        self._reading = True
        try:
            yield
        finally:
            self._reading = False

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if again or self._reading:
            self.cut = not self._reading
            raise KeyboardInterrupt
        _tell(b"\nfinishing the batch at hand; Ctrl-C again does not wait for it\n")


def _tell(text: bytes) -> None:
    """Write to stderr from a signal's handler: past the buffer, which may be in use just now."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), text)
