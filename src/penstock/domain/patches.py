"""A change to many payloads: a merge patch (RFC 7396), which leaves alone all that it does not name.

Numbers keep their spelling: `1.10` stays `1.10`, and what no float can hold is not rounded.
"""

import json
from typing import Any, Final

MAX_DEPTH: Final = 60


class BadPatch(ValueError):
    """The payload cannot be changed in this way."""


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def merged(payload: str, patch: str) -> str:
    """Return a payload with the members of the patch set, and those that it says null of taken away."""
    try:
        before, changes = _read(payload), _read(patch)
    except (ValueError, RecursionError) as error:
        raise BadPatch(f"its payload is no JSON: {error}") from None
    if not isinstance(before, dict):
        raise BadPatch("its payload is no object, there is nothing to merge into")
    if not isinstance(changes, dict):
        raise BadPatch("a merge is an object of the members that change")
    return _write(_merge(before, changes, 0))


def _read(text: str) -> Any:  # noqa: ANN401 - whatever JSON says
    return json.loads(text, parse_float=_Number, parse_int=_Number)


def _merge(before: dict[str, Any], changes: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise BadPatch("it is nested too deeply")
    after = dict(before)
    for name, value in changes.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            inner = after.get(name)
            after[name] = _merge(inner if isinstance(inner, dict) else {}, value, depth + 1)
        else:
            after[name] = value
    return after


def _write(value: object) -> str:
    match value:
        case _Number():
            return str(value)
        case dict():
            return (
                "{"
                + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_write(v)}" for k, v in value.items())
                + "}"
            )
        case list():
            return "[" + ", ".join(map(_write, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
