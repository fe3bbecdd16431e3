"""`penstock check`: is everything as it must be before anything is started."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from penstock.cli.options import config_option, json_option, store_option
from penstock.cli.order import advice
from penstock.cli.render import cell, counted, print_json, print_table, styled
from penstock.config.declared import declared, sink_warnings
from penstock.config.file import ConfigFile
from penstock.config.keys import SAME_PORT, masked
from penstock.config.plan import plan
from penstock.config.settings import Settings, Value, look
from penstock.domain.addresses import is_address, networks, refusal
from penstock.domain.filters import MAX_PAGE, JobQuery
from penstock.domain.lanes import Lane
from penstock.domain.ordering import unkept
from penstock.domain.pools import Pool
from penstock.domain.sense import HTTP
from penstock.errors import InvalidConfig, PenstockError, SchemaMismatch, StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.ports.store import Store
from penstock.stores.connect import connect, file_of, reach
from penstock.stores.health import durability, missing_keys, worries


@dataclass(slots=True)
class Findings:
    """What was looked at and how it is; `unreachable` when the store did not answer."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    unreachable: bool = False

    def add(self, level: str, text: str) -> None:
        """Note an `ok`, a `warning` or an `error`."""
        self.lines.append((level, text))

    def count(self, level: str) -> int:
        """Return how many there are of a level."""
        return sum(found == level for found, _ in self.lines)


@click.command()
@store_option
@config_option
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@json_option
@click.pass_context
def check(ctx: click.Context, *, url: str | None, config: Path | None, strict: bool, as_json: bool) -> None:
    """Check the configuration and the store, and show every value in force with where it comes from.

    Nothing is changed. The store is asked whether it can be reached, has the tables of this version, and
    keeps what it is given through a crash; lanes, pools and sinks of the file are checked, with a store or
    without, and compared with the store's. Whether brokers answer is for penstock doctor to say.

    Exit: 0 fine (warnings included unless --strict), 1 something is wrong, 4 nothing but that the store
    cannot be reached.
    """
    settings, findings = look(config, os.environ), Findings()
    if url is not None and ctx.get_parameter_source("url") is ParameterSource.COMMANDLINE:
        settings.values["store"] = Value(url, "--store")
    for problem in settings.problems:
        findings.add("error", problem)
    for warning in settings.warnings:
        findings.add("warning", warning)
    if not settings.problems:
        findings.add("ok", f"configuration: {settings.file.path if settings.file else 'no file, defaults'}")
    if settings["metrics_port"] and settings["metrics_port"] == settings["port"]:
        findings.add("error", f"metrics_port: {SAME_PORT}")
    stored = None
    try:
        stored = _check_store(settings, findings)
    except StoreUnavailable as error:
        findings.unreachable = True
        findings.add("error", f"store: {error}")
    except PenstockError as error:
        findings.add("error", f"store: {error}")
    for level, text in _check_file(settings, stored):
        findings.add(level, text)
    _print(settings, findings, as_json=as_json)
    if findings.count("error") > findings.unreachable or (strict and findings.count("warning")):
        raise click.exceptions.Exit(1)
    if findings.unreachable:
        raise click.exceptions.Exit(4)


class Stored(NamedTuple):
    """What the store has."""

    lanes: Mapping[str, Lane]
    pools: Mapping[str, Pool]


def _check_store(settings: Settings, findings: Findings) -> Stored | None:
    """Note how the store is; return what it has, None = it has not the tables for it."""
    url = str(settings["store"])
    reach(url)
    with closing(connect(url)) as store:
        store.now()
        findings.add("ok", "store: can be reached")
        sound = [health for health in durability(store) if not health.advice]
        for health in [*sound, *worries(store, now=SystemClock().now, file=file_of(url))]:
            findings.add("warning" if health.advice else "ok", f"store: {health}")
        try:
            store.check_schema()
        except SchemaMismatch as error:
            findings.add("error", f"store: {error}")
            return None
        findings.add("ok", "store: has the tables of this version")
        stored = Stored(store.lanes(), store.pools())
        for text in _check_lanes(settings, store, stored):
            findings.add("warning", text)
        return stored


