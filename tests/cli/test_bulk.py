"""A great many lines: memory stays flat, Ctrl-C leaves nothing half done, running it again adds nothing."""

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.cli.bulk import Stream
from penstock.client import Client
from tests.cli.conftest import Run

COMMAND = [sys.executable, "-m", "penstock", "enqueue", "hello", "-"]
MILLION = 1_000_000
MIB = 1024 * 1024
# The same command, which says at its end how much memory it needed.
SCRIPT = """
import atexit, resource, sys
from penstock.cli.main import main
atexit.register(lambda: sys.stderr.write(f"KiB {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}"))
main(["enqueue", "hello", "-", "--progress"])
"""
MEASURED = [sys.executable, "-c", SCRIPT]


def line(number: int) -> bytes:
    return b'{"payload": {"n": %d, "text": "some words"}, "key": "k-%d", "tenant": "t-%d"}\n' % (
        number,
        number,
        number % 7,
    )


class Generated:
    """Lines that exist only while they are read."""

    def __init__(self, count: int, *, first: int = 0) -> None:
        self._lines = (line(first + n) for n in range(count))

    def read1(self, size: int, /) -> bytes:
        """Return about that many bytes."""
        part = io.BytesIO()
        while part.tell() < size and (text := next(self._lines, b"")):
            part.write(text)
        return part.getvalue()

    def fileno(self) -> int:
        """Say that there is no descriptor."""
        raise io.UnsupportedOperation


def jobs(path: Path) -> int:
    with closing(sqlite3.connect(path / "penstock.db")) as db:
        return int(db.execute("SELECT count(*) FROM penstock_contexts").fetchone()[0])


def test_memory_does_not_grow_with_the_number_of_lines(
    ready: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.cli.lines.MAX_LINES", 500)

    def peak(count: int, first: int) -> int:
        stream = Stream(as_json=False, stop_on_error=False, progress=False)
        tracemalloc.start()
        try:
            stream.run(client, {"lane": "hello"}, Generated(count, first=first))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            assert stream.tally.enqueued == count

    with Client("sqlite:///penstock.db") as client:
        few, many = peak(1_000, 0), peak(7_000, 1_000)

    assert jobs(tmp_path) == 8_000
    assert many < few * 1.2
    assert many < 20 * MIB


def test_ctrl_c_tells_what_was_written_and_running_it_again_adds_only_the_rest(
    ready: Run, tmp_path: Path
) -> None:
    """The process is stopped while it waits for more lines; then the whole file is fed again."""
    with subprocess.Popen(
        [*COMMAND, "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(map(line, range(300))))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(300)]
        process.stdin.write(b'{"payload": "half a line')
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert process.returncode == 130
    assert b"300 enqueued" in said
    assert b"stopped after line 300: every line up to there is dealt with, none after it" in said
    assert b"lines with a key are not enqueued twice" in said
    assert jobs(tmp_path) == 300

    again = ready("enqueue", "hello", "-", "--json", stdin=b"".join(map(line, range(500))))

    results = list(map(json.loads, again.stdout.splitlines()))
    assert [result["id"] for result in results[:300]] == [answer["id"] for answer in answers]
    assert "200 enqueued, 300 already there, 0 refused" in again.stderr
    assert jobs(tmp_path) == 500


def test_on_a_terminal_there_is_a_bar(ready: Run, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"".join(map(line, range(6_000))))
    terminal, theirs = os.openpty()
    with (
        (tmp_path / "lines").open("rb") as stdin,
        subprocess.Popen(COMMAND, stdin=stdin, stderr=theirs) as process,
    ):
        os.close(theirs)
        shown = b"".join(_output(terminal))
    os.close(terminal)

    assert process.returncode == 0
    assert re.search(rb"\[#+\.*\]\s+\d+%  5,000 lines  [\d,]+/s  \d:\d\d left", shown)
    assert b"6,000 enqueued, 0 already there, 0 refused" in shown


def _output(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how a terminal says that the other side is gone
            return
        if not part:
            return
        yield part


@pytest.mark.soak
def test_a_million_lines_interrupted_and_resumed(ready: Run, tmp_path: Path) -> None:
    """Memory stays under 150 MB, SIGINT in the middle loses nothing, the second run adds the rest once."""
    file = tmp_path / "million.ndjson"
    with file.open("wb") as out:
        for number in range(MILLION):
            out.write(line(number))

    def start() -> subprocess.Popen[bytes]:
        with file.open("rb") as stdin:
            return subprocess.Popen(MEASURED, stdin=stdin, stderr=subprocess.PIPE)

    began = time.monotonic()
    with start() as process:
        while jobs(tmp_path) < MILLION // 3:
            time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1].decode()
    stopped = re.search(r"stopped after line (\d+)", said)
    assert process.returncode == 130, said
    assert stopped is not None, said
    written = jobs(tmp_path)
    assert written == int(stopped[1])

    with start() as process:
        said = process.communicate(timeout=3600)[1].decode()
    assert process.returncode == 0, said
    assert f"{MILLION - written:,} enqueued, {written:,} already there, 0 refused" in said
    assert jobs(tmp_path) == MILLION
    with closing(sqlite3.connect(tmp_path / "penstock.db")) as db:
        assert db.execute("SELECT count(DISTINCT key) FROM penstock_contexts").fetchone()[0] == MILLION
    largest = int(said.rpartition("KiB ")[2])
    print(f"{time.monotonic() - began:.0f} s in two runs, at most {largest} KiB")  # noqa: T201 - the figures
    assert largest < 150 * 1024
