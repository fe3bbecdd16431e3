"""The sink keeps the contract of all sinks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from penstock_filebox import FileboxSink

from penstock.domain.bodies import Writer
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import Envelope
from penstock.testing.sink_suite import Arrived, SinkBed, SinkSuite


class Bed:
    """A folder."""

    largest = 1024 * 1024
    writer = Writer(format="full", kind="filebox")

    def __init__(self, folder: Path, executor: ThreadExecutor) -> None:
        self.folder = folder
        self.executor = executor

    async def open(self) -> FileboxSink:
        return FileboxSink(self.folder, writer=self.writer, executor=self.executor)

    def address(self, envelope: Envelope) -> Envelope:
        return envelope

    def body(self, envelope: Envelope) -> bytes:
        return self.writer.body(envelope)

    async def arrived(self, number: int) -> list[Arrived]:
        found = sorted(self.folder.glob("*.json"))
        assert len(found) == number, "what was taken is there"
        return [Arrived(json.loads(file.read_bytes())["id"], file.read_bytes()) for file in found]

    def spoil(self, envelope: Envelope) -> Envelope:
        return envelope._replace(headers="not JSON")

    def stall(self) -> None:
        return None

    async def break_down(self) -> bool:
        self.folder.rename(self.folder.with_name("gone"))
        return True


class TestFilebox(SinkSuite):
    """Every case of the suite."""

    @pytest.fixture
    def bed(self, tmp_path: Path) -> Iterator[SinkBed]:
        """Return a folder of its own."""
        (folder := tmp_path / "box").mkdir()
        with ThreadExecutor(2, name="test") as executor:
            yield Bed(folder, executor)
