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
DULL: Final = frozenset(
    {"version", "id", "name", "created_at", "updated_at", "changed_at", "pause_reason", "paused_by"}
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
    return [{**entry._asdict(), "changes": changes(entry), "named": _named(entry)} for entry in entries]


def _named(entry: AuditEntry) -> str | None:
    name = (_fields(entry.after) or _fields(entry.before)).get("name")
    return str(name) if name and entry.lane is None else None


def changes(entry: AuditEntry, *, most: int = MOST) -> list[Change]:
    """Return the fields that differ, a handful at most."""
    before, after = _fields(entry.before), _fields(entry.after)
    made = DEFAULTS.get(entry.action)
    if made is not None:  # it says only what is not as usual
        before, after = made | {"paused": False}, made | after
    names = [name for name in after | before if before.get(name) != after.get(name) and name not in DULL]
    if made is not None:
        before = {}
    return [Change(name, _text(before.get(name)), _text(after.get(name))) for name in names[:most]]


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
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
