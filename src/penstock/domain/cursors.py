"""Where a list goes on: a text that only the same list takes back.

A cursor names the last entry that was shown, never how many were: the next page begins behind it, whatever
was added or taken away meanwhile. It is opaque to callers, carries its version, a mark of the list (its
filters) and a check sum, so that one that was cut, changed or used with other filters is refused, not obeyed.
It is no secret and protects nothing: whoever may read the list may read all of it.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import blake2s
from typing import Final

from penstock.errors import InvalidCursor

VERSION: Final = 1
MAX_LENGTH: Final = 200
MAX_NAMED_LENGTH: Final = 1_000
_DAMAGED: Final = "it is damaged; begin at the first page"


def seal(place: tuple[int, ...], *, of: str) -> str:
    """Return the cursor of a place in a list; `of` says which list, filters and all."""
    body = ":".join(map(str, (VERSION, *place, _mark(of))))
    return _spelt(f"{body}:{_mark(body)}".encode())


def unseal(cursor: str, *, of: str, numbers: int) -> tuple[int, ...]:
    """Return the place that the cursor names in this list, or raise InvalidCursor."""
    return tuple(map(int, _place(cursor, of=of, parts=numbers, longest=MAX_LENGTH)))


def seal_names(names: tuple[str, ...], *, of: str) -> str:
    """Return the cursor of a place in a list that goes by names."""
    body = ":".join((str(VERSION), *(_hex(name) for name in names), _mark(of)))
    return _spelt(f"{body}:{_mark(body)}".encode())


def unseal_names(cursor: str, *, of: str, names: int) -> tuple[str, ...]:
    """Return the place that the cursor names in this list, or raise InvalidCursor."""
    place = _place(cursor, of=of, parts=names, longest=MAX_NAMED_LENGTH)
    return tuple(bytes.fromhex(part).decode(errors="surrogateescape") for part in place)


def _hex(name: str) -> str:
    return name.encode(errors="surrogateescape").hex()


def _place(cursor: str, *, of: str, parts: int, longest: int) -> list[str]:
    body, _, check = _text(cursor, longest).rpartition(":")
    if check != _mark(body):
        raise InvalidCursor(_DAMAGED)
    version, *place, mark = body.split(":")
    if version != str(VERSION) or len(place) != parts:
        raise InvalidCursor("it was made by another version of Penstock; begin at the first page")
    if mark != _mark(of):
        raise InvalidCursor("it belongs to another list; keep the filters, or begin at the first page")
    return place


def _text(cursor: str, longest: int) -> str:
    if len(cursor) > longest:
        raise InvalidCursor("it is too long to be one")
    try:
        raw = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        text = raw.decode("ascii")
    except (NotBase64, UnicodeError, ValueError):
        raise InvalidCursor(_DAMAGED) from None
    # Decoders pass over what is not Base64 and over the last bits: only one spelling is ours.
    if _spelt(raw) != cursor:
        raise InvalidCursor(_DAMAGED)
    return text


def _spelt(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _mark(text: str) -> str:
    return blake2s(text.encode(), digest_size=6).hexdigest()
