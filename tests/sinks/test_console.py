"""The console's lines."""

import io
from datetime import UTC, datetime

import pytest

from penstock.domain.outcomes import Accepted
from penstock.ports.executor import ThreadExecutor
from penstock.ports.sink import UNKNOWN, Envelope, Probed, SinkUnavailable
from penstock.sinks.console import ConsoleSink


class Frozen:
    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def envelope(**said: object) -> Envelope:
    return Envelope("01JOB", 1, "hello", 2, **said)  # type: ignore[arg-type]


async def written(executor: ThreadExecutor, *batch: Envelope) -> str:
    stream = io.StringIO()
    sink = ConsoleSink(stream, clock=Frozen(), executor=executor)
    assert await sink.send(batch) == [Accepted() for _ in batch]
    return stream.getvalue()


async def test_a_job_is_one_line(executor: ThreadExecutor) -> None:
    text = await written(executor, envelope(payload='{"n": 1}', group="g-1"), envelope())

    assert text == (
        '2026-03-01T12:00:00.123Z hello group=g-1 01JOB attempt=2 {"n": 1}\n'
        "2026-03-01T12:00:00.123Z hello 01JOB attempt=2 -\n"
    )


async def test_nothing_in_a_job_can_move_the_cursor_or_begin_a_line(executor: ThreadExecutor) -> None:
    text = await written(executor, envelope(payload='{"a":\n "\x1b[2J"}', group="a\r\nb\x07"))

    assert text.count("\n") == 1
    assert text[:-1].isprintable()


async def test_a_long_payload_is_cut(executor: ThreadExecutor) -> None:
    text = await written(executor, envelope(payload='"' + "é" * 5000 + '"'))

    assert len(text) < 300
    assert text.endswith("é…\n")


async def test_a_stream_that_cannot_write_a_character_shows_it_in_escapes(executor: ThreadExecutor) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    sink = ConsoleSink(stream, clock=Frozen(), executor=executor)

    assert await sink.send([envelope(payload='"日"')]) == [Accepted()]
    assert raw.getvalue().endswith(b'"\\u65e5"\n')


async def test_a_closed_stream_makes_it_unavailable(executor: ThreadExecutor) -> None:
    stream = io.StringIO()
    sink = ConsoleSink(stream, clock=Frozen(), executor=executor)
    stream.close()

    with pytest.raises(SinkUnavailable, match="cannot be written"):
        await sink.send([envelope()])
    assert await sink.probe([envelope()]) == [Probed(UNKNOWN)]
