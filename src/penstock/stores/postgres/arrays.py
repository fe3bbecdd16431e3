"""Array parameters as PostgreSQL reads them.

Every batch travels as one array per column. The driver converts arrays value by value in Python, at half a
microsecond each, which for twenty columns is more than the database needs to store the row; here a column is
converted by a handful of calls, whatever its length. A column without any value is sent as NULL: `unnest`
fills it up.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from psycopg import DataError

Column = Sequence[Any]
_number: Final = int.__repr__


def array(kind: str, values: Column) -> object:
    """Return a column as the parameter `%s::kind[]`; None when it holds nothing but None."""
    nulls = values.count(None)
    if nulls and nulls == len(values):
        return None
    return _WRITERS[kind](values, nulls=nulls > 0)


def listed(value: object) -> object:
    """Return the parameter of `= ANY(..)`: lists of numbers and of texts become array literals."""
    if not isinstance(value, list) or None in value:
        return value
    if value and isinstance(value[0], str):
        return _texts(value, nulls=False)
    return _plain(value, nulls=False) if not value or isinstance(value[0], int) else value


def _plain(values: Column, *, nulls: bool) -> str:
    """Numbers and booleans; not by str(), which for a state is its name."""
    if nulls:
        return f"{{{','.join(['NULL' if value is None else _number(value) for value in values])}}}"
    return f"{{{','.join(map(_number, values))}}}"


def _texts(values: Column, *, nulls: bool) -> str:
    if nulls:
        quoted = ('"' + _escaped(text) + '"' if text is not None else "NULL" for text in values)
        return f"{{{','.join(quoted)}}}"
    if not values:
        return "{}"
    # No text can hold NUL, so it can stand for the border between two of them while all are escaped at once.
    joined = "\0".join(values)
    if joined.count("\0") != len(values) - 1:
        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return '{"' + _escaped(joined).replace("\0", '","') + '"}'


def _times(values: Sequence[datetime | None], *, nulls: bool) -> str:  # noqa: ARG001
    return f"{{{','.join(['NULL' if at is None else at.isoformat() for at in values])}}}"


def _binary(values: Column, *, nulls: bool) -> object:  # noqa: ARG001
    return list(values)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_WRITERS: Final[Mapping[str, Callable[..., object]]] = {
    "bigint": _plain, "int": _plain, "smallint": _plain, "boolean": _plain,
    "text": _texts, "timestamptz": _times, "bytea": _binary,
}  # fmt: skip
