"""Answers on stdout: aligned and coloured on a terminal, tab-separated without a head in a pipe, or JSON."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import click

from penstock.domain.durations import format_duration
from penstock.wire import encode, stamp

COLOURS: Final[Mapping[str, str]] = {
    "succeeded": "green",
    "dead": "red",
    "held": "yellow",
    "expired": "yellow",
    "claimed": "cyan",
    "dispatched": "cyan",
    "running": "cyan",
}
GAP: Final = "  "


def on_terminal() -> bool:
    """Say whether a person is looking."""
    return sys.stdout.isatty()


def styled(text: str, **style: str | bool) -> str:
    """Colour the text if there is somebody to see it who did not ask for none (NO_COLOR)."""
    if not on_terminal() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, **style)  # type: ignore[arg-type]


def print_json(value: object) -> None:
    """Print one JSON document on one line."""
    click.echo(encode(value))


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "") -> None:
    """Print rows; `empty` is what a person is told when there are none."""
    cells = [[cell(value) for value in row] for row in rows]
    if not cells:
        click.echo(empty, err=True, nl=bool(empty))
    elif on_terminal():
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        click.echo(styled(_line([name.upper() for name in head], widths), bold=True))
        for row in cells:
            click.echo(_coloured(_line(row, widths), row, widths))
    else:
        for row in cells:
            click.echo("\t".join(row))


def counted(number: int, noun: str) -> str:
    """Return `1 error`, `2 errors`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair a line."""
    pairs = [(name, cell(value)) for name, value in facts]
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(
            f"{styled(name.ljust(width), bold=True)}{GAP}{value}" if on_terminal() else f"{name}\t{value}"
        )


def cell(value: object) -> str:
    """Return a value as one piece of text that no terminal takes for a command."""
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case datetime():
            return stamp(value.replace(microsecond=0))
        case list() | tuple():
            return ",".join(map(cell, value)) or "-"
        case _:
            return printable(str(value))


def printable(text: str) -> str:
    """Spell out control characters: what a caller put in a job must not move the cursor."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def ago(at: datetime | None, now: datetime) -> str:
    """Return how far away a time is: `5m ago`, `in 20s`."""
    if at is None:
        return "-"
    delta = at - now
    size = short(abs(delta))
    return f"in {size}" if delta > timedelta(0) else f"{size} ago"


def short(duration: timedelta) -> str:
    """Return about how long: two digits of the largest unit that has them."""
    for unit in (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)):
        if duration >= 2 * unit or unit == timedelta(seconds=1):
            return format_duration(duration // unit * unit)
    raise AssertionError


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    line = GAP.join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()
    room = shutil.get_terminal_size().columns
    return line if len(line) <= room else line[: max(1, room - 1)] + "…"


def _coloured(line: str, row: Sequence[str], widths: Sequence[int]) -> str:
    """Colour the first cell that is a state; padding and cutting were done on plain text."""
    begin = 0
    for text, width in zip(row, widths, strict=True):
        end = begin + len(text)
        if text in COLOURS and end <= len(line):
            return line[:begin] + styled(text, fg=COLOURS[text]) + line[end:]
        begin += width + len(GAP)
    return line
