"""`penstock.toml` as a JSON Schema, for editors: what to write next, what it is for, what is misspelt.

It follows the lists that the file itself is checked by. An editor is told no more than a schema can say: what
settings mean together, and that a pool exists, is for `penstock check`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from penstock.brokers.files import FILE
from penstock.config.keys import FILES, KEYS, SECTIONS, SINK_KINDS, Key
from penstock.domain.durations import DURATION_PATTERN, SIZE_PATTERN
from penstock.domain.lanes import SETTINGS, Setting
from penstock.domain.names import NAME_PATTERN
from penstock.domain.pools import POOL_SETTINGS
from penstock.domain.rates import RATE_PATTERN
from penstock.domain.retry import CURVE_KEYS, MAX_ATTEMPTS, MAX_FACTOR

Schema = dict[str, Any]
T = TypeVar("T")
_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_DURATION: Final[Schema] = {"type": "string", "pattern": f"^{DURATION_PATTERN}$"}
_TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
_RETRY: Final[Schema] = {
    "anyOf": [
        {"type": "array", "items": _DURATION, "minItems": 1, "maxItems": MAX_ATTEMPTS},
        {
            "type": "object",
            "properties": {
                "first": _DURATION,
                "factor": {"type": "number", "minimum": 1, "maximum": MAX_FACTOR},
                "max": _DURATION,
                "attempts": {"type": "integer", "minimum": 1, "maximum": MAX_ATTEMPTS},
            },
            "required": list(CURVE_KEYS),
            "additionalProperties": False,
        },
        {"type": "string", "pattern": r"^\s*[\[{]"},  # either of them as JSON, as a database keeps it
    ]
}
_KINDS: Final[Mapping[str, Schema]] = {
    "text": _TEXT,
    "bool": {"type": "boolean"},
    "port": {"type": "integer", "minimum": 0, "maximum": 65535},
    "endpoint": {"type": "string", "pattern": "^$|^https?://"},
    "redis": {"type": "string", "pattern": "^$|^(redis|rediss|unix):"},
    "texts": {**_TEXTS, "items": _TEXT, "minItems": 1},
    "networks": _TEXTS,
    "names": _TEXTS,
    "duration": _DURATION,
    "size": {"type": "string", "pattern": f"^{SIZE_PATTERN}$"},
    "rate": {"type": "string", "pattern": f"^{RATE_PATTERN}$"},
    "misfire": {"type": "string", "pattern": rf"^(send_now|skip_after\({DURATION_PATTERN}\))$"},
    "retry": _RETRY,
}
_SINK: Final[Schema] = {
    "description": "A named connection: its kind and its options. OPTION_FILE names a file that holds it.",
    "type": "object",
    "properties": {
        "kind": {
            "description": "What it connects to; a plug-in may bring a kind of its own.",
            "anyOf": [{"enum": list(SINK_KINDS)}, _TEXT],
        }
    },
    "required": ["kind"],
    "additionalProperties": {"anyOf": [{"type": ["string", "number", "boolean"]}, _TEXTS]},
}


def schema() -> Schema:
    """Return the schema of a configuration file."""
    top = _table("")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",  # the newest that all of them read
        "title": "penstock.toml",
        **top,
        "properties": {
            **top["properties"],
            **{section: _table(section) for section in SECTIONS},
            "sinks": _named("Connections, by name.", _SINK),
            "pools": _named("Pools, by name: limits that lanes share.", _settings(POOL_SETTINGS)),
            "lanes": _named("Lanes, by name, for `penstock lanes apply`.", _settings(SETTINGS)),
        },
    }


def schema_text() -> str:
    """Return the schema as a file has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _table(section: str) -> Schema:
    """Return the keys of a section; what is in a file of its own is not given as it is, too."""
    keys, files = _of(section, KEYS), _of(section, FILES)
    properties = {name: _described(key) for name, key in keys.items()}
    for name in files:
        held = name.removesuffix(FILE)
        properties[name] = {
            "description": f"The name of a file that holds `{held}` and nothing else.",
            **_TEXT,
        }
    once = [{"not": {"required": [name, name.removesuffix(FILE)]}} for name in files]
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "allOf": once} if once else found


def _of(section: str, keys: Mapping[str, T]) -> dict[str, T]:
    split = {name: name.rpartition(".") for name in keys}
    return {split[name][2]: value for name, value in keys.items() if split[name][0] == section}


def _settings(settings: Mapping[str, Setting]) -> Schema:
    properties = {name: _described(setting) for name, setting in settings.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _described(one: Key | Setting) -> Schema:
    default = json.loads(str(one.default)) if one.kind == "retry" else one.default
    told = {} if default is None else {"default": default}
    return {"description": one.about, **_value(one), **told}


def _value(one: Key | Setting) -> Schema:
    if one.words:
        return {"enum": list(one.words)}
    if isinstance(one, Setting) and one.kind == "int":
        return {"type": "integer", "minimum": one.least, "maximum": one.most}
    return _KINDS[one.kind]


def _named(about: str, table: Schema) -> Schema:
    return {
        "description": about,
        "type": "object",
        "patternProperties": {f"^{NAME_PATTERN}$": table},
        "additionalProperties": False,
    }
