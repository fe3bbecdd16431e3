"""Sink `filebox`: a file per message in a folder, for whoever watches it and deletes what is done."""

import os
from collections.abc import Sequence
from pathlib import Path

from penstock.domain.bodies import Writer
from penstock.domain.envelopes import Unwritable
from penstock.domain.outcomes import Accepted, Duplicate, Receipt, Rejected
from penstock.errors import InvalidSetting
from penstock.ports.executor import Executor
from penstock.ports.sink import (
    RUNNING,
    UNKNOWN,
    Envelope,
    Options,
    Probed,
    SinkUnavailable,
    Supplies,
)


class FileboxSink:
    """Writes `folder/ID-SEND.json`, whole or not at all."""

    max_batch = 100
    keeps_order = False
    format = "full"
    complete_on = "sent"

    def __init__(self, folder: Path, *, writer: Writer, executor: Executor) -> None:
        self._folder = folder
        self._writer = writer
        self._executor = executor

    async def send(self, batch: Sequence[Envelope]) -> Sequence[Receipt]:
        """Write the batch in a thread: disks block."""
        return await self._executor.run(lambda: [self._put(envelope) for envelope in batch])

    async def probe(self, sends: Sequence[Envelope]) -> Sequence[Probed]:
        """Whoever is done deletes: a file that is still there waits or is at work."""
        return [Probed(RUNNING if self._path(one).exists() else UNKNOWN) for one in sends]

    async def close(self) -> None:
        """There is nothing to give up."""

    def _path(self, envelope: Envelope) -> Path:
        return self._folder / f"{envelope.id}-{envelope.number}.json"

    def _put(self, envelope: Envelope) -> Receipt:
        path = self._path(envelope)
        try:
            body = self._writer.body(envelope)
        except Unwritable as error:
            return Rejected(str(error))
        try:
            part = path.with_suffix(".part")
            part.write_bytes(body)
            os.link(part, path)
        except FileExistsError:
            return Duplicate(path.name)
        except OSError as error:
            raise SinkUnavailable(f"{self._folder} cannot be written to: {error}") from error
        finally:
            part.unlink(missing_ok=True)
        return Accepted(path.name)


async def open_filebox(options: Options, supplies: Supplies) -> FileboxSink:
    """Open the folder that `[sinks.NAME]` names."""
    folder = options.get("folder")
    if not isinstance(folder, str):
        raise InvalidSetting("folder", 'is missing: write folder = "/var/spool/orders"')
    if not await supplies.executor.run(Path(folder).is_dir):
        raise SinkUnavailable(f"there is no folder {folder}: make it")
    writer = supplies.writer("filebox", format=FileboxSink.format)
    return FileboxSink(Path(folder), writer=writer, executor=supplies.executor)
