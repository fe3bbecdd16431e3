"""What `[sinks.NAME]` says, read by the kind it names; a mistake is an InvalidSetting."""

import re
import ssl
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from penstock.brokers.files import FILE, content_of
from penstock.brokers.words import said
from penstock.domain.durations import parse_duration, parse_size
from penstock.domain.names import unknown
from penstock.errors import InvalidSetting
from penstock.ports.sink import Options

# What a router is told of a queue in the same place; whoever sends to it has no use for that.
RECEIVING: Final = ("visibility", "dead_queue")
VISIBILITY: Final = timedelta(seconds=30)
SHORTEST_VISIBILITY: Final = timedelta(seconds=1)
_COUNTED: Final = re.compile("[0-9]{1,18}")


def known_only(options: Options, *known: str) -> None:
    """Refuse an option that this kind does not have: it is misspelt, or would be missed."""
    for name in options:
        if name != "kind" and name not in known:
            sentence = unknown("option", name, known)
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InvalidSetting(name, sentence if "did you mean" in sentence else f"{sentence}; {has}")


def text(options: Options, name: str) -> str | None:
    """Return an option that is text; None = it is not given."""
    value = options.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidSetting(name, "write a text that is not empty")
    return value if isinstance(value, str) else None


def duration(options: Options, name: str, default: timedelta) -> timedelta:
    """Return an option that is a duration."""
    value = options.get(name)
    if value is None:
        return default
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InvalidSetting(name, str(error)) from None


def visibility(options: Options) -> timedelta:
    """Return for how long a received message is kept from others unless somebody says otherwise."""
    found = duration(options, "visibility", VISIBILITY)
    if found < SHORTEST_VISIBILITY:
        raise InvalidSetting("visibility", "is too short to keep messages hidden: give it a second at least")
    return found


def required(options: Options, name: str, example: str) -> str:
    """Return an option that is text and must be given."""
    value = text(options, name)
    if value is None:
        raise InvalidSetting(name, f'is missing: write {name} = "{example}"')
    return value


def number(options: Options, name: str, default: int | None = None) -> int | None:
    """Return an option that is a whole number from 1 on; a variable of the environment spells it as text."""
    value = options.get(name)
    if value is None:
        return default
    spelled = str(value)
    if isinstance(value, bool) or _COUNTED.fullmatch(spelled) is None or int(spelled) < 1:
        raise InvalidSetting(name, f"{value!r} is not a number from 1 on: write 1000, for example")
    return int(spelled)


def flag(options: Options, name: str, *, default: bool = False) -> bool:
    """Return an option that is true or false; a variable of the environment spells it as text."""
    value = options.get(name)
    known = {None: default, True: True, False: False, "true": True, "false": False}
    if not isinstance(value, str | bool | None) or value not in known:
        raise InvalidSetting(name, f"{value!r} is neither true nor false")
    return known[value]


def size(options: Options, name: str, default: int) -> int:
    """Return an option that is a number of bytes, like 256KiB."""
    value = options.get(name)
    if value is None:
        return default
    try:
        return parse_size(value)
    except ValueError as error:
        raise InvalidSetting(name, str(error)) from None


def one_of(options: Options, name: str, words: Sequence[str], default: str) -> str:
    """Return an option that is one of a few words."""
    value = options.get(name, default)
    if value not in words:
        raise InvalidSetting(name, f"{value!r} is none of {', '.join(words)}")
    return str(value)


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return what checks a server's certificate, by these authorities or the system's; it reads files."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting("ca_file", f"{ca_file} cannot be read: {said(error)}") from None


def with_files(options: Options) -> Options:
    """Return the options with `password_FILE = path` replaced by the `password` that the file holds."""
    found = dict(options)
    for name in [name for name in options if name.endswith(FILE)]:
        found[name.removesuffix(FILE)] = content_of(name, found.pop(name))
    return found
