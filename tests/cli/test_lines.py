"""Lines of a stream in batches, and Ctrl-C between them."""

import io
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.cli import lines as module
from penstock.cli.lines import Interrupt, Line, Lines


def batches(content: bytes) -> list[list[Line]]:
    lines = Lines(io.BytesIO(content))
    return list(iter(lines.batch, []))


@contextmanager
def pipe() -> Iterator[tuple[Lines, int]]:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream:
        yield Lines(stream), write


def test_lines_keep_their_numbers_and_blank_ones_are_passed_over() -> None:
    assert batches(b"\xef\xbb\xbfa\n\n  \nb\r\nlast") == [[Line(1, b"a"), Line(4, b"b\r"), Line(5, b"last")]]
    assert batches(b"") == []
    assert batches(b"\n\n") == []


def test_a_batch_ends_when_it_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINES", 2)
    assert [[line.number for line in batch] for batch in batches(b"a\nb\nc\n")] == [[1, 2], [3]]

    monkeypatch.setattr(module, "MAX_BYTES", 3)
    assert [[line.number for line in batch] for batch in batches(b"aaaa\nb\nc\n")] == [[1], [2, 3]]


def test_a_line_that_never_ends_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 100_000)

    found = batches(b"a\n" + b"x" * 1_000_000 + b"\nb\n" + b"y" * 200_000)

    assert found == [[Line(1, b"a"), Line(2, None), Line(3, b"b"), Line(4, None)]]


def test_lines_of_a_slow_writer_do_not_wait_for_a_full_batch() -> None:
    with pipe() as (lines, write):
        os.write(write, b"a\nb\nhalf")

        assert lines.batch() == [Line(1, b"a"), Line(2, b"b")]

        os.close(write)
        assert (lines.batch(), lines.batch()) == ([Line(3, b"half")], [])
        assert lines.bytes_read == 8


def test_ctrl_c_stops_reading_at_once() -> None:
    interrupt = Interrupt()

    with interrupt.watched(), pytest.raises(KeyboardInterrupt), interrupt.reading():
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_lets_what_is_being_written_finish_and_the_second_one_does_not(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    interrupt = Interrupt()

    with interrupt.watched():
        os.kill(os.getpid(), number)
        assert (interrupt.asked, interrupt.cut) == (True, False)
        with pytest.raises(KeyboardInterrupt), interrupt.reading():
            pytest.fail("it was asked to stop before")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert interrupt.cut
    assert "Ctrl-C again does not wait" in capfd.readouterr().err
