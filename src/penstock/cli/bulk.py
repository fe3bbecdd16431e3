"""Many jobs from a stream of lines: a batch at a time, so that memory stays flat however many there are."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import click

from penstock.cli import INTERRUPTED
from penstock.cli.errors import UNPRINTED, Unprinted
from penstock.cli.lines import MAX_LINE_BYTES, Interrupt, Line, Lines, Source
from penstock.cli.options import note
from penstock.cli.order import advice, lost
from penstock.cli.progress import Progress, Result, Tally, rate, size_of
from penstock.client import Client
from penstock.errors import InvalidJob, PenstockError, StoreUnavailable
from penstock.ports.clock import Clock, SystemClock
from penstock.wire import encode, enqueue_object, enqueued_object

ERRORS_SHOWN: Final = 20


def enqueue_lines(
    client: Client, defaults: Mapping[str, Any], lines: Lines, interrupt: Interrupt
) -> Iterator[list[Result]]:
    """Yield what became of the lines, one written batch at a time."""
    while True:
        with interrupt.reading():
            batch = lines.batch()
        if not batch:
            return
        yield _write(client, defaults, batch)


def _write(client: Client, defaults: Mapping[str, Any], batch: list[Line]) -> list[Result]:
    parsed = [_parsed(line, defaults) for line in batch]
    good = [item for item in parsed if not isinstance(item, PenstockError)]
    answers = client.enqueue_stream(good, batch=len(batch))
    results = []
    for line, item in zip(batch, parsed, strict=True):
        answer = item if isinstance(item, PenstockError) else next(answers)
        if isinstance(answer, PenstockError) or isinstance(item, PenstockError):
            results.append(Result(line.number, answer))
        else:
            results.append(Result(line.number, answer, lost(client, item) is not None))
    return results


def _parsed(line: Line, defaults: Mapping[str, Any]) -> Mapping[str, Any] | PenstockError:
    if line.text is None:
        return InvalidJob("object", f"is longer than {MAX_LINE_BYTES} bytes: send where to find it instead")
    try:
        return {**defaults, **enqueue_object(line.text.decode())}
    except UnicodeDecodeError as error:
        return InvalidJob("object", f"is not UTF-8 text (byte {error.start + 1}): convert it first")
    except InvalidJob as error:
        return error


@dataclass(slots=True)
class Stream:
    """One run over a stream: what is printed while it goes and what is said at its end."""

    as_json: bool
    stop_on_error: bool
    progress: bool | None
    clock: Clock = field(default_factory=SystemClock)
    tally: Tally = field(default_factory=Tally)

    def run(self, client: Client, defaults: Mapping[str, Any], stdin: Source) -> None:
        """Enqueue every line; exit 1 when one was refused, 130 when interrupted."""
        began, lines, interrupt = self.clock.monotonic(), Lines(stdin), Interrupt()
        shown = sys.stderr.isatty() if self.progress is None else self.progress
        bar = Progress(sys.stderr, total=size_of(stdin), began=began) if shown else None
        try:
            with interrupt.watched():
                for results in enqueue_lines(client, defaults, lines, interrupt):
                    self._take(results, bar)
                    if bar is not None:
                        bar.show(self.tally, lines.bytes_read, self.clock.monotonic())
                    if self.stop_on_error and self.tally.refused:
                        break
        except (KeyboardInterrupt, StoreUnavailable, OSError) as error:
            self._sum_up(began, bar)
            self._say_how_to_go_on(known=not isinstance(error, StoreUnavailable) and not interrupt.cut)
            if isinstance(error, OSError) and error.errno in UNPRINTED:
                raise Unprinted(error, f"lines up to {self.tally.line} are dealt with") from error
            if not isinstance(error, KeyboardInterrupt):
                raise
            raise click.exceptions.Exit(INTERRUPTED) from None
        self._sum_up(began, bar)
        if self.tally.refused:
            raise click.exceptions.Exit(1)

    def _take(self, results: list[Result], bar: Progress | None) -> None:
        shown = self.tally.refused
        self.tally.add(results)
        if self.as_json:
            click.echo(
                "\n".join(encode({"line": line, **enqueued_object(answer)}) for line, answer, _ in results)
            )
            return
        for line, answer, _ in results:
            if isinstance(answer, PenstockError):
                shown += 1
                if bar is not None and shown <= ERRORS_SHOWN + 1:
                    bar.clear()
                if shown > ERRORS_SHOWN:
                    if shown == ERRORS_SHOWN + 1:
                        note("more refused lines are counted only; --json lists each", fg="red")
                    return
                note(f"line {line}: {answer}", fg="red")

    def _sum_up(self, began: float, bar: Progress | None) -> None:
        if bar is not None:
            bar.clear()
        tally, seconds = self.tally, self.clock.monotonic() - began
        text = f"{tally.enqueued:,} enqueued, {tally.duplicates:,} already there, {tally.refused:,} refused"
        note(f"{text}, in {seconds:.1f} s ({rate(tally.done, seconds)} lines/s)")
        if tally.unordered:
            what = f"{tally.unordered:,} of them have a group or sequence and mode immediate"
            note(f"note: {what}, {advice('LANE')}", fg="yellow")

    def _say_how_to_go_on(self, *, known: bool) -> None:
        line = self.tally.line
        rest = "none after it" if known else "of the next batch it is not known"
        note(
            f"stopped after line {line}: every line up to there is dealt with, {rest}\n"
            "Run it again to go on: lines with a key are not enqueued twice.\n"
            f"Without keys, leave out what is done: tail -n +{line + 1} FILE | penstock enqueue LANE -",
            fg="yellow",
        )
