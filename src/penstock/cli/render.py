"""Answers on stdout: aligned and coloured on a terminal, tab-separated without a head in a pipe, or JSON."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

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
INDENT: Final = "    "
SENTENCE: Final = 16  # characters of a sentence that are worth showing


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
        places = _places([*zip(head, *cells, strict=True)], shutil.get_terminal_size().columns)
        click.echo(styled(_text([name.upper() for name in head], places), bold=True))
        for row in cells:
            click.echo(_text(row, places, colour=True))
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


class _Place(NamedTuple):
    """Where a column stands: on which line of its row, and how many characters it has."""

    line: int
    width: int


def _places(columns: Sequence[Sequence[str]], room: int) -> list[_Place]:
    """Give every column its place: what does not fit goes on the next line, and only sentences are cut.

    An id or a name is what one copies into the next command: it is worth a line of its own.
    """
    places: list[_Place] = []
    line, used = 0, 0
    for column in columns:
        width, sentence = max(map(len, column)), any(" " in text for text in column[1:])
        left = room - used - (len(GAP) if places else 0)
        if width > left and not (sentence and left >= SENTENCE) and places:
            line, used, left = line + 1, len(INDENT), room - len(INDENT)
        elif places:
            used += len(GAP)
        places.append(_Place(line, max(1, min(width, left)) if sentence else width))
        used += places[-1].width
    return places


def _text(cells: Sequence[str], places: Sequence[_Place], *, colour: bool = False) -> str:
    """Return a row as it is printed; the first cell that is a state has its colour."""
    lines: list[list[str]] = [[] for _ in range(places[-1].line + 1)]
    for text, (line, width) in zip(cells, places, strict=True):
        fits = text if len(text) <= width else text[: width - 1] + "…"
        padding = " " * (width - len(fits))
        if colour and fits in COLOURS:
            fits, colour = styled(fits, fg=COLOURS[fits]), False
        lines[line].append(fits + padding)
    while len(lines) > 1 and {part.strip() for part in lines[-1]} == {"-"}:
        lines.pop()
    return f"\n{INDENT}".join(GAP.join(parts).rstrip() for parts in lines)
