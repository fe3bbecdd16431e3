"""Lanes in the database: read whole, written by what changed.

The table's triggers check, version and audit every change, this module's too. It raises the version itself
to say that `updated_at` and `updated_by` are meant (see the migration): on SQLite nothing else could tell an
actor who writes twice from somebody who did not say who he is.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.domain.lanes import SETTINGS, Lane, check
from penstock.errors import InvalidSetting
from penstock.stores.sql.database import Row, Tx

_NAMES: Final = tuple(SETTINGS)
LOAD: Final = f"SELECT id, version, name, {', '.join(_NAMES)} FROM penstock.lanes"
LOAD_ONE: Final = f"{LOAD} WHERE name = :name FOR UPDATE"
CREATE: Final = f"""
    INSERT INTO penstock.lanes (name, {", ".join(_NAMES)}, updated_at, updated_by)
    VALUES (:name, {", ".join(f":{name}" for name in _NAMES)}, :now, :actor)
        ON CONFLICT (name) DO NOTHING"""


def load_lanes(tx: Tx) -> dict[str, Lane]:
    """Return every lane by name."""
    return {lane.name: lane for lane in map(_lane, tx.fetch(LOAD))}


def put_lane(tx: Tx, lane: Lane, actor: str) -> Lane:
    """Create the lane or change what differs; a lane that is as it should be is left alone."""
    if not tx.fetch(LOAD_ONE, name=lane.name):
        # Of two nodes that create the same lane the second waits here, and compares with what the first made.
        tx.execute(CREATE, name=lane.name, now=tx.now, actor=actor, **lane.settings)
    stored = _lane(tx.fetch(LOAD_ONE, name=lane.name)[0])
    changed = _changed(stored.settings, lane.settings)
    if not changed:
        return stored
    tx.execute(_update(tuple(changed)), id=stored.id, now=tx.now, actor=actor, **changed)
    return _lane(tx.fetch(LOAD_ONE, name=lane.name)[0])


def _update(names: Sequence[str]) -> str:
    return f"""
        UPDATE penstock.lanes
           SET {", ".join(f"{name} = :{name}" for name in names)},
               version = version + 1, updated_at = :now, updated_by = :actor
         WHERE id = :id"""


def _lane(row: Row) -> Lane:
    lane_id, version, name, *values = row
    settings = {
        # SQLite has no booleans
        key: bool(value) if SETTINGS[key].kind == "bool" else value
        for key, value in zip(_NAMES, values, strict=True)
    }
    return Lane(name, settings, id=lane_id, version=version)


def _changed(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if _plain(name, stored[name]) != value}


def _plain(name: str, value: object) -> object:
    """Return the value as Penstock itself spells it: by hand a retry may be written with blanks, say."""
    try:
        return check(name, value)
    except InvalidSetting:
        return value
