"""Lanes and pools as a file declares them: every setting checked, every complaint with its line."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from penstock.config.file import ConfigFile, hinted
from penstock.config.keys import SINK_KINDS, check_named
from penstock.domain.lanes import SETTINGS, Lane, Setting, check, check_setting, lane
from penstock.domain.names import near, unknown
from penstock.domain.pools import POOL_SETTINGS, Pool, pool
from penstock.domain.sense import nonsense
from penstock.errors import InvalidSetting

KEEP_ORDER: Final = ("activemq", "embedded", "kafka", "sqs")
_PAUSES: Final = frozenset({"paused", "paused_until", "pause_reason", "paused_by"})


class Declared(NamedTuple):
    """What a file declares, by name."""

    pools: Mapping[str, Pool]
    lanes: Mapping[str, Lane]
    silent: frozenset[str] = frozenset()  # lanes of which the file does not say whether they are enabled


def declared(file: ConfigFile, *, pools: Iterable[str] = ()) -> Declared:
    """Return the file's pools and lanes, or raise InvalidConfig; `pools` are those the store has."""
    lanes = _tables(file, "lanes", SETTINGS)
    found = Declared(
        {name: pool(name, **given) for name, given in _tables(file, "pools", POOL_SETTINGS).items()},
        {name: _lane(file, name, given) for name, given in lanes.items()},
        frozenset(name for name, given in lanes.items() if "enabled" not in given),
    )
    known = {*pools, *found.pools}
    for each in found.lanes.values():
        if each["pool"] is not None and each["pool"] not in known:
            file.complain(["lanes", each.name, "pool"], unknown("pool", each["pool"], known))
    file.raise_problems()
    return found


def _lane(file: ConfigFile, name: str, given: Mapping[str, Any]) -> Lane:
    """Return the lane; what cannot work together is complained about."""
    settings = {key: check(key, given.get(key, setting.default)) for key, setting in SETTINGS.items()}
    problems = [*nonsense(settings)]
    for problem in problems:
        file.complain(["lanes", name, problem.setting], problem.problem)
    return lane(name, **({} if problems else given))


def sink_warnings(file: ConfigFile | None, lanes: Iterable[Lane], sinks: Iterable[str]) -> list[str]:
    """Return a line for each lane whose sink is neither a connection of the file nor one of our own kinds.

    A warning only: a kind may come from a plug-in, and another node's file may name the connection. Another
    for a lane that leaves the order to a kind that does not keep it.
    """
    known = {*SINK_KINDS, *sinks}
    warnings = []
    for each in lanes:
        sink = each["sink"]
        if each["hold_until"] == "sent" and sink in {*SINK_KINDS} - {*KEEP_ORDER, *sinks}:
            where = f"{file.where(['lanes', each.name, 'hold_until'])}: " if file is not None else ""
            kinds = f'sink "{sink}" does not keep order, {", ".join(KEEP_ORDER)} do'
            warnings.append(f'{where}lanes.{each.name}.hold_until: "sent" has no effect: {kinds}')
        if sink not in known:
            close = near(sink, known)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            where = f"{file.where(['lanes', each.name, 'sink'])}: " if file is not None else ""
            warnings.append(f'{where}lanes.{each.name}.sink: no sink "{sink}" is known here{hint}')
    return warnings


def _tables(file: ConfigFile, section: str, settings: Mapping[str, Setting]) -> dict[str, dict[str, Any]]:
    """Return what is right of each table; what is not was complained about."""
    tables = file.tables.get(section, {})
    found: dict[str, dict[str, Any]] = {}
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        try:
            check_named(section, name)
        except InvalidSetting as error:
            file.complain([section, name], error.problem)
            continue
        if isinstance(table, Mapping):
            found[name] = _checked(file, [section, name], table, settings)
    return found


def _checked(
    file: ConfigFile, path: list[str], table: Mapping[str, Any], settings: Mapping[str, Setting]
) -> dict[str, Any]:
    right = {}
    for key, value in table.items():
        here = [*path, key]
        if key in _PAUSES:
            verb = f"penstock {path[0]} pause {path[1]}"
            file.complain(here, f"is no setting, it is done by hand: {verb}")
        elif key not in settings:
            file.complain(here, hinted("there is no such setting", key, list(settings)))
        else:
            try:
                right[key] = check_setting(key, settings[key], value)
            except InvalidSetting as error:
                file.complain(here, error.problem)
    return right
