"""A log of JSON lines that are on disk before anybody is told so."""

import asyncio
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.ports.executor import ThreadExecutor
from penstock.wire import encode


class RequestLog:
    """Appends lines, in order. Lines that are waiting for the disk together share one flush."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._thread = ThreadExecutor(1, name="penstock-log")
        self._turn = asyncio.Lock()
        self._waiting: list[bytes] = []
        self._taken = 0
        self._written = 0
        self._broken: OSError | None = None

    async def append(self, facts: dict[str, Any]) -> None:
        """Return when the line is on disk; once one could not be written, none is any more."""
        self._waiting.append(f"{encode(facts)}\n".encode())
        self._taken += 1
        mine = self._taken
        async with self._turn:
            if self._written >= mine:
                return
            if self._broken is not None:
                raise self._broken
            lines, self._waiting = self._waiting, []
            try:
                await self._thread.run(lambda: self._write(b"".join(lines)))
            except OSError as error:
                self._broken = error
                raise
            self._written += len(lines)

    def close(self) -> None:
        """Close the file."""
        self._thread.close()
        self._file.close()

    def _write(self, text: bytes) -> None:
        self._file.write(text)
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
