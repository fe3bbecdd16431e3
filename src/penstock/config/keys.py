"""Every key a process can be told, with its kind, its default and what it is for.

One list: the file, the environment, `penstock check` and the reference page follow it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from penstock.brokers.files import FILE, content_of
from penstock.domain.durations import parse_duration
from penstock.domain.masking import MASK, without_password
from penstock.domain.names import check_name
from penstock.errors import InvalidSetting

SINK_KINDS: Final = (
    "console",
    "embedded",
    "http",
    "router",
    "sqs",
    "kafka",
    "redis",
    "rabbitmq",
    "activemq",
    "temporal",
    "step",
)
Scalar = str | int | float | bool
Plain = Scalar | tuple[str, ...] | None
_SECRET: Final = re.compile(r"password|passwd|secret|token|credential|(^|_)key$", re.IGNORECASE)
_HOST: Final = re.compile(r"(?!.*\.\.)[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its kind, its default, what it is for, and for words the ones that are allowed."""

    kind: str
    default: Plain
    about: str
    words: tuple[str, ...] = ()
    secret: bool = False  # it may hold a password, so it may be given as the name of a file that holds it


KEYS: Final[Mapping[str, Key]] = MappingProxyType(
    {
        "store": Key(
            "text",
            "sqlite:///penstock.db",
            "The database; or postgresql://user@host/database.",
            secret=True,
        ),
        "host": Key("text", "127.0.0.1", "The address the API and the UI listen on."),
        "port": Key("port", 7070, "The port the API and the UI listen on."),
        "login": Key("bool", default=False, about="Whoever asks must log in or show an API key."),
        "hosts": Key("names", (), "Names the node goes by, beside loopback ones and IP addresses."),
        "metrics_port": Key("port", None, "A port of its own for /metrics; unset: with the API."),
        "log_level": Key("word", "info", "What is logged.", ("debug", "info", "warning", "error")),
        "log_format": Key("word", "console", "How it is logged.", ("console", "json")),
        "lanes_served": Key("texts", ("*",), "The lanes this node dispatches; also `--lanes`."),
        "http.allow_networks": Key("networks", (), "Outbound targets that are otherwise refused."),
        "standby.enabled": Key("bool", default=False, about="Only the leader dispatches."),
        "standby.redis_url": Key(
            "redis", None, "A Redis that holds the lease instead of the database.", secret=True
        ),
        "standby.lock_key": Key("text", "penstock:leader", "The name of the lease in Redis."),
        "standby.ttl": Key("duration", "30s", "How long the lease in Redis lasts unless it is renewed."),
        "standby.refresh": Key("duration", "10s", "How often it is renewed; less than `standby.ttl`."),
        "router.processing_endpoint": Key("endpoint", None, "Unset: this node's /api/dispatch/process."),
        "router.default_pool": Key("text", "DISPATCH-POOL", "The poolCode of jobs without a pool."),
    }
)
# `store_FILE` names the file that holds `store`.
FILES: Final[Mapping[str, str]] = MappingProxyType(
    {f"{name}{FILE}": name for name, key in KEYS.items() if key.secret}
)
SAME_PORT: Final = "is the port of the API, which has /metrics anyway: choose another, or leave it out"
# What a process that is told to read its configuration again (SIGHUP) goes by at once.
LIVE_KEYS: Final = ("log_level", "log_format")
SECTIONS: Final = ("http", "standby", "router")
NAMED: Final = ("sinks", "pools", "lanes")


def check_value(name: str, value: object) -> Plain:
    """Return a key's value as the process uses it, or raise InvalidSetting."""
    key = KEYS[name]
    try:
        return _CHECKS[key.kind](key, value)
    except (ValueError, TypeError) as error:
        raise InvalidSetting(name, str(error)) from error


def check_given(name: str, value: object) -> tuple[str, Plain]:
    """Return a key and its value; the name may be one of FILES, and the value then that of a file."""
    key = FILES.get(name, name)
    return key, check_value(key, content_of(name.rpartition(".")[2], value) if name in FILES else value)


