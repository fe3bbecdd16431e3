"""Rows as PostgreSQL's COPY reads them: the cheapest way into a table, for the client and for the server.

As in `arrays`, a column is converted by a handful of calls; a value that all rows share is converted once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from psycopg import DataError

Column = Sequence[Any]
NULL: Final = "\\N"
SLICE: Final = 250


@lru_cache(maxsize=256)
def copy_sql(table: str, columns: tuple[str, ...]) -> bytes:
    """Return the statement that reads these columns."""
    return f"COPY penstock.{table} ({', '.join(columns)}) FROM STDIN".encode()


def rows_text(
    kinds: Mapping[str, str], shared: Mapping[str, object], own: Mapping[str, Column]
) -> Iterator[str]:
    """Yield rows as text, a slice at a time: the server stores one while the next is being written.

    Kinds and columns are by name; a row begins with the values that all rows share.
    """
    start = "".join(f"{_WRITERS[kinds[name]]([value])[0]}\t" for name, value in shared.items())
    writers = [_WRITERS[kinds[name]] for name in own]
    border = f"\n{start}"
    for first in range(0, len(next(iter(own.values()))), SLICE):
        columns = [
            write(column[first : first + SLICE]) for write, column in zip(writers, own.values(), strict=True)
        ]
        rows = border.join(map("\t".join, zip(*columns, strict=True)))
        yield f"{start}{rows}\n"


def _plain(values: Column) -> list[str]:
    return [NULL if value is None else str(value) for value in values]


def _times(values: Sequence[datetime | None]) -> list[str]:
    return [NULL if at is None else at.isoformat() for at in values]


def _texts(values: Column) -> list[str]:
    if None in values:
        return [NULL if text is None else _escaped(text) for text in values]
    # No text can hold NUL, so it can stand for the border between two of them while all are escaped at once.
    escaped = _escaped("\0".join(values)).split("\0")
    if len(escaped) != len(values):
        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return escaped


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


_WRITERS: Final[Mapping[str, Callable[[Any], list[str]]]] = {
    "bigint": _plain, "int": _plain, "smallint": _plain, "text": _texts, "timestamptz": _times,
}  # fmt: skip