def _check_lanes(settings: Settings, store: Store, stored: Stored) -> Iterator[str]:
    """Look for names that lead nowhere."""
    lanes, pools = stored
    if not lanes:
        yield "lanes: there is none yet: penstock lanes apply FILE, or penstock lanes set NAME --create"
    for lane in lanes.values():
        if lane["pool"] is not None and lane["pool"] not in pools:
            yield f'lanes.{lane.name}.pool: the store has no pool "{lane["pool"]}"'
    yield from (f"keys: {lack}" for lack in missing_keys(store))
    yield from sink_warnings(None, lanes.values(), settings.sinks())
    yield from _refused(settings, lanes.values())
    yield from _unordered(store)


def _refused(settings: Settings, lanes: Iterable[Lane]) -> Iterator[str]:
    """Name lanes whose own target is an address that nodes do not call; names may mean one, nobody asks."""
    allowed = settings["http.allow_networks"]
    allow = networks(allowed if isinstance(allowed, tuple) else ())
    for lane in lanes:
        host = urlsplit(lane["target"] or "").hostname if lane["sink"] == HTTP else None
        address = "127.0.0.1" if host == "localhost" else host
        if address and is_address(address) and (why := refusal(address, allow=allow)):
            yield f"lanes.{lane.name}.target: penstock serve does not call it: {why}"


def _unordered(store: Store) -> Iterator[str]:
    """Name lanes whose newest jobs ask for order and do not get it."""
    jobs = store.list_jobs(JobQuery(limit=MAX_PAGE)).jobs
    asks = {
        job.lane: field
        for job in reversed(jobs)
        if job.context and (field := unkept(job.mode, job.group, job.context.sequence))
    }
    for lane, field in sorted(asks.items()):
        yield f"lanes.{lane}.mode: new jobs have a {field} and mode immediate, {advice(lane)}"


def _check_file(settings: Settings, stored: Stored | None) -> Iterator[tuple[str, str]]:
    """Check lanes, pools and connections of the file, and compare them with the store's, if that answered."""
    lanes = {} if stored is None else dict(stored.lanes)
    if settings.file is not None:
        pools = _named_pools(settings.file) if stored is None else stored.pools
        try:
            wanted = declared(settings.file, pools=pools)
        except InvalidConfig as error:
            yield from (("error", text) for text in error.problems if text not in settings.problems)
        else:
            if stored is not None:
                differ = [
                    change.name
                    for change in plan(wanted, lanes=stored.lanes, pools=stored.pools)
                    if change.any
                ]
                if differ:
                    names = ", ".join(differ)
                    yield (
                        "warning",
                        f"lanes: the store is not as the file says ({names}): see penstock lanes diff",
                    )
            lanes |= wanted.lanes
    if settings.sinks() or any(lane["sink"] != "console" for lane in lanes.values()):
        from penstock.cli.sink_check import sink_mistakes  # noqa: PLC0415 - it loads what opens connections

        yield from (("error", text) for text in sink_mistakes(settings, lanes.values()))


def _named_pools(file: ConfigFile) -> set[str]:
    """Return the pools that lanes name: with nobody to ask, the store is taken to have them."""
    lanes = file.tables.get("lanes", {})
    tables = lanes.values() if isinstance(lanes, Mapping) else ()
    return {str(table["pool"]) for table in tables if isinstance(table, Mapping) and "pool" in table}


def _print(settings: Settings, findings: Findings, *, as_json: bool) -> None:
    values = [(name, masked(name, value), source) for name, (value, source) in settings.values.items()]
    errors, warnings = findings.count("error"), findings.count("warning")
    if as_json:
        print_json(
            {
                "ok": not errors,
                "values": [
                    {"name": name, "value": value, "source": source} for name, value, source in values
                ],
                "findings": [{"level": level, "text": text} for level, text in findings.lines],
            }
        )
        return
    print_table(["key", "value", "from"], values)
    colours = {"error": "red", "warning": "yellow", "ok": "green"}
    for level, text in findings.lines:
        click.echo(f"{styled(level, fg=colours[level])}: {cell(text)}")
    click.echo(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}", err=True)
