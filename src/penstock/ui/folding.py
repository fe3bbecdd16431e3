"""JSON as lines that fold: markup whose text is the JSON itself, so that what is copied is what was read."""

import json
from collections.abc import Iterator
from typing import Final

from markupsafe import Markup, escape

from penstock.ui.words import as_written, pretty, written

MOST_LINES: Final = 5_000  # more of them than anybody reads, and a page for a browser to sigh over
OPEN_LINES: Final = 80  # of what is longer than that, what lies deep begins folded
OPEN_DEPTH: Final = 1
LINE: Final = Markup("<div>{}\n</div>")
APART: Final = Markup('"<bdi>{}</bdi>"')  # only strings have such letters
FOLD: Final = Markup(
    '<details{}><summary data-holds="{}">{}<i hidden>\n</i></summary>{}</details><div>{}\n</div>'
)


def folded(text: str | None) -> Markup | None:
    """Return the lines of a JSON text, each object and array to be folded; None = it is none, or too long."""
    shown = pretty(text)
    lines = shown.count("\n") + 1
    if lines < 2 or lines > MOST_LINES:
        return None
    try:
        value = as_written(text or "")
    except (ValueError, RecursionError):
        return None
    everything = lines <= OPEN_LINES
    return Markup("").join(_lines(value, Markup(""), "", 0, everything=everything))


def _apart(token: str) -> Markup:
    """Return a name or a value as text of its own: written from right to left it moves nothing beside it."""
    return escape(token) if token.isascii() else APART.format(token[1:-1])


def _lines(value: object, before: Markup, after: str, depth: int, *, everything: bool) -> Iterator[Markup]:
    """Yield one value with what stands before it on its line and after it."""
    if not isinstance(value, dict | list) or not value:
        yield LINE.format(before + _apart(written(value)) + after)
        return
    begin, end = "{}" if isinstance(value, dict) else "[]"
    indent = "  " * (depth + 1)
    members = (
        [(_apart(json.dumps(name, ensure_ascii=False)) + ": ", each) for name, each in value.items()]
        if isinstance(value, dict)
        else [(Markup(""), each) for each in value]
    )
    inner = Markup("").join(
        part
        for number, (name, each) in enumerate(members, 1)
        for part in _lines(
            each, indent + name, "," if number < len(members) else "", depth + 1, everything=everything
        )
    )
    is_open = Markup(" open") if everything or depth <= OPEN_DEPTH else ""
    holds = f"{len(members):,}"
    yield FOLD.format(is_open, holds, before + begin, inner, "  " * depth + end + after)
