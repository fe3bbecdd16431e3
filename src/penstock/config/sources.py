"""Where each setting of a lane or pool comes from, and who changed it last: by what the audit says."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.config.plan import applied_from
from penstock.domain.job import AuditEntry
from penstock.domain.lanes import SETTINGS, Lane, Setting
from penstock.ports.store import Store

PAGE: Final = 500
PAGES: Final = 20
DEFAULT: Final = "default"
DATABASE: Final = "database"
UNKNOWN: Final = "unknown"


def source_of(value: object, default: object, entry: AuditEntry | None) -> str:
    """Return `default`, the name of the file that was applied, `database`, or `unknown`.

    `entry` is the last change of it; None = whoever asks is not told, or it is too long ago. A file that has
    one of these words as its name is `./default`.
    """
    if value == default:
        return DEFAULT
    if entry is None:
        return UNKNOWN
    file = applied_from(entry.reason)
    return f"./{file}" if file in (DEFAULT, DATABASE, UNKNOWN) else file or DATABASE


def lane_sources(store: Store, lane: Lane) -> dict[str, dict[str, Any]]:
    """Return of every setting of a lane where it comes from, and who changed it last and when."""
    changes = last_changes(store, lane.name, SETTINGS, kind="lane")
    return {
        name: {
            "source": source_of(lane[name], setting.default, entry),
            "actor": None if entry is None else entry.actor,
            "at": None if entry is None else entry.at,
        }
        for name, setting in SETTINGS.items()
        for entry in [changes.get(name)]
    }


def last_changes(
    store: Store, name: str, settings: Mapping[str, Setting], *, kind: str
) -> dict[str, AuditEntry]:
    """Return who changed each setting last, as far as a bounded look into the audit goes back.

    Who made it changed what he gave it, and none of its defaults.
    """
    found: dict[str, AuditEntry] = {}
    after = None
    for _ in range(PAGES):
        page = store.audit_log(lane=name if kind == "lane" else None, people=True, limit=PAGE, after=after)
        made = take_changes(page.entries, name, settings, kind=kind, found=found)
        after = page.next
        if made or after is None:
            break
    return found


def take_changes(
    entries: Iterable[AuditEntry],
    name: str,
    settings: Mapping[str, Setting],
    *,
    kind: str,
    found: dict[str, AuditEntry],
) -> bool:
    """Add who changed each setting last, of entries from the newest on; say whether it was made in them.

    What came before that was done to another of its name.
    """
    for entry in entries:
        changed = _changed(kind, name, entry)
        made = bool(changed) and entry.action == f"{kind}.create"
        for setting in changed.keys() & settings.keys():
            if not (made and changed[setting] == settings[setting].default):
                found.setdefault(setting, entry)
        if made:
            return True
    return False


def _changed(kind: str, name: str, entry: AuditEntry) -> Mapping[str, object]:
    if not entry.action.startswith(f"{kind}.") or entry.after is None:
        return {}
    after: dict[str, object] = json.loads(entry.after)
    return after if entry.lane == name or after.get("name") == name else {}
