"""Bodies of requests that make somebody do something: a reason, and what the command needs besides."""

from typing import Any, TypeVar

import msgspec
from litestar import Request

from penstock.api.bodies import bad_json, fitted, json_object, json_text
from penstock.domain.intake import check_text
from penstock.errors import InvalidQuery

S = TypeVar("S", bound=msgspec.Struct)


class Reason(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Why somebody does something."""

    reason: str


class Pause(Reason, kw_only=True):
    """Why something is stopped, and until when; no time = until somebody lets it go."""

    until: str | None = None


async def command(request: Request[Any, Any, Any], kind: type[S]) -> S:
    """Return the body as this kind of command, or raise what is wrong with it."""
    return converted(json_object(await json_text(request)), kind)


def converted(given: dict[str, Any], kind: type[S]) -> S:
    """Return an object as this kind of command, or raise InvalidQuery."""
    try:
        made = fitted(given, kind)
    except msgspec.ValidationError as error:
        # "Expected `int`, got `str` - at `$.rate`"
        words, _, place = str(error).partition(" - at `$.")
        fix = f"{words}; {_shape(kind)}" if not place else words
        raise InvalidQuery(place.rstrip("`") or "body", fix) from None
    if isinstance(made, Reason):
        checked_reason(made.reason)
    return made


def _shape(kind: type[msgspec.Struct]) -> str:
    """Say what to write: the members there must be, and those there may be."""
    members = msgspec.structs.fields(kind)
    needed = ", ".join(f'"{member.encode_name}": …' for member in members if member.required)
    others = ", ".join(member.encode_name for member in members if not member.required)
    return f"write {{{needed}}}" + (f"; there may be {others}" if others else "")


def checked_reason(reason: object) -> str:
    """Return why somebody does something; it must say something."""
    try:
        text = check_text(reason)
    except (ValueError, TypeError) as error:
        raise InvalidQuery("reason", str(error)) from None
    if not text.strip():
        raise InvalidQuery("reason", "say why: it is kept in the audit")
    return text


__all__ = ["Pause", "Reason", "bad_json", "checked_reason", "command", "converted"]