def check_sink(name: str, value: object) -> Scalar | tuple[str, ...]:
    """Return a sink's value, or raise InvalidSetting; what a key means is for the sink's kind to say."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, str | int | float | bool):
        return value
    raise InvalidSetting(name, "write a text, a number, true or false, or a list of texts")


def from_text(kind: str, text: str) -> object:
    """Return what a variable or a `key=value` says, as TOML would; what does not fit is left to the check."""
    if kind == "bool":
        return {"true": True, "false": False}.get(text, text)
    if kind in {"int", "port"}:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text
    if kind in {"texts", "networks", "names"}:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def masked(name: str, value: Plain) -> Plain:
    """Return the value as it may be shown: no password, no token, no credential in a URL."""
    last = name.rpartition(".")[2]
    if value is not None and _SECRET.search(last) and not last.endswith("_FILE") and name not in KEYS:
        return MASK
    if isinstance(value, tuple):
        return tuple(without_password(item) for item in value)
    return without_password(value) if isinstance(value, str) else value


def _text(_: Key, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("write a text that is not empty")
    return value


def _optional_text(key: Key, value: object) -> str | None:
    """An empty text is how a file says "unset" for what has no default."""
    return None if value == "" and key.default is None else _text(key, value)


def _word(key: Key, value: object) -> str:
    if value not in key.words:
        raise ValueError(f"{value!r} is none of {', '.join(key.words)}")
    return str(value)


def _bool(_: Key, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("write true or false")
    return value


def _port(_: Key, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 65535:
        raise ValueError(f"{value!r} is not a port: write a whole number from 0 to 65535, 0 picks a free one")
    return value


def _duration(_: Key, value: object) -> str:
    parse_duration(value)
    return str(value)


def _texts(_: Key, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
        raise TypeError('write a list of texts, like ["*"]')
    return tuple(value)


def _networks(_: Key, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError('write a list of networks, like ["10.0.0.0/8"]')
    for item in value:
        ip_network(item)
    return tuple(value)


def _names(_: Key, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError('write a list of names, like ["penstock.example.com"]')
    for item in value:
        if not _HOST.fullmatch(item):
            raise ValueError(f"{item!r} is no name of a host: write it without https:// and without a port")
    return tuple(value)


def _endpoint(_: Key, value: object) -> str | None:
    """What is no address would be in every pointer, and nobody could deliver one."""
    if value == "":
        return None
    if not isinstance(value, str) or not _is_endpoint(value):
        raise ValueError("is no address of an endpoint: write https://HOST:PORT/api/dispatch/process")
    return value


def _is_endpoint(text: str) -> bool:
    try:
        url = urlsplit(text)
        known = url.scheme in {"http", "https"} and url.hostname is not None and url.port != 0
    except ValueError:
        return False
    return known and bool(url.path.strip("/")) and not (url.username or url.query or url.fragment)


def _redis(_: Key, value: object) -> str | None:
    """What is wrong is not quoted: it may be a part of a password."""
    if value == "":
        return None
    if not isinstance(value, str) or not _is_redis(value):
        raise ValueError(
            "is no address of a Redis: write redis://HOST:6379/0, rediss:// or unix://; # / ? @ % in a"
            " password are written %23 %2F %3F %40 %25"
        )
    return value


def _is_redis(text: str) -> bool:
    try:
        url = urlsplit(text)
        right_port = url.port is None or url.port >= 0
    except ValueError:
        return False
    return right_port and url.scheme in {"redis", "rediss", "unix"} and not url.fragment


_CHECKS: Final[Mapping[str, Callable[[Key, object], Plain]]] = {
    "text": _optional_text,
    "endpoint": _endpoint,
    "redis": _redis,
    "word": _word,
    "bool": _bool,
    "port": _port,
    "duration": _duration,
    "texts": _texts,
    "networks": _networks,
    "names": _names,
}


def check_named(section: str, name: str) -> None:
    """Raise InvalidSetting unless this may name a sink, a pool or a lane."""
    kinds = {"sinks": "sink", "pools": "pool", "lanes": "lane"}
    try:
        check_name(kinds[section], name)  # type: ignore[arg-type]
    except ValueError as error:
        raise InvalidSetting(f"{section}.{name}", str(error)) from error
