"""From what is stored to what a file declares.

A lane or pool of the file becomes exactly as the file says: a setting that is not written there gets its
default, so that taking a line away takes its effect away. What only the store has is left alone, and so is
every pause: pausing is for operators, not for files. A lane that an operator disabled stays so unless the
file says `enabled`. Doing it twice changes nothing the second time.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.config.changing import LANE
from penstock.config.declared import Declared
from penstock.domain.lanes import SETTINGS, Lane, Setting, check_setting
from penstock.domain.pools import POOL_SETTINGS, Pool
from penstock.errors import InvalidSetting
from penstock.ports.store import Store

APPLIED: Final = "applied from "
LONGEST: Final = 100  # letters of a file's name


class Change(NamedTuple):
    """One lane or pool: `created`, or the settings that differ with their values before and after."""

    kind: str
    name: str
    created: bool
    settings: Mapping[str, tuple[Any, Any]]

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return self.created or bool(self.settings)


def plan(wanted: Declared, *, lanes: Mapping[str, Lane], pools: Mapping[str, Pool]) -> list[Change]:
    """Return one entry for each pool and lane of the file; pools first, because lanes name them."""
    settled = _settled(wanted, lanes)
    return [
        *(_change("pool", each, pools.get(name), POOL_SETTINGS) for name, each in wanted.pools.items()),
        *(_change("lane", each, lanes.get(name), SETTINGS) for name, each in settled.items()),
    ]


def apply(store: Store, wanted: Declared, *, actor: str, file: Path) -> list[Change]:
    """Make the store as the file says; return what that was. Of lanes the audit keeps the file's name."""
    changes = plan(wanted, lanes=store.lanes(), pools=store.pools())
    for change in changes:
        if change.any and change.kind == "pool":
            store.put_pool(wanted.pools[change.name], actor=actor)
        elif change.any:
            said = dict(wanted.lanes[change.name].settings)
            if change.name in wanted.silent:
                del said["enabled"]  # as it is when this is written, not when it was planned
            LANE.change(store, change.name, said, actor=actor, reason=_said_of(file))
    return changes


def applied_from(reason: str | None) -> str | None:
    """Return the name of the file that a change came from, by what the audit says of why it was made."""
    return reason.removeprefix(APPLIED) if reason is not None and reason.startswith(APPLIED) else None


def _said_of(file: Path) -> str:
    name = "".join(letter if letter.isprintable() else "?" for letter in file.name)
    return f"{APPLIED}{name[:LONGEST]}"


def _settled(wanted: Declared, stored: Mapping[str, Lane]) -> dict[str, Lane]:
    """Return the lanes as they should be; where the file says nothing of `enabled`, it is as it is."""
    return {
        name: replace(each, settings={**each.settings, "enabled": stored[name]["enabled"]})
        if name in wanted.silent and name in stored
        else each
        for name, each in wanted.lanes.items()
    }


def _change(
    kind: str, wanted: Lane | Pool, stored: Lane | Pool | None, settings: Mapping[str, Setting]
) -> Change:
    before = {} if stored is None else dict(stored.settings)
    differ = {}
    for name, setting in settings.items():
        was = _spelled(name, setting, before.get(name, setting.default))
        if was != wanted.settings[name]:
            differ[name] = (was, wanted.settings[name])
    return Change(kind, wanted.name, stored is None, differ)


def _spelled(name: str, setting: Setting, value: object) -> object:
    """Return a stored value as Penstock itself spells it: by hand a retry may be written with blanks, say."""
    try:
        return check_setting(name, setting, value)
    except InvalidSetting:
        return value
