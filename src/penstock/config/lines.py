"""Where in a TOML text a key stands, so that a complaint can name the line.

The parser of the standard library forgets positions, so the line is looked for: good for files as people
write them, and no more than a help; None when it is not found.
"""

import re
from collections.abc import Sequence
from typing import Final

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE: Final = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_PAIR: Final = re.compile(rf"\s*({_DOTTED})\s*=")
_PARTS: Final = re.compile(_PART)


def line_of(text: str, path: Sequence[str]) -> int | None:
    """Return the line, from 1, of the key or table of this path, else of what holds it."""
    wanted = tuple(path)
    table: tuple[str, ...] = ()
    around: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TABLE.match(line):
            table = here = _split(match[1])
        elif match := _PAIR.match(line):
            here = table + _split(match[1])
        else:
            continue
        if here[: len(wanted)] == wanted:
            return number
        if wanted[: len(here)] == here:
            around = number
    return around


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PARTS.findall(dotted))
