"""`penstock check`: is everything as it must be before anything is started."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.core import ParameterSource

from penstock.cli.options import config_option, json_option, store_option
from penstock.cli.order import advice
from penstock.cli.render import cell, counted, print_json, print_table, styled
from penstock.config.declared import declared, sink_warnings
from penstock.config.keys import masked
from penstock.config.plan import plan
from penstock.config.settings import Settings, Value, look
from penstock.domain.filters import MAX_PAGE, JobQuery
from penstock.domain.ordering import unkept
from penstock.domain.pools import Pool
from penstock.errors import InvalidConfig, PenstockError, SchemaMismatch, StoreUnavailable
from penstock.ports.clock import SystemClock
from penstock.ports.store import Store
from penstock.stores.connect import connect, file_of, reach
from penstock.stores.health import durability, worries


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
    keeps what it is given through a crash; lanes and pools of the file are compared with the store's.

    Exit: 0 fine (warnings included unless --strict), 1 something is wrong, 4 the store cannot be reached.
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
    try:
        _check_store(settings, findings)
    except StoreUnavailable as error:
        findings.unreachable = True
        findings.add("error", f"store: {error}")
    except PenstockError as error:
        findings.add("error", f"store: {error}")
    _print(settings, findings, as_json=as_json)
    if findings.unreachable:
        raise click.exceptions.Exit(4)
    if findings.count("error") or (strict and findings.count("warning")):
        raise click.exceptions.Exit(1)


def _check_store(settings: Settings, findings: Findings) -> None:
    url = str(settings["store"])
    reach(url)
    with closing(connect(url)) as store:
        store.now()
        findings.add("ok", "store: can be reached")
        sound = [health for health in durability(store) if not health.advice]
        for health in [*sound, *worries(store, now=SystemClock().now(), file=file_of(url))]:
            findings.add("warning" if health.advice else "ok", f"store: {health}")
        try:
            store.check_schema()
        except SchemaMismatch as error:
            findings.add("error", f"store: {error}")
            return
        findings.add("ok", "store: has the tables of this version")
        for level, text in _check_lanes(settings, store):
            findings.add(level, text)


def _check_lanes(settings: Settings, store: Store) -> Iterator[tuple[str, str]]:
    """Compare the file's lanes and pools with the store's, and look for names that lead nowhere."""
    lanes, pools = store.lanes(), store.pools()
    if not lanes:
        yield (
            "warning",
            "lanes: there is none yet: penstock lanes apply FILE, or penstock lanes set NAME --create",
        )
    for lane in lanes.values():
        if lane["pool"] is not None and lane["pool"] not in pools:
            yield "warning", f'lanes.{lane.name}.pool: the store has no pool "{lane["pool"]}"'
    yield from (("warning", text) for text in sink_warnings(None, lanes.values(), settings.sinks()))
    yield from (("warning", text) for text in _unordered(store))
    if settings.file is not None and not settings.problems:
        yield from _check_declared(settings, store, pools)


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


def _check_declared(settings: Settings, store: Store, pools: dict[str, Pool]) -> Iterator[tuple[str, str]]:
    if settings.file is None:
        return
    try:
        wanted = declared(settings.file, pools=pools)
    except InvalidConfig as error:
        yield from (("error", problem) for problem in error.problems)
        return
    differ = [change.name for change in plan(wanted, lanes=store.lanes(), pools=pools) if change.any]
    if differ:
        names = ", ".join(differ)
        yield "warning", f"lanes: the store is not as the file says ({names}): see penstock lanes diff"


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
