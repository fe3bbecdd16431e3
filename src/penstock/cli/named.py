"""What lanes and pools have in common: settings by name, a pause, and a trail of who changed what."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, NoReturn, TypeVar

import click

from penstock.cli.errors import Missing
from penstock.cli.options import (
    actor,
    confirmed,
    if_told,
    json_option,
    note,
    reason_option,
    until_option,
    why_option,
    with_client,
    yes_option,
)
from penstock.cli.render import cell, print_json, print_table
from penstock.cli.times import HELP, time_option
from penstock.client import Client
from penstock.config import changing
from penstock.config.file import hinted
from penstock.config.keys import from_text
from penstock.config.sources import DEFAULT, last_changes, source_of
from penstock.domain.job import AuditEntry
from penstock.domain.lanes import SETTINGS, Lane, Setting, check_setting
from penstock.domain.names import near
from penstock.domain.pools import POOL_SETTINGS, Pool
from penstock.errors import Forbidden
from penstock.ports.store import Store
from penstock.wire import lane_object, pool_object

SET: Final = "set"
_WRITTEN: Final = ('"', "'", "[", "{")  # how a value begins that has to be read as TOML
Named = TypeVar("Named", Lane, Pool)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Named]):
    """A kind of named thing and the store's calls for it."""

    word: str
    settings: Mapping[str, Setting]
    show: Callable[[Named, datetime], dict[str, Any]]
    all: Callable[[Store], dict[str, Named]]
    change: Callable[..., tuple[Named, bool]]
    pause: Callable[..., Named]
    delete: Callable[..., None]


LANE: Final = Kind(
    "lane",
    SETTINGS,
    lane_object,
    lambda store: store.lanes(),
    changing.LANE.change,
    lambda store, *a, **k: store.pause_lane(*a, **k),
    lambda store, *a, **k: store.delete_lane(*a, **k),
)
POOL: Final = Kind(
    "pool",
    POOL_SETTINGS,
    pool_object,
    lambda store: store.pools(),
    changing.POOL.change,
    lambda store, *a, **k: store.pause_pool(*a, **k),
    lambda store, *a, **k: store.delete_pool(*a, **k),
)


def one(kind: Kind[Named], store: Store, name: str) -> Named:
    """Return the lane or pool of this name, or end with the names that look like it."""
    known = kind.all(store)
    if name not in known:
        missing(kind, name, known)
    return known[name]


def one_if_told(kind: Kind[Named], store: Store, name: str) -> Named | None:
    """Return the lane or pool of this name; None = this key may stop it and not look: the node looks."""
    try:
        return one(kind, store, name)
    except Forbidden:
        return None


def missing(kind: Kind[Named], name: str, known: Iterable[str]) -> NoReturn:
    """End: there is no such lane or pool."""
    close = near(name, known)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    raise Missing(
        f'no {kind.word} "{name}"{hint}\nTo make it: penstock {kind.word}s set {name} --create\n'
        f"To see what there is: penstock {kind.word}s list"
    )


def show(kind: Kind[Named], client: Client, name: str, *, as_json: bool) -> None:
    """Print every setting, whether it is the default, and who changed it last."""
    now, found = client.store.now(), one(kind, client.store, name)
    changes = if_told(lambda: last_changes(client.store, name, kind.settings, kind=kind.word))
    if changes is None:
        note("note: where settings come from and who changed them is not told to this key", fg="yellow")
    if as_json:
        print_json(kind.show(found, now) | _changed_by(kind, found, changes))
        return
    rows = []
    for setting, meaning in kind.settings.items():
        value, entry = found.settings[setting], (changes or {}).get(setting)
        who = "" if entry is None else f"{entry.actor} {cell(entry.at)}"
        rows.append((setting, value, _source(kind, value, meaning.default, entry), who or "-"))
    print_table(["setting", "value", "from", "last changed by"], rows)
    if found.stopped(now):
        until = f" until {cell(found.paused_until)}" if found.paused_until else ""
        note(f"paused{until} by {found.paused_by}: {found.pause_reason}", fg="yellow")


def _changed_by(kind: Kind[Named], found: Named, changes: Mapping[str, AuditEntry] | None) -> dict[str, Any]:
    if changes is None:
        return {}
    values = found.settings
    return {
        "changed": {name: {"at": entry.at, "actor": entry.actor} for name, entry in changes.items()},
        "sources": {
            name: _source(kind, values[name], meaning.default, changes.get(name))
            for name, meaning in kind.settings.items()
        },
    }


