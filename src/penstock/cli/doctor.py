"""`penstock doctor`: what is wrong right now, and what to do about it; text to put into a bug report.

`check` says whether a configuration is right before anything starts; this looks at what is running. The
examinations are in symptoms.py.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from penstock.cli.ask import NodeUnreachable, ask
from penstock.cli.errors import reported
from penstock.cli.options import (
    config_option,
    json_option,
    named_way,
    nowhere_else_option,
    profile_option,
    store_option,
)
from penstock.cli.render import counted, on_terminal, print_json, printable, styled
from penstock.cli.symptoms import Symptom, environment, flow, nodes_of, sinks_in_use, stuck, vital
from penstock.config.settings import Settings, Value, look
from penstock.errors import PenstockError, SchemaMismatch, StoreUnavailable
from penstock.observability.logs import redacted
from penstock.ports.clock import SystemClock
from penstock.stores.connect import connect, file_of, reach
from penstock.stores.health import durability, missing_keys, worries

COLOURS: Final = {"error": "red", "warning": "yellow", "ok": "green"}


@click.command()
@store_option
@nowhere_else_option
@profile_option
@config_option
@click.option("--no-sinks", is_flag=True, help="Do not connect to brokers.")
@json_option
def doctor(*, config: Path | None, no_sinks: bool, as_json: bool, **_ways: object) -> None:
    """Look for what is wrong: environment, configuration, store, clocks, nodes, sinks, jobs that are stuck.

    Each finding says what to do. Nothing is changed, nothing is sent; connections to brokers are opened and
    closed. Passwords and tokens are masked: paste it into a bug report.

    Exit: 0 nothing is wrong (warnings included), 1 something is, 4 the store cannot be reached.
    """
    with reported():
        way = named_way(here=True)
    settings = look(config, os.environ)
    if way is not None:
        settings.values["store"] = Value(way.url, "--store" if way.profile is None else "--profile")
    found = list(environment(os.environ))
    found += [Symptom("error", "configuration", problem) for problem in settings.problems]
    if not settings.problems:
        source = settings.file.path if settings.file else "no file, defaults"
        found.append(Symptom("ok", "configuration", f"{source}"))
    reached = True
    try:
        found += _examine(settings, sinks=not no_sinks)
    except StoreUnavailable as error:
        reached = False
        found.append(Symptom("error", "store", str(error)))
    except PenstockError as error:
        found.append(Symptom("error", "store", str(error)))
    found += _here(settings)
    _print(found, as_json=as_json)
    if not reached:
        raise click.exceptions.Exit(4)
    if any(symptom.level == "error" for symptom in found):
        raise click.exceptions.Exit(1)


def _examine(settings: Settings, *, sinks: bool) -> Iterator[Symptom]:
    url, clock = str(settings["store"]), SystemClock()
    reach(url)
    with closing(connect(url)) as store:
        store.now()
        sound = [health for health in durability(store) if not health.advice]
        for health in [*sound, *worries(store, now=clock.now, file=file_of(url))]:
            yield Symptom(
                "warning" if health.advice else "ok",
                "store",
                f"{health.setting} = {health.value}",
                health.advice,
            )
        try:
            store.check_schema()
        except SchemaMismatch as error:
            yield Symptom("error", "migrations", str(error))
            return
        yield Symptom("ok", "migrations", "the tables of this version are there")
        for lack in missing_keys(store):
            yield Symptom("warning", "keys", *lack.rsplit(": ", 1))
        for examine in (nodes_of, vital, flow, stuck):
            yield from examine(store)
        if sinks:
            yield from sinks_in_use(store, settings, clock)


def _here(settings: Settings) -> Iterator[Symptom]:
    """Ask the node on this machine, if there is one, whether it is ready."""
    address = f"http://127.0.0.1:{settings['port']}"
    try:
        ready = ask(address, "/health/ready", statuses=(200, 503))
    except NodeUnreachable:
        yield Symptom("ok", "node", f"none answers at {address}; that is fine if yours are elsewhere")
        return
    if ready.get("ready"):
        yield Symptom("ok", "node", f"the one at {address} is ready")
    for reason in ready.get("reasons", []):
        yield Symptom(
            "error", "node", f"the one at {address} is not ready: {reason['part']}: {reason['text']}"
        )


def _print(found: list[Symptom], *, as_json: bool) -> None:
    errors, warnings = (sum(one.level == level for one in found) for level in ("error", "warning"))
    if as_json:
        shown = [
            one._asdict() | {"text": redacted(one.text), "fix": redacted(one.fix) or None} for one in found
        ]
        print_json({"ok": not errors, "findings": shown})
        return
    for one in found:
        level = styled(f"{one.level:7}", fg=COLOURS[one.level]) if on_terminal() else f"{one.level:7}"
        fix = f"\n        → {one.fix}" if one.fix else ""
        click.echo(f"{level} {one.part}: {printable(redacted(one.text))}{redacted(fix)}")
    click.echo(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}", err=True)
