"""What happened, told on the next page, with the way back where there is one."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from litestar.datastructures import Cookie
from litestar.response import Redirect

from penstock.ui.words import clock

NOTE: Final = "penstock_note"
# A note is a cookie, which others may have made: an undo never does more than let something go on.
UNDOES: Final = frozenset({"resume", "release", "enable"})
LONGEST: Final = 500
WHY: Final = "undone"


class Undo(NamedTuple):
    """A form that takes something back: where it goes, and what it says."""

    action: str
    fields: Mapping[str, str] = {}


class Told(NamedTuple):
    """What was done, and how to take it back."""

    text: str
    undo: Undo | None = None


def undo(*path: str, **named: str) -> Undo:
    """Return the undo of something with this address; a name that does not fit into a path follows it."""
    action = "/" + "/".join(quote(part, safe="") for part in path)
    return Undo(f"{action}?{urlencode(named)}" if named else action)


def paused(what: str, until: datetime | None, way: Undo) -> Told:
    """Tell that something is paused: until which day and time, if somebody said so."""
    return Told(f"{what} is paused{'' if until is None else f' until {clock(until)} UTC'}.", way)


def back(to: str, told: str | Told, *, bad: bool = False) -> Redirect:
    """Send the browser back to a page of ours, which says what happened."""
    try:
        parts = urlsplit(to)
    except ValueError:  # brackets that do not close
        parts = urlsplit("/")
    path = parts.path if parts.path.startswith("/") and not parts.path.startswith("//") else "/"
    where = f"{path}?{parts.query}" if parts.query else path
    text, way = (told, None) if isinstance(told, str) else told
    note: dict[str, Any] = {"text": text[:LONGEST], "bad": bad}
    if way is not None:
        note["undo"] = [way.action, {**way.fields, "next": where, "reason": WHY}]
    kept = urlsafe_b64encode(json.dumps(note, ensure_ascii=False).encode(errors="replace")).decode()
    cookie = Cookie(key=NOTE, value=kept, max_age=30, httponly=True, samesite="strict", path="/")
    return Redirect(where, status_code=303, cookies=[cookie])


def read_note(note: str | None) -> dict[str, Any] | None:
    """Return a note that a redirect left; whatever else is in the cookie is nothing."""
    try:
        found = json.loads(urlsafe_b64decode(note or ""))
        told = {"text": str(found["text"]), "bad": bool(found["bad"]), "undo": None}
        if "undo" in found:
            action, fields = found["undo"]
            told["undo"] = _way(str(action), {str(name): str(value) for name, value in fields.items()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return told


def _way(action: str, fields: dict[str, str]) -> Undo | None:
    path = action.partition("?")[0]
    ours = path.startswith("/") and not path.startswith("//") and path.rpartition("/")[2] in UNDOES
    return Undo(action, fields) if ours else None
