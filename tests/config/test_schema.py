"""The schema for editors: it likes what the documentation shows and Penstock takes, and no misspelt key."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator, meta

from penstock.config.keys import KEYS, check_value
from penstock.config.schema import schema_text
from penstock.domain.lanes import SETTINGS, Setting, check_setting
from penstock.domain.pools import POOL_SETTINGS
from penstock.errors import InvalidSetting

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "docs/reference/penstock.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft7Validator(PUBLISHED)
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Some of everything that people write, right for some keys and wrong for others.
SAMPLES: list[Any] = [
    "", "x", "5s", "1m30s", "250ms", "0s", "1GiB", "256 KiB", "10/s", "0/s", "10/d", "send_now",
    "skip_after(10m)", "skip_after()", "info", "json", "immediate", "block_on_error", "tenant", "7d", "2d",
    "sqlite:///x.db", "redis://h", "unix:///s", "http://h/p", "https://h", "127.0.0.1", '["0s"]', "{}", "[",
    True, False, 0, 1, 80, 65535, 65536, -1, 2**31, 1.5, [], ["*"], [""], ["10.0.0.0/8"], ["a.example"],
    ["0s", "1m"], [1], {}, {"a": 1}, {"first": "1s", "factor": 2, "max": "1h", "attempts": 8},
    {"first": "1s", "factor": 1.5, "max": "1h"},
]  # fmt: skip


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every piece of a penstock.toml that is shown, and the file that `penstock init` writes."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            found = tomllib.loads(block)
            if not {"project", "profiles"} & found.keys():  # a pyproject.toml, and a config.toml
                yield str(page.relative_to(ROOT)), found
    template = ROOT / "src/penstock/cli/templates/penstock.toml"
    yield template.name, tomllib.loads(template.read_text(encoding="utf-8"))


def test_it_is_a_schema_and_the_one_that_init_writes() -> None:
    meta.validate(PUBLISHED)

    assert json.loads(schema_text()) == PUBLISHED


def test_every_example_is_valid() -> None:
    found = list(examples())

    assert len(found) > 20
    assert [(page, error.message) for page, one in found for error in VALIDATOR.iter_errors(one)] == []


@pytest.mark.parametrize(
    "text",
    [
        "prot = 1",
        "port = '7070'",
        "log_level = 'loud'",
        "store = 'sqlite:///a.db'\nstore_FILE = 'a'",
        "[standby]\nredis_url = 'redis://h'\nredis_url_FILE = 'a'",
        "[standby]\nrefrsh = '1s'",
        "[sinks.a]\nurl = 'x'",
        "[sinks.a]\nkind = 'sqs'\nurl = {a = 1}",
        "[lanes.a]\nrat = '1/s'",
        "[lanes.a]\nrate = '1 a second'",
        "[lanes.a]\npaused = true",
        "[lanes.'a b']",
        "[pools.a]\nkey = 'lane'",
        "[lane.a]",
    ],
)
def test_a_mistake_is_not_valid(text: str) -> None:
    assert not VALIDATOR.is_valid(tomllib.loads(text))


def accepted(name: str, setting: Setting | None, value: Any) -> bool:  # noqa: ANN401
    try:
        check_value(name, value) if setting is None else check_setting(name, setting, value)
    except InvalidSetting:
        return False
    return True


@pytest.mark.parametrize("value", SAMPLES, ids=repr)
def test_it_refuses_nothing_that_penstock_takes(value: Any) -> None:  # noqa: ANN401
    def valid(path: str) -> bool:
        document = value
        for part in reversed(path.split(".")):
            document = {part: document}
        return VALIDATOR.is_valid(document)

    asked = {name: (name, None) for name in KEYS}
    given = {f"lanes.a.{name}": (name, setting) for name, setting in SETTINGS.items()}
    shared = {f"pools.a.{name}": (name, setting) for name, setting in POOL_SETTINGS.items()}
    taken = [path for path, key in {**asked, **given, **shared}.items() if accepted(*key, value)]

    assert [path for path in taken if not valid(path)] == []


def test_every_key_is_explained_and_takes_one_of_the_samples() -> None:
    for name, key in KEYS.items():
        *section, last = name.split(".")
        table = PUBLISHED["properties"][section[0]] if section else PUBLISHED
        assert table["properties"][last]["description"] == key.about
        assert any(accepted(name, None, value) for value in SAMPLES), name
