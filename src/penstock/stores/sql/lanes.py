"""Lanes in the database: read whole, written by what changed.

The table's triggers check, version and audit every change, this module's too. It raises the version itself
to say that `updated_at` and `updated_by` are meant (see the migration): on SQLite nothing else could tell an
actor who writes twice from somebody who did not say who he is.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from penstock.domain.lanes import SETTINGS, Lane, check, check_version
from penstock.domain.names import near
from penstock.domain.pauses import check_until
from penstock.domain.pools import Pool, check_pool
from penstock.errors import InUse, InvalidSetting, UnknownLane
from penstock.stores.sql.database import Row, Tx, one

_NAMES: Final = tuple(SETTINGS)
PAUSED: Final = ("paused", "paused_until", "pause_reason", "paused_by")
LOAD: Final = f"SELECT id, version, name, {', '.join((*PAUSED, *_NAMES))} FROM penstock.lanes"
LOAD_ONE: Final = f"{LOAD} WHERE name = :name FOR UPDATE"
CREATE: Final = f"""
    INSERT INTO penstock.lanes (name, {", ".join(_NAMES)}, updated_at, updated_by)
    VALUES (:name, {", ".join(f":{name}" for name in _NAMES)}, :now, :actor)
        ON CONFLICT (name) DO NOTHING"""
NAMES: Final = "SELECT name FROM penstock.lanes"
POOL_NAMES: Final = "SELECT name FROM penstock.pools"
TO_BE_DONE: Final = (
    "SELECT 1 FROM penstock.jobs WHERE lane = :lane AND arrival > 0 LIMIT 1",
    "SELECT 1 FROM penstock.claims WHERE lane = :lane LIMIT 1",
    "SELECT 1 FROM penstock.dead WHERE lane = :lane LIMIT 1",
)
DELETED: Final = (
    "SELECT id, before FROM penstock.audit WHERE id > :last AND action = :action ORDER BY id DESC"
)
LAST_NOTE: Final = "SELECT max(id) FROM penstock.audit"
# Whoever changed the lane holds its row, so the last note of a change is his.
EXPLAIN: Final = """
    UPDATE penstock.audit SET reason = :reason
     WHERE id = (SELECT max(id) FROM penstock.audit
                  WHERE lane = :lane AND action IN ('lane.create', 'lane.update'))"""
SIGN: Final = "UPDATE penstock.audit SET actor = :actor, at = :now, reason = :reason WHERE id = :id"


class Pause(NamedTuple):
    """A pause, or its end."""

    paused: bool
    until: datetime | None
    reason: str
    actor: str

    @property
    def columns(self) -> dict[str, Any]:
        """The values of PAUSED.

        The end of a pause keeps its own reason and actor: the trigger takes the audit row's from there.
        """
        until = self.until if self.paused else None
        return dict(zip(PAUSED, (self.paused, until, self.reason, self.actor), strict=True))

    def changes(self, row: Lane | Pool) -> bool:
        """Say whether anything of the row would be different."""
        if not self.paused:
            return row.paused
        return self.columns != {name: getattr(row, name) for name in PAUSED}


def load_lanes(tx: Tx) -> dict[str, Lane]:
    """Return every lane by name."""
    return {row[2]: _lane(tx, row) for row in tx.fetch(LOAD)}


def put_lane(tx: Tx, lane: Lane, actor: str, expect: int | None = None, reason: str | None = None) -> Lane:
    """Create the lane or change what differs; a lane that is as it should be is left alone."""
    rows, made = tx.fetch(LOAD_ONE, name=lane.name), 0
    check_version("lane", lane.name, rows[0][1] if rows else 0, expect)
    if not rows:
        _check_pool(tx, lane["pool"])
        # Of two nodes that create the same lane the second waits here, and compares with what the first made.
        made = tx.execute(CREATE, name=lane.name, now=tx.now, actor=actor, **lane.settings)
    stored = _known(tx, lane.name)
    if not rows and not made:
        check_version("lane", lane.name, stored.version, expect)
    changed = _changed(stored.settings, lane.settings)
    if changed:
        _check_pool(tx, changed.get("pool"))
        tx.execute(update_sql("lanes", tuple(changed)), id=stored.id, now=tx.now, actor=actor, **changed)
    if reason is not None and (changed or made):
        tx.execute(EXPLAIN, lane=stored.id, reason=reason)
    return _known(tx, lane.name) if changed else stored


def _check_pool(tx: Tx, name: str | None) -> None:
    if name is not None:
        check_pool(name, [row[0] for row in tx.fetch(POOL_NAMES)])


def pause_lane(tx: Tx, name: str, pause: Pause) -> Lane:
    """Stop a lane or let it go."""
    lane = _known(tx, name)
    check_until(pause.columns["paused_until"], tx.now)
    if pause.changes(lane):
        tx.execute(update_sql("lanes", PAUSED), id=lane.id, now=tx.now, actor=pause.actor, **pause.columns)
    return _known(tx, name)


def delete_lane(tx: Tx, name: str, actor: str, reason: str | None) -> None:
    """Delete a lane; triggers look once more whether anything is left to be done, and clean up."""
    lane = _known(tx, name)
    if any(tx.fetch(sql, lane=lane.id) for sql in TO_BE_DONE):
        raise InUse("lane", name, "still has live or dead jobs: finish, cancel or skip them first")
    delete_row(tx, "lanes", lane.id, name=name, actor=actor, reason=reason)


# -- what lanes and pools have in common


def update_sql(table: str, names: Sequence[str]) -> str:
    """Return the statement that changes these columns of one row."""
    return f"""
        UPDATE penstock.{table}
           SET {", ".join(f"{name} = :{name}" for name in names)},
               version = version + 1, updated_at = :now, updated_by = :actor
         WHERE id = :id"""


def pause_of(tx: Tx, row: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a pause from the columns PAUSED; they say nothing when there is none."""
    stopped, until, reason, actor = row
    if not stopped:
        return {}
    return {"paused": True, "paused_until": tx.time(until), "pause_reason": reason, "paused_by": actor}


def delete_row(tx: Tx, table: str, number: int, *, name: str, actor: str, reason: str | None) -> None:
    """Delete a lane or pool and put to the audit row what the trigger could not know: who did it, and why."""
    last = tx.fetch(LAST_NOTE)[0][0] or 0
    tx.execute(f"DELETE FROM penstock.{table} WHERE id = :id", id=number)
    notes = tx.fetch(DELETED, last=last, action=f"{table.removesuffix('s')}.delete")
    ours = next(id_ for id_, before in notes if json.loads(before)["name"] == name)
    tx.execute(SIGN, id=ours, actor=actor, now=tx.now, reason=reason)


def _known(tx: Tx, name: str) -> Lane:
    row = one(tx.fetch(LOAD_ONE, name=name))
    if row is None:
        raise UnknownLane(name, near(name, [row[0] for row in tx.fetch(NAMES)]))
    return _lane(tx, row)


def _lane(tx: Tx, row: Row) -> Lane:
    lane_id, version, name, *values = row
    pause, values = values[: len(PAUSED)], values[len(PAUSED) :]
    settings = {
        # SQLite has no booleans
        key: bool(value) if SETTINGS[key].kind == "bool" else value
        for key, value in zip(_NAMES, values, strict=True)
    }
    return Lane(name, settings, id=lane_id, version=version, **pause_of(tx, pause))


def _changed(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if _plain(name, stored[name]) != value}


def _plain(name: str, value: object) -> object:
    """Return the value as Penstock itself spells it: by hand a retry may be written with blanks, say."""
    try:
        return check(name, value)
    except InvalidSetting:
        return value
