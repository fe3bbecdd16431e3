"""Rows as PostgreSQL's COPY reads them: the cheapest way into a table, for the client and for the server.

As in `arrays`, a column is converted by a handful of calls; one that nobody filled is left to its default,
and a value that all rows share is converted once.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from psycopg import DataError

Column = Sequence[Any]
NULL: Final = "\\N"


@lru_cache(maxsize=256)
def copy_sql(table: str, columns: tuple[str, ...]) -> bytes:
    """Return the statement that reads these columns."""
    return f"COPY penstock.{table} ({', '.join(columns)}) FROM STDIN".encode()


def rows_text(
    kinds: Mapping[str, str], columns: Mapping[str, Column], unique: str
) -> tuple[tuple[str, ...], str]:
    """Return the names of the columns that hold something, and the rows of these as text.

    Kinds and columns are by name; the column `unique` is taken to differ from row to row.
    """
    shared: dict[str, str] = {}
    own: dict[str, list[str]] = {}
    for name, values in columns.items():
        write = _WRITERS[kinds[name]]
        if name == unique or values.count(values[0]) < len(values):
            own[name] = write(values)
        elif values[0] is not None:
            [shared[name]] = write(values[:1])
    start = "".join(f"{text}\t" for text in shared.values())
    rows = f"\n{start}".join(map("\t".join, zip(*own.values(), strict=True)))
    return (*shared, *own), f"{start}{rows}\n"


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
