"""Text that leaves Penstock: what came from outside made fit to be shown, and times."""

import re
from datetime import UTC, datetime
from typing import Final

_BLANKS: Final = re.compile(r"\s+")


def shown(text: str, limit: int) -> str:
    """Return the beginning of a text on one line, without anything that could move a cursor."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * limit])
    line = _BLANKS.sub(" ", line).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def no_formula(text: str) -> str:
    """Return a cell of a table; what a spreadsheet would take for a formula is marked as text."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def stamp(at: datetime | None) -> str | None:
    """Return RFC 3339 in UTC, no finer than it needs to be."""
    return None if at is None else at.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
