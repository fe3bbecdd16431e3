"""Sink `console`: one line per job on a stream, for a first look and for demonstrations."""

from collections.abc import Sequence
from typing import Final, TextIO

from penstock.brokers.options import known_only
from penstock.domain.envelopes import Envelope
from penstock.domain.outcomes import Accepted, Receipt
from penstock.domain.texts import shown
from penstock.ports.clock import Clock
from penstock.ports.executor import Executor
from penstock.ports.sink import UNKNOWN, Options, Probed, SinkUnavailable, Supplies

SHOWN: Final = 200


class ConsoleSink:
    """Writes lines; a stream that cannot be written to makes it unavailable."""

    max_batch = 500
    keeps_order = False
    format = "full"
    complete_on = "sent"

    def __init__(self, stream: TextIO, *, clock: Clock, executor: Executor) -> None:
        self._stream = stream
        self._clock = clock
        self._executor = executor

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Write the batch at once, so that lines of two batches never mix."""
        time = self._clock.now().isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        text = "".join(f"{time} {line(envelope)}\n" for envelope in batch)
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        await self._executor.run(lambda: self._write(text))
        return [Accepted() for _ in batch]

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Nobody remembers what was on a screen."""
        return [Probed(UNKNOWN) for _ in sends]

    async def close(self) -> None:
        """The stream is not ours to close."""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError) as error:
            raise SinkUnavailable(f"the console cannot be written to: {error}") from error


def line(envelope: Envelope) -> str:
    """Return a job on one line: what it is, and the beginning of what it holds."""
    group = "" if envelope.group is None else f" group={shown(envelope.group, SHOWN)}"
    payload = "-" if envelope.payload is None else shown(envelope.payload, SHOWN)
    return f"{envelope.lane}{group} {envelope.id} attempt={envelope.attempt} {payload}"


async def open_console(options: Options, supplies: Supplies) -> ConsoleSink:
    """Open the console of this process."""
    known_only(options)
    return ConsoleSink(supplies.stream, clock=supplies.clock, executor=supplies.executor)
