"""Connections with a name: `--profile prod` leads to [profiles.prod] of a person's own config.toml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.brokers.files import FILE, content_of
from penstock.config.file import ConfigFile, hinted, parsed
from penstock.domain.access import proof
from penstock.errors import InvalidConfig, InvalidSetting

VARIABLE: Final = "PENSTOCK_PROFILE"
TABLE: Final = "profiles"
KEYS: Final = ("url", "store", f"store{FILE}", "api_key", f"api_key{FILE}")
EXAMPLE: Final = 'and url = "https://HOST" or store = "postgresql://USER@HOST/DATABASE" below it'


class Profile(NamedTuple):
    """A node's API with the key for it, or a database; `where` is where it is written."""

    where: str
    url: str | None = None
    store: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return f"Profile({self.where!r}, ***)"


def profiles_file(environ: Mapping[str, str]) -> Path:
    """Return where profiles are kept, as the XDG specification has it; raise InvalidConfig."""
    told = Path(environ.get("XDG_CONFIG_HOME") or ".")
    try:
        base = told if told.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    except RuntimeError:
        raise InvalidConfig([f"{VARIABLE}: you have no home folder here: set XDG_CONFIG_HOME"]) from None
    return base / "penstock" / "config.toml"


def profile_names(environ: Mapping[str, str]) -> list[str]:
    """Return the names there are; none where the file is missing or cannot be read."""
    try:
        tables = parsed(profiles_file(environ)).tables.get(TABLE)
    except InvalidConfig:
        return []
    found = tables.items() if isinstance(tables, Mapping) else ()
    return sorted(name for name, table in found if isinstance(table, Mapping) and name.isprintable())


def find_profile(name: str, environ: Mapping[str, str]) -> Profile:
    """Return what a profile says, or raise InvalidConfig; what is wrong with others does not matter."""
    path = profiles_file(environ)
    if not name.isprintable():  # printed as it is, it would move the cursor
        raise InvalidConfig([f"{path}: {name!r} is no name of a profile: it has control characters"])
    try:
        file = parsed(path)
    except InvalidConfig as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        problem = f'{path}: there is no such file, and so no profile "{name}"'
        raise InvalidConfig([f"{problem}: write [{TABLE}.{name}] into it, {EXAMPLE}"]) from None
    tables = file.tables.get(TABLE, {})
    if isinstance(tables, Mapping) and not isinstance(tables.get(name, {}), Mapping):
        file.complain([TABLE, name], f"is a table: write [{TABLE}.{name}] and its keys below it")
        file.raise_problems()
    if not isinstance(tables, Mapping) or name not in tables:
        there = profile_names(environ)
        known = f"there are {', '.join(there)}" if there else f"write [{TABLE}.{name}] into it, {EXAMPLE}"
        raise InvalidConfig([f'{path}: there is no profile "{name}": {known}'])
    return _read(file, name, tables[name])


def _read(file: ConfigFile, name: str, table: Mapping[str, Any]) -> Profile:
    said: dict[str, str] = {}
    for key, value in table.items():
        plain = key.removesuffix(FILE)
        if key not in KEYS:
            file.complain([TABLE, name, key], hinted("there is no such key", key, KEYS))
        elif not isinstance(value, str) or not value:
            file.complain([TABLE, name, key], f'write it in quotes: {key} = "…"')
        elif plain in said:
            file.complain([TABLE, name, key], f"stands beside {plain} or {plain}{FILE}: write one of them")
        else:
            said[plain] = value if plain == key else _held(file, name, key, value)
    if ("url" in said) == ("store" in said):
        file.complain([TABLE, name], "write url, a node's API, or store, a database: one of them")
    if "api_key" in said and "url" not in said:
        file.complain([TABLE, name], "an api_key is for a url: a database asks for no key")
    if "@" in said.get("url", ""):
        file.complain([TABLE, name, "url"], "write it without a user: the key goes into api_key_FILE")
    try:
        proof(said.get("api_key"))
    except InvalidSetting as error:
        file.complain([TABLE, name, *_written(table, "api_key")], error.problem)
    file.raise_problems()
    return Profile(file.where([TABLE, name]), said.get("url"), said.get("store"), said.get("api_key"))


def _written(table: Mapping[str, Any], key: str) -> list[str]:
    """Return the key as the table has it: the value itself, or the file that holds it."""
    return [one for one in (key, f"{key}{FILE}") if one in table]


def _held(file: ConfigFile, name: str, key: str, path: str) -> str:
    """Return what a file holds; one that is not named from the root on is beside config.toml."""
    try:
        return content_of(key, str(file.path.parent / Path(path).expanduser()))
    except RuntimeError:
        file.complain([TABLE, name, key], "nobody has that home folder: write the whole path")
    except InvalidSetting as error:
        file.complain([TABLE, name, key], error.problem)
    return ""
