"""Payloads: JSON text, kept and delivered byte for byte, so what is let in is checked once and strictly.

Python values are looked at before they are written; text from outside is parsed. What one reader takes for
this value and another for that (duplicate keys, NaN, lone surrogates, NUL) is refused, and so is nesting deep
enough to break a reader.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from json import encoder
from math import isinf
from typing import Any, Final, Self

from msgspec.json import Encoder

from penstock.errors import PenstockError

MAX_NESTING: Final = 64
SURROGATE: Final = "holds a lone surrogate, which is no character: send the text without it"
NUL: Final = (
    "holds a NUL character, which databases and many readers cut off or refuse: send the text without it"
)
NUMBER: Final = "holds NaN, infinity or a number too long for any reader: send null or text instead"
NESTED: Final = f"is nested deeper than {MAX_NESTING} levels: flatten it, or send text that holds the rest"
_TEXT: Final = frozenset({str})
_SIMPLE: Final = frozenset({str, int, bool, type(None)})  # both encoders write these in the same way
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_STRINGS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_NUL: Final = "\\u0000"
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class BadPayload(PenstockError, ValueError):
    """A payload that is not plain JSON; the message says what to change."""


class Json(str):
    """JSON text to be stored exactly as it is: `payload=Json('{"a": 1}')`; bytes are read as UTF-8."""

    __slots__ = ()

    def __new__(cls, text: str | bytes) -> Self:
        """Return the text; what is no text, or bytes that are not UTF-8, raises BadPayload."""
        if isinstance(text, bytes):
            try:
                text = text.decode()
            except UnicodeDecodeError as error:
                raise BadPayload(
                    f"is not UTF-8 (byte {error.start}): encode it, or send it as base64 text"
                ) from None
        if not isinstance(text, str):
            raise BadPayload(_no_text(text))
        return super().__new__(cls, text)


def dumped(value: object) -> str:
    """Return a Python value as JSON text, or raise BadPayload."""
    if (
        type(value) is dict
        and _TEXT.issuperset(map(type, value))
        and _SIMPLE.issuperset(map(type, value.values()))
    ):  # a flat object without fractions, as most payloads are, needs no further look
        try:
            text = _QUICK(value).decode()
        except ValueError:
            return _dumped(value)  # which says what is wrong
        if _NUL in text:
            _check_characters(text)
        return text
    return _dumped(value)


def _dumped(value: object) -> str:
    _look(value, MAX_NESTING)
    try:
        text = _written(value)
    except TypeError as error:
        raise BadPayload(f"{error}: use dict, list, str, int, float, bool or None") from None
    except ValueError:
        raise BadPayload(NUMBER) from None
    if not text.isascii() or _NUL in text:
        _check_characters(text)
    return text


def checked(text: object) -> str:
    """Return JSON text unchanged, or raise BadPayload saying what is wrong with it."""
    if not isinstance(text, str):
        raise BadPayload(_no_text(text))
    if "\0" in text:
        raise BadPayload(NUL)
    if text.count("[") + text.count("{") > MAX_NESTING:
        _check_nesting(text)
    try:
        value = _parsed(text)
    except json.JSONDecodeError as error:
        raise BadPayload(f'is not JSON: {error}; write text as "text", nothing as null') from None
    except BadPayload:
        raise
    except ValueError:
        raise BadPayload(NUMBER) from None
    if "\\u" in text:  # a surrogate may have been spelled out; unspelled, it shows
        _check_characters(text)
        _check_characters(_written(value))
    elif not text.isascii():
        _check_characters(text)
    return text


def fingerprint(payload: str | None) -> bytes:
    """Return what two payloads of one idempotency key are compared by; it stays when a payload is dropped."""
    return sha256(b"\0" if payload is None else b"\1" + payload.encode()).digest()


def _no_text(value: object) -> str:
    return f"is a {type(value).__name__} where JSON text is expected: use json.dumps"


def _parsed(text: str) -> object:
    # The scanner alone is enough for text without space around it, and for most text that is all there is.
    try:
        value, end = _SCAN(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else _DECODER.decode(text)


def _look(value: object, levels: int) -> None:
    """Refuse what the encoder would let pass: too deep, endless, or names that are not text."""
    children: Iterable[object]
    if isinstance(value, dict):
        if not _TEXT.issuperset(map(type, value)):
            _check_names(value)
        children = value.values()
    elif isinstance(value, list | tuple):
        children = value
    else:
        return
    if levels == 0:
        raise BadPayload(NESTED)
    if not _PLAIN.issuperset(map(type, children)):
        for child in children:
            _look(child, levels - 1)


def _check_names(value: dict[object, object]) -> None:
    for name in value:
        if not isinstance(name, str):
            raise BadPayload(f"the key {name!r} is not text: JSON would turn it into a string, so write one")


def _check_characters(text: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadPayload(SURROGATE) from None
    if _NUL in text and _ESCAPED_NUL.search(text):
        raise BadPayload(NUL)


def _check_nesting(text: str) -> None:
    """Refuse brackets nested so deep that a reader might break; before parsing, which might break too."""
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_NESTING:
            raise BadPayload(NESTED)


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object, or raise BadPayload when a key stands twice in it."""
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise BadPayload(f"the key {twice!a} stands twice in one object: name each key once")
    return found


def _no_constant(_: str) -> None:
    raise BadPayload(NUMBER)


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise BadPayload(NUMBER)
    return number


def encoder_with(
    make: Callable[..., Callable[[object, int], Iterable[str]]] | None,
) -> Callable[[object], str]:
    """Return a function that writes compact JSON.

    `JSONEncoder.encode` makes a new C encoder for every value; keeping one halves the price. It does not look
    for loops, because `_look` has done so.
    """
    ours = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if make is None:
        return ours.encode
    write = make(None, ours.default, encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda value: "".join(write(value, 0))


_QUICK: Final = Encoder().encode
_written: Final = encoder_with(getattr(encoder, "c_make_encoder", None))
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=no_duplicates, parse_constant=_no_constant, parse_float=_finite
)
_SCAN: Final[Callable[[str, int], tuple[Any, int]]] = _DECODER.scan_once  # type: ignore[attr-defined]
