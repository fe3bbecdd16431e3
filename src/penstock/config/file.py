"""A configuration file: found, read, and every complaint about it with its line."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.brokers.files import text_of
from penstock.config.keys import FILES, KEYS, NAMED, SECTIONS
from penstock.config.lines import line_of
from penstock.domain.names import near
from penstock.errors import InvalidConfig

FILE_NAME: Final = "penstock.toml"
VARIABLE: Final = "PENSTOCK_CONFIG"
DEEPEST: Final = 16  # a curve of a lane is three levels down
NESTED: Final = "is nested too deeply: a setting is a value, a list of values or a table of them"
LONGEST: Final = 16 * 1024 * 1024  # room for tens of thousands of lanes


@dataclass(slots=True)
class ConfigFile:
    """A file's tables, and what is wrong with them so far."""

    path: Path
    text: str
    tables: Mapping[str, Any]
    _problems: list[tuple[int, str]] = field(default_factory=list)

    def where(self, path: Sequence[str]) -> str:
        """Return `penstock.toml:12` for a key, or the file alone when the line is not found."""
        line = line_of(self.text, path)
        return str(self.path) if line is None else f"{self.path}:{line}"

    def complain(self, path: Sequence[str], problem: str) -> None:
        """Note what is wrong with a key."""
        line = line_of(self.text, path) or 0
        self._problems.append((line, f"{self.where(path)}: {'.'.join(path)}: {problem}"))

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, from the top of the file to its end."""
        return [problem for _, problem in sorted(self._problems, key=lambda found: found[0])]

    def raise_problems(self) -> None:
        """Raise InvalidConfig if anything was wrong."""
        if self.problems:
            raise InvalidConfig(self.problems)


def find(given: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: the one given, the one of PENSTOCK_CONFIG, else ./penstock.toml if there."""
    if given is not None:
        return given
    if named := environ.get(VARIABLE):
        return Path(named)
    return Path(FILE_NAME) if Path(FILE_NAME).is_file() else None


def parsed(path: Path) -> ConfigFile:
    """Return the file's tables, whatever they are, or raise InvalidConfig."""
    try:
        text = text_of(path, LONGEST)
        tables = tomllib.loads(text)
    except OSError as error:
        raise InvalidConfig([f"{path}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise InvalidConfig([f"{path}: is not UTF-8 text (byte {error.start})"]) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig([f"{path}: is not TOML: {error}"]) from error
    except RecursionError:
        raise InvalidConfig([f"{path}: {NESTED}"]) from None
    if _is_deep(tables):  # dotted keys are read at any depth, but then nothing can show them
        raise InvalidConfig([f"{path}: {NESTED}"])
    return ConfigFile(path, text, tables)


def _is_deep(tables: Mapping[str, Any]) -> bool:
    """Say whether tables and lists are nested deeper than any setting has them."""
    level: list[Any] = [tables]
    for _ in range(DEEPEST):
        inner = [each for one in level for each in (one.values() if isinstance(one, Mapping) else one)]
        level = [each for each in inner if isinstance(each, Mapping | list)]
    return bool(level)


def read(path: Path) -> ConfigFile:
    """Return the file's tables, unknown names already complained about, or raise InvalidConfig."""
    file = parsed(path)
    for name, value in file.tables.items():
        _check_top(file, name, value)
    return file


def _check_top(file: ConfigFile, name: str, value: object) -> None:
    known = {key for key in (*KEYS, *FILES) if "." not in key}
    if name in known:
        return
    if name not in (*SECTIONS, *NAMED):
        file.complain([name], hinted("there is no such key", name, [*known, *SECTIONS, *NAMED]))
    elif not isinstance(value, Mapping):
        file.complain([name], f"is a section: write [{name}{'.NAME' if name in NAMED else ''}]")
    elif name in SECTIONS:
        keys = [key.partition(".")[2] for key in (*KEYS, *FILES) if key.startswith(f"{name}.")]
        for key in value:
            if key not in keys:
                file.complain([name, key], hinted("there is no such key", key, keys))
    else:
        for key, table in value.items():
            if not isinstance(table, Mapping):
                file.complain([name, key], f"is a table: write [{name}.{key}] and its keys below it")


def hinted(problem: str, name: str, known: Sequence[str]) -> str:
    """Return the complaint with the known names that look like this one, else with all of them."""
    close = near(name, known)
    if close:
        return f"{problem}; did you mean {' or '.join(close)}?"
    return f"{problem}; known are {', '.join(sorted(known))}"
