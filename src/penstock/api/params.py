"""What stands behind the question mark of an address, checked name by name."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from litestar import Request

from penstock.api.problems import Problem
from penstock.domain.intake import check_text
from penstock.domain.names import near
from penstock.domain.times import check_time
from penstock.errors import InvalidQuery, NotFound

Kind: TypeAlias = Callable[[str, str], Any]
Items: TypeAlias = Sequence[tuple[str, str]]


def items_of(request: Request[Any, Any, Any]) -> Items:
    """Return names and values as they stand in the address."""
    return [*request.query_params.multi_items()]


def idempotency_key(request: Request[Any, Any, Any]) -> str | None:
    """Return what the header Idempotency-Key says, in UTF-8, or raise what is wrong: two are no key."""
    keys = request.headers.getall("idempotency-key", [])
    if len(keys) > 1:
        raise InvalidQuery("Idempotency-Key", "stands twice: give it once")
    try:  # whatever the bytes are, they come as Latin-1
        return keys[0].encode("latin-1").decode() if keys else None
    except UnicodeDecodeError as error:
        detail = f"Idempotency-Key: it is not UTF-8 (byte {error.start})"
        hint = "send the key in UTF-8, or one of plain ASCII"
        raise Problem(400, "bad-header", detail, hint=hint, field="Idempotency-Key") from None


def read_params(items: Items, kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Return what is given, or raise InvalidQuery: an unknown name, a name that stands twice, a bad value."""
    found: dict[str, Any] = {}
    for name, value in items:
        if name not in kinds:
            raise InvalidQuery(name, f"there is no such filter; {_meant(name, [*kinds])}")
        if kinds[name] is states:
            found.setdefault(name, []).extend(states(name, value))
        elif name in found:
            raise InvalidQuery(name, "stands twice: give it once")
        else:
            found[name] = kinds[name](name, value)
    return found


def _meant(name: str, known: Sequence[str]) -> str:
    close = near(name, known)
    return f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"


def text(name: str, value: str) -> str:
    """Return text that every store keeps."""
    try:
        return check_text(value)
    except (ValueError, TypeError) as error:
        raise InvalidQuery(name, str(error)) from None


def line(_: str, value: str) -> str:
    """Return a line of the filter language as it is: whoever reads it says what is wrong with it."""
    return value


def number(name: str, value: str) -> int:
    """Return a whole number."""
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise InvalidQuery(name, f"{value!r} is no whole number from 0 to 999999999")
    return int(value)


def flag(name: str, value: str) -> bool:
    """Return true or false."""
    if value not in {"true", "false"}:
        raise InvalidQuery(name, f"{value!r} is neither true nor false")
    return value == "true"


def time(name: str, value: str) -> datetime:
    """Return a time with an offset."""
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidQuery(name, f"{value!r} is no time: write 2026-11-15T10:00:00Z")
    try:
        return check_time(at)
    except ValueError as error:
        raise InvalidQuery(name, f"{value!r} {error}") from None


def states(_: str, value: str) -> list[str]:
    """Return states by name, several with commas between them."""
    return value.split(",")


PAGED: Final[Mapping[str, Kind]] = {"limit": number, "after": text}


def node_number(text: str) -> int:
    """Return the node that an address names, or raise NotFound."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise NotFound("node", text)
    return int(text)
