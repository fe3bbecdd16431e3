"""What a request carries, checked before anything is done with it.

A batch is taken apart by where its elements begin and end; each is then read for itself. So one that no
reader would agree on is refused alone, and no payload is ever decoded and written anew.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request

from penstock.api.problems import Problem
from penstock.domain.payloads import SURROGATE

S = TypeVar("S", bound=msgspec.Struct)
MAX_BODY: Final = 8 * 1024 * 1024
MAX_BATCH: Final = 1000
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NEXT: Final = re.compile(r"[ \t\r\n]*([,\]])")
_TAIL: Final = re.compile(r"[ \t\r\n]*\}[ \t\r\n]*")
# Only where values end is asked for: numbers stay text, however long they are.
_SCAN: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


async def json_text(request: Request[Any, Any, Any]) -> str:
    """Return the body as text, or raise the Problem with it."""
    kind, options = request.content_type
    if kind != "application/json" or options.get("charset", "utf-8").lower() not in {"utf-8", "utf8"}:
        raise Problem(
            415,
            "wrong-content-type",
            f"the body is {kind or 'of no type'}"
            + (f" in {options['charset']}" if "charset" in options else ""),
            hint="send JSON in UTF-8 and the header Content-Type: application/json",
        )
    packed = request.headers.get("content-encoding", "identity")
    if packed.lower() != "identity":
        hint = "send the JSON as it is, without Content-Encoding"
        raise Problem(415, "wrong-content-type", f"the body is packed ({packed})", hint=hint)
    body = await request.body()
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise bad_json(f"the body is not UTF-8 (byte {error.start})") from None


def batch_of(text: str, name: str) -> list[str] | None:
    """Return the elements of `{"name": [...]}`, each as its exact text; None = it is no such object.

    An object that begins like one and does not end like one is a Problem.
    """
    head = re.compile(rf'[ \t\r\n]*\{{[ \t\r\n]*"{name}"[ \t\r\n]*:[ \t\r\n]*(\[)?').match(text)
    if head is None:
        return None
    if head[1] is None:
        raise bad_json(f'"{name}" is no list: write {{"{name}": [...]}}')
    elements: list[str] = []
    for element in _elements(text, head.end(), name):
        elements.append(element)
        if len(elements) > MAX_BATCH:
            raise Problem(
                413,
                "too-many",
                f"there are more than {MAX_BATCH} {name} in one request",
                hint=f"send at most {MAX_BATCH} at a time",
            )
    return elements


def _elements(text: str, at: int, name: str) -> Iterator[str]:
    """Yield the texts of a list's elements; what comes after the list must end the object."""
    at = _skipped(text, at)
    more = not text.startswith("]", at)
    while more:
        begin = _skipped(text, at)
        try:
            _, at = _SCAN.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise bad_json(f"the body is not JSON: {error.msg} at character {error.pos + 1}") from None
        except RecursionError:
            raise bad_json(f"the body is nested too deeply at character {begin + 1}") from None
        yield text[begin:at]
        match = _NEXT.match(text, at)
        if match is None:
            raise bad_json(f"the body is not JSON: Expecting ',' or ']' at character {at + 1}")
        at, more = match.end(), match[1] == ","
        if not more:
            at -= 1
    if _TAIL.fullmatch(text, at + 1) is None:
        raise bad_json(f'there is something beside "{name}": write {{"{name}": [...]}} and nothing else')


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def bad_json(detail: str) -> Problem:
    """Return the problem of a body that cannot be read."""
    return Problem(400, "bad-json", detail, hint="docs/reference/api.md shows what to write")


def json_object(text: str) -> dict[str, Any]:
    """Return an object of plain JSON, or raise the Problem with it: every name once, no NaN."""
    try:
        found = _STRICT.decode(text)
    except RecursionError:
        raise bad_json("it is nested too deeply") from None
    except ValueError as error:
        raise bad_json(f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise bad_json("it is no object")
    return found


def fitted(given: dict[str, Any], kind: type[S]) -> S:
    """Return an object as this kind of struct, or raise msgspec.ValidationError with what is wrong where."""
    try:
        return msgspec.convert(given, kind)
    except UnicodeEncodeError:  # what is not of its type, or not known, has a text that is none
        place = next((name for name, value in given.items() if not _is_text(name) or not _is_text(value)), "")
        where = f" - at `$.{place}`" if _is_text(place) else ""
        raise msgspec.ValidationError(f"{SURROGATE}{where}") from None


def _is_text(value: object) -> bool:
    """Say whether a value can be written as JSON in UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
