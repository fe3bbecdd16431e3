"""What a process was told, and by whom: the environment before the file before the defaults."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from penstock.config import file as files
from penstock.config.file import ConfigFile
from penstock.config.keys import (
    FILES,
    KEYS,
    SECTIONS,
    Plain,
    check_given,
    check_named,
    check_sink,
    from_text,
)
from penstock.config.profiles import VARIABLE as PROFILE
from penstock.domain.durations import parse_duration
from penstock.domain.names import near
from penstock.errors import InvalidConfig, InvalidSetting

PREFIX: Final = "PENSTOCK_"
API_KEY: Final = "PENSTOCK_API_KEY"  # what commands show a node that wants to know who is asking
URL: Final = "PENSTOCK_URL"  # where that node is
_OTHERS: Final = frozenset({files.VARIABLE, API_KEY, URL, PROFILE})
DEFAULT: Final = "default"


class Value(NamedTuple):
    """An effective value and where it comes from: `default`, `penstock.toml:3` or `PENSTOCK_PORT`."""

    value: Plain
    source: str


@dataclass(slots=True)
class Settings:
    """Every key's effective value; sinks are spelled `sinks.NAME.KEY`."""

    values: dict[str, Value]
    file: ConfigFile | None = None
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Plain:
        return self.values[name].value

    def changed(self, other: "Settings") -> list[str]:
        """Return the names of the values that differ."""
        names = sorted(self.values.keys() | other.values.keys())
        nothing = Value(None, DEFAULT)
        return [n for n in names if self.values.get(n, nothing)[0] != other.values.get(n, nothing)[0]]

    def hosts(self) -> tuple[str, ...]:
        """Return the names the process goes by: those it was told, and that of its processing endpoint.

        As with `hosts`, names are for who has a login: without one only this machine comes in.
        """
        told, endpoint = self["hosts"], self["router.processing_endpoint"]
        names = told if isinstance(told, tuple) else ()
        name = urlsplit(endpoint).hostname if self["login"] and isinstance(endpoint, str) else None
        return names if name is None else (*names, name)

    def sinks(self) -> dict[str, dict[str, Plain]]:
        """Return the named connections."""
        found: dict[str, dict[str, Plain]] = {}
        for name, value in self.values.items():
            if name.startswith("sinks."):
                sink, _, key = name.removeprefix("sinks.").rpartition(".")
                found.setdefault(sink, {})[key] = value.value
        return found


def load(given: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings, or raise InvalidConfig with everything that is wrong."""
    settings = look(given, environ)
    if settings.problems:
        raise InvalidConfig(settings.problems)
    return settings


def look(given: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings as far as they can be read, and what is wrong with them."""
    settings = Settings({name: Value(key.default, DEFAULT) for name, key in KEYS.items()})
    path = files.find(given, environ)
    if path is not None:
        try:
            settings.file = files.read(path)
        except InvalidConfig as error:
            settings.problems += error.problems
    if settings.file is not None:
        _take_file(settings, settings.file)
        settings.problems += settings.file.problems
    _take_environment(settings, environ)
    _check_lease(settings)
    return settings


def _check_lease(settings: Settings) -> None:
    """A lease that is renewed later than it ends would change hands all the time."""
    ttl, refresh = settings.values["standby.ttl"], settings.values["standby.refresh"]
    if parse_duration(refresh.value) >= parse_duration(ttl.value):
        advice = f"must be shorter than standby.ttl ({ttl.value}): write a third of it"
        settings.problems.append(f"{refresh.source}: standby.refresh: {advice}")


def _take_file(settings: Settings, file: ConfigFile) -> None:
    pairs = dict(_pairs(file))
    for path, value in pairs.items():
        try:
            name, checked = check_given(".".join(path), value)
        except InvalidSetting as error:
            file.complain(path, error.problem)
        else:
            settings.values[name] = Value(checked, file.where(path))
        beside = FILES.get(".".join(path))
        if beside is not None and tuple(beside.split(".")) in pairs:
            file.complain(path, f"stands beside {beside}: write one of them")
    sinks = file.tables.get("sinks", {})
    for sink, table in sinks.items() if isinstance(sinks, Mapping) else ():
        if isinstance(table, Mapping):
            _take_sink(settings, file, sink, table)


def _pairs(file: ConfigFile) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the keys of the file that we know; the others were complained about when it was read."""
    known = {*KEYS, *FILES}
    for name, value in file.tables.items():
        if name in SECTIONS and isinstance(value, Mapping):
            yield from (((name, key), inner) for key, inner in value.items() if f"{name}.{key}" in known)
        elif name in known:
            yield (name,), value


def _take_sink(settings: Settings, file: ConfigFile, sink: str, table: Mapping[str, object]) -> None:
    try:
        check_named("sinks", sink)
    except InvalidSetting as error:
        file.complain(["sinks", sink], error.problem)
    if "kind" not in table:
        file.complain(["sinks", sink], 'has no kind: write kind = "http", for example')
    for key, value in table.items():
        path = ["sinks", sink, key]
        try:
            settings.values[".".join(path)] = Value(check_sink(key, value), file.where(path))
        except InvalidSetting as error:
            file.complain(path, error.problem)


def _take_environment(settings: Settings, environ: Mapping[str, str]) -> None:
    """Read PENSTOCK_PORT, PENSTOCK_HTTP__ALLOW_NETWORKS; a variable nobody knows is worth a warning only."""
    known = {name.lower(): name for name in (*KEYS, *FILES)}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(PREFIX) or variable in _OTHERS or not text:
            continue
        name = variable.removeprefix(PREFIX).lower().replace("__", ".")
        if name.startswith("sinks."):
            _take_sink_variable(settings, variable, text)
        elif name not in known:
            close = [variable_of(key) for key in near(name, known)]
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            settings.warnings.append(f"{variable}: there is no such key{hint}")
        else:
            _take_variable(settings, known[name], variable, text)
    settings.problems += twice(environ)


def twice(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each value that the environment gives both as it is and as a file's name."""
    pairs = [(variable_of(name), variable_of(key)) for name, key in FILES.items()]
    return [
        f"{file}: stands beside {plain}: set one of them"
        for file, plain in pairs
        if environ.get(file) and environ.get(plain)
    ]


def _take_variable(settings: Settings, name: str, variable: str, text: str) -> None:
    try:
        key, value = check_given(name, text if name in FILES else from_text(KEYS[name].kind, text))
    except InvalidSetting as error:
        settings.problems.append(f"{variable}: {error.problem}")
    else:
        settings.values[key] = Value(value, variable)


def _take_sink_variable(settings: Settings, variable: str, text: str) -> None:
    """PENSTOCK_SINKS__BILLING_QUEUE__URL is `url` of [sinks.billing-queue], which the file declares."""
    _, sink, key, *more = [*variable.removeprefix(PREFIX).split("__"), "", ""]
    matches = [name for name in settings.sinks() if _spelled(name) == sink]
    if not matches or not key or any(more):
        settings.warnings.append(f"{variable}: no [sinks.{sink.lower()}] is declared in a configuration file")
        return
    key = key.lower().removesuffix("_file") + ("_FILE" if key.endswith("_FILE") else "")
    settings.values[f"sinks.{matches[0]}.{key}"] = Value(text, variable)


def _spelled(name: str) -> str:
    return name.upper().replace("-", "_").replace(".", "_")


def variable_of(key: str) -> str:
    """Return the variable that says the same as a key of the file."""
    return PREFIX + key.upper().replace(".", "__")
