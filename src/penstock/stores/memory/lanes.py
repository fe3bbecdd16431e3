"""Lanes and pools: settings, pauses, deletion, each with its audit row."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from penstock.domain.job import Audit
from penstock.domain.lanes import Lane, check_version
from penstock.domain.names import near
from penstock.domain.pauses import check_until
from penstock.domain.pools import Pool, check_pool
from penstock.errors import InUse, NotFound, UnknownLane
from penstock.stores.memory.tables import Tables

Texts = tuple[str | None, str | None]


class Change(NamedTuple):
    """Who changes something, when and why."""

    actor: str
    at: datetime
    reason: str | None = None


def known_lane(tables: Tables, name: str) -> Lane:
    """Return the lane of this name, or raise UnknownLane."""
    if name not in tables.lanes:
        raise UnknownLane(name, near(name, tables.lanes))
    return tables.lanes[name]


def known_pool(tables: Tables, name: str) -> Pool:
    """Return the pool of this name, or raise NotFound."""
    if name not in tables.pools:
        raise NotFound("pool", name)
    return tables.pools[name]


def put_lane(tables: Tables, lane: Lane, change: Change, expect: int | None = None) -> Lane:
    """Create the lane or change its settings; a pause is left as it is."""
    old = tables.lanes.get(lane.name)
    check_version("lane", lane.name, 0 if old is None else old.version, expect)
    if lane["pool"] is not None and (old is None or old["pool"] != lane["pool"]):
        check_pool(lane["pool"], tables.pools)
    if old is None:
        number = len(tables.lane_names) + 1
        stored = Lane(lane.name, lane.settings, id=number, version=1)
        tables.lane_names[number] = lane.name
        _note(tables, "lane.create", number, (None, _whole(lane.settings, lane.name)), change)
    elif old.settings == lane.settings:
        return old
    else:
        stored = replace(old, settings=lane.settings, version=old.version + 1)
        _note(tables, "lane.update", old.id, _differences(old.settings, stored.settings), change)
    tables.lanes[lane.name] = stored
    return stored


def put_pool(tables: Tables, pool: Pool, change: Change, expect: int | None = None) -> Pool:
    """Create the pool or change its settings; a pause is left as it is."""
    old = tables.pools.get(pool.name)
    check_version("pool", pool.name, 0 if old is None else old.version, expect)
    if old is None:
        stored = Pool(pool.name, **pool.settings, id=next(tables.pool_numbers), version=1)
        _note(tables, "pool.create", None, (None, _whole(pool.settings, pool.name)), change)
    elif old.settings == pool.settings:
        return old
    else:
        stored = replace(old, **pool.settings, version=old.version + 1)
        texts = _differences(old.settings, stored.settings, name=pool.name)
        _note(tables, "pool.update", None, texts, change)
    tables.pools[pool.name] = stored
    return stored


def pause_lane(tables: Tables, name: str, change: Change, *, paused: bool, until: datetime | None) -> Lane:
    """Stop a lane or let it go."""
    old = known_lane(tables, name)
    stored = replace(old, **_pause(change, paused=paused, until=until))
    if stored != old:
        tables.lanes[name] = stored = replace(stored, version=old.version + 1)
        _note(tables, "lane.update", old.id, _differences(_paused(old), _paused(stored)), change)
    return stored


def pause_pool(tables: Tables, name: str, change: Change, *, paused: bool, until: datetime | None) -> Pool:
    """Stop a pool or let it go."""
    old = known_pool(tables, name)
    stored = replace(old, **_pause(change, paused=paused, until=until))
    if stored != old:
        tables.pools[name] = stored = replace(stored, version=old.version + 1)
        texts = _differences(_paused(old), _paused(stored), name=name)
        _note(tables, "pool.update", None, texts, change)
    return stored


def delete_lane(tables: Tables, name: str, change: Change) -> None:
    """Delete a lane that nothing is left to be done of; its number is never given again."""
    lane = known_lane(tables, name)
    rows = [*tables.live.values(), *(ended.job for ended in tables.dead.values())]
    if any(row.lane == lane.id for row in rows):
        raise InUse("lane", name, "still has live or dead jobs: finish, cancel or skip them first")
    del tables.lanes[name]
    tables.paused = {(number, group) for number, group in tables.paused if number != lane.id}
    for number, key in list(tables.keys):
        if number == lane.id:
            del tables.keys[number, key]
    _note(tables, "lane.delete", lane.id, (_whole(lane.settings, name), None), change)


def delete_pool(tables: Tables, name: str, change: Change) -> None:
    """Delete a pool that no lane names."""
    pool = known_pool(tables, name)
    users = sorted(lane.name for lane in tables.lanes.values() if lane["pool"] == name)
    if users:
        raise InUse("pool", name, f"is used by {', '.join(users)}: give them another pool first")
    del tables.pools[name]
    for limit in list(tables.limits):
        if limit == f"pool/{name}" or limit.startswith(f"pool/{name}/"):
            del tables.limits[limit]
    _note(tables, "pool.delete", None, (_whole(pool.settings, name), None), change)


def _pause(change: Change, *, paused: bool, until: datetime | None) -> dict[str, Any]:
    if not paused:
        return dict.fromkeys(("paused_until", "pause_reason", "paused_by")) | {"paused": False}
    check_until(until, change.at)
    return {"paused": True, "paused_until": until, "pause_reason": change.reason, "paused_by": change.actor}


def _paused(row: Lane | Pool) -> dict[str, Any]:
    until = row.paused_until
    return {
        "paused": row.paused,
        "paused_until": None if until is None else until.isoformat(),
        "pause_reason": row.pause_reason,
        "paused_by": row.paused_by,
    }


def _note(tables: Tables, action: str, lane: int | None, texts: Texts, change: Change) -> None:
    tables.audit.append(Audit(change.at, None, lane, change.actor, action, *texts, change.reason))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], **named: str) -> Texts:
    """Return old and new values of what an update changed."""
    names = [name for name in before if before[name] != after[name]]
    was, now = ({name: side[name] for name in names} | named for side in (before, after))
    return json.dumps(was), json.dumps(now)


def _whole(settings: Mapping[str, Any], name: str) -> str:
    """Return the values of what was created or deleted."""
    given = {setting: value for setting, value in settings.items() if value is not None}
    return json.dumps(given | {"name": name})
