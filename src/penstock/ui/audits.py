"""Audit rows as a person reads them: what changed, from what, to what."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from penstock.domain.job import AuditEntry
from penstock.domain.lanes import SETTINGS
from penstock.domain.pools import POOL_SETTINGS

MOST: Final = 8
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$")
LONGEST: Final = 120
LISTED: Final = re.compile(r"[a-z]+(,[a-z]+)+")
HASH: Final = "sha256:"
# How a bulk operation says that it did this, behind the reason that it was given.
PART_OF: Final = re.compile(r" \(operation ([0-9A-HJKMNP-TV-Z]{26})\)$")
DULL: Final = frozenset(
    {
        "version",
        "id",
        "name",
        "operation",
        "created_at",
        "updated_at",
        "changed_at",
        "pause_reason",
        "paused_by",
    }
)
DEFAULTS: Final = {
    f"{kind}.create": {name: setting.default for name, setting in settings.items()}
    for kind, settings in (("lane", SETTINGS), ("pool", POOL_SETTINGS))
}


class Change(NamedTuple):
    """One field that changed."""

    name: str
    before: str | None
    after: str | None


def shown(entries: Iterable[AuditEntry]) -> list[dict[str, Any]]:
    """Return entries with their changes taken apart, and the name of what is neither a lane nor a job."""
    parts = ((entry, PART_OF.search(entry.reason or "")) for entry in entries)
    return [
        {
            **entry._asdict(),
            "reason": PART_OF.sub("", entry.reason or "") or None,
            "part_of": None if part is None else part[1],
            "changes": changes(entry),
            "named": _named(entry),
            "operation": _fields(entry.after).get("operation"),
        }
        for entry, part in parts
    ]


def _named(entry: AuditEntry) -> str | None:
    told = _fields(entry.after) or _fields(entry.before)
    name = told.get("name") or (told.get("target") if entry.action.startswith("target.") else None)
    return str(name) if name and entry.lane is None else None


def changes(entry: AuditEntry) -> list[Change]:
    """Return the fields that differ, a handful at most."""
    made = DEFAULTS.get(entry.action)
    if made is None:
        return differences(entry.before, entry.after)
    usual = made | {"paused": False}  # it says only what is not as usual
    found = _differing(usual, made | _fields(entry.after))
    return [Change(name, None, _text(after)) for name, _, after in found[:MOST]]


def differences(before: str | None, after: str | None) -> list[Change]:
    """Return what differs between two things as the audit keeps them, a handful at most."""
    found = _differing(_fields(before), _fields(after))
    return [Change(name, _text(was), _text(now)) for name, was, now in found[:MOST]]


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    pairs = [(name, _apart(before.get(name)), _apart(after.get(name))) for name in after | before]
    return [(name, was, now) for name, was, now in pairs if was != now and name not in DULL]


def _apart(value: object) -> object:
    """Return words that stand in one list, as scopes do, with room between them."""
    return value.replace(",", ", ") if isinstance(value, str) and LISTED.fullmatch(value) else value


def _fields(text: str | None) -> dict[str, Any]:
    """Return what an audit row says of a thing: an object, or a single word."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {"is": text}
    return found if isinstance(found, dict) else {"is": found}


def _text(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if TIME.match(text):
        text = f"{text[:10]} {text[11:19]} UTC"
    if text.startswith(HASH):  # enough to tell two of them apart
        text = f"{text[: len(HASH) + 12]}…"
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