def _source(kind: Kind[Named], value: object, default: object, entry: AuditEntry | None) -> str:
    """Return where a setting comes from; of pools the audit does not keep which file changed them."""
    if kind is POOL:
        return DEFAULT if value == default else SET
    return source_of(value, default, entry)


def put(
    kind: Kind[Named], client: Client, name: str, pairs: Iterable[str], *, create: bool, as_json: bool
) -> Named:
    """Change the named settings and leave the others; return the lane or pool as it is now."""
    given: dict[str, object] = {}
    for setting, value in (_pair(kind, text) for text in pairs):
        if setting in given:
            raise click.BadParameter(f"{setting} is set twice: say it once")
        given[setting] = value
    known = kind.all(client.store)
    if name not in known and not create:
        missing(kind, name, known)
    if not given and not create:
        raise click.UsageError(f"say what to change: penstock {kind.word}s set {name} max_in_flight=100")
    now, _ = kind.change(client.store, name, given, actor=actor())
    _print(kind, client, now, f"is at version {now.version}", as_json=as_json)
    return now


def _pair(kind: Kind[Named], text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(
            f"{text!r}: write NAME=VALUE, or NAME= for the default", param_hint="SETTING"
        )
    if name not in kind.settings:
        raise click.BadParameter(f"{name}: {hinted('there is no such setting', name, list(kind.settings))}")
    setting = kind.settings[name]
    if not value:
        return name, setting.default
    return name, check_setting(name, setting, _value(setting, value))


def _value(setting: Setting, text: str) -> object:
    """Return what a value says: as in a file, without quotes or with them."""
    if text.startswith(_WRITTEN):
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            return tomllib.loads(f"value = {text}")["value"]
    return _bare(setting, text)


def _bare(setting: Setting, text: str) -> object:
    if setting.kind == "retry" and not text.startswith(("[", "{")):
        return text.split(",")
    return from_text(setting.kind, text)


def pause(
    kind: Kind[Named], client: Client, name: str, *, reason: str, until: str | None, as_json: bool
) -> None:
    """Stop a lane or pool."""
    one_if_told(kind, client.store, name)
    at = time_option("--until", until, client.store.now(), future=True)
    now = kind.pause(client.store, name, paused=True, actor=actor(), reason=reason, until=at)
    said = "is paused" + (f" until {cell(at)}" if at else "")
    _print(kind, client, now, said, as_json=as_json)


def resume(kind: Kind[Named], client: Client, name: str, *, reason: str, as_json: bool) -> None:
    """Let a lane or pool go on."""
    found = one_if_told(kind, client.store, name)
    idle = found is not None and not found.stopped(client.store.now())
    now = kind.pause(client.store, name, paused=False, actor=actor(), reason=reason)
    _print(kind, client, now, "was not paused" if idle else "goes on", as_json=as_json)


def delete(kind: Kind[Named], client: Client, name: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Delete a lane or pool that nothing needs any more."""
    found = one(kind, client.store, name)
    confirmed(f'Delete {kind.word} "{name}" and its settings?', yes=yes)
    kind.delete(client.store, name, actor=actor(), reason=reason)
    _print(kind, client, found, "is deleted", as_json=as_json)


def _print(kind: Kind[Named], client: Client, found: Named, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(kind.show(found, client.store.now()))
    else:
        note(f'{kind.word} "{found.name}" {said}')


def verbs(kind: Kind[Named], *, stop: str, drop: str) -> list[click.Command]:
    """Return the commands that lanes and pools have in common; `stop` and `drop` say what comes of it."""

    @click.command("pause", help=stop, epilog=HELP)
    @click.argument("name")
    @reason_option
    @until_option
    @json_option
    @with_client
    def pause_one(client: Client, name: str, *, reason: str, until: str | None, as_json: bool) -> None:
        pause(kind, client, name, reason=reason, until=until, as_json=as_json)

    @click.command("resume", help=f"Let a paused {kind.word} go on.")
    @click.argument("name")
    @why_option
    @json_option
    @with_client
    def resume_one(client: Client, name: str, *, reason: str, as_json: bool) -> None:
        resume(kind, client, name, reason=reason, as_json=as_json)

    @click.command("delete", help=drop)
    @click.argument("name")
    @reason_option
    @yes_option
    @json_option
    @with_client
    def delete_one(client: Client, name: str, *, reason: str, yes: bool, as_json: bool) -> None:
        delete(kind, client, name, reason=reason, yes=yes, as_json=as_json)

    return [pause_one, resume_one, delete_one]
