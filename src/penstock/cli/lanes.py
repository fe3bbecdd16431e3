"""`penstock lanes`: look at lanes, change one, stop one, or make them as a file says."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from penstock.cli import named
from penstock.cli.errors import Misconfigured
from penstock.cli.named import LANE
from penstock.cli.options import actor, if_told, json_option, note, with_client
from penstock.cli.render import print_json, print_table, styled
from penstock.client import Client
from penstock.config import file as files
from penstock.config.declared import Declared, declared, sink_warnings
from penstock.config.plan import Change, apply, plan
from penstock.config.settings import look
from penstock.domain.sense import HTTP
from penstock.domain.states import IN_FLIGHT, JobState
from penstock.wire import lane_object

FILE = click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[FILE]"
)


@click.group()
def lanes() -> None:
    """Look at lanes, change one, stop one, or make them as a file says.

    A lane is a stream of jobs with one live configuration. Changes reach running nodes within a second, and
    each is kept with who made it.

    \b
    penstock lanes list
    penstock lanes set orders rate=50/s max_in_flight=20
    penstock lanes pause orders --until +30m --reason "their API is down"
    penstock lanes diff lanes.toml
    penstock lanes apply lanes.toml
    """  # noqa: D301 - \b keeps click from filling the lines


@lanes.command("list")
@json_option
@with_client
def list_(client: Client, *, as_json: bool) -> None:
    """List lanes: where they send, how fast, and how many jobs are in them."""
    now, counts = client.store.now(), if_told(client.counts)
    found = sorted(client.store.lanes().values(), key=lambda lane: lane.name)
    if counts is None:
        note("note: how many jobs are in them is not told to this key", fg="yellow")
    if as_json:
        print_json({"lanes": [lane_object(lane, now, _counts(lane.name, counts)) for lane in found]})
        return
    rows = []
    for lane in found:
        state = "disabled" if not lane["enabled"] else "paused" if lane.stopped(now) else "on"
        limit = lane["rate"] or lane["pool"]
        numbers = _numbers(lane.name, counts)
        rows.append(
            (lane.name, state, lane["sink"], lane["mode"], limit, *numbers, lane["target"] or lane["queue"])
        )
    head = ["lane", "is", "sink", "mode", "limit", "waiting", "out", "held", "dead", "target"]
    print_table(head, rows, empty="no lane yet\nTry: penstock lanes set hello --create")


def _numbers(lane: str, counts: Mapping[tuple[str, JobState], int] | None) -> list[int | None]:
    """Return how many jobs of a lane wait, are out, held and dead; nothing where that is not told."""
    columns = ({JobState.PENDING, JobState.WAITING}, IN_FLIGHT, {JobState.HELD}, {JobState.DEAD})
    if counts is None:
        return [None] * len(columns)
    return [sum(counts.get((lane, state), 0) for state in states) for states in columns]


def _counts(lane: str, counts: Mapping[tuple[str, JobState], int] | None) -> dict[str, int] | None:
    if counts is None:
        return None
    return {state.label: n for (name, state), n in sorted(counts.items()) if name == lane}


@lanes.command()
@click.argument("name")
@json_option
@with_client
def show(client: Client, name: str, *, as_json: bool) -> None:
    """Show every setting of a lane, whether it is the default, and who changed it last."""
    named.show(LANE, client, name, as_json=as_json)


@lanes.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[SETTING=VALUE]...")
@click.option("--create", is_flag=True, help="Make the lane if there is none of that name.")
@json_option
@with_client
def set_(client: Client, name: str, settings: Sequence[str], *, create: bool, as_json: bool) -> None:
    """Change settings of a lane; the others stay as they are.

    SETTING= without a value goes back to the default. Values are written as in TOML, without quotes:

    \b
    penstock lanes set orders sink=http target=https://example.com/hook --create
    penstock lanes set orders rate=50/s retry=0s,1m,5m jitter=
    """  # noqa: D301 - \b keeps click from filling the lines
    lane = named.put(LANE, client, name, settings, create=create, as_json=as_json)
    _warn(sink_warnings(None, [lane], _connections()))
    if lane["sink"] == HTTP and lane["target"] is None:
        note(f"note: {name} has no target: each of its jobs has to name one", fg="yellow")


for command in named.verbs(
    LANE,
    stop="Stop sending from a lane; jobs are still taken in and wait.",
    drop="Delete a lane; refused while it has live or dead jobs. Its history stays until it is old.",
):
    lanes.add_command(command)


@lanes.command("apply")
@FILE
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@json_option
@with_client
def apply_(client: Client, file: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Make lanes and pools as FILE says (default: the configuration file).

    Everything is checked before anything is written. A lane of the file becomes exactly as the file says:
    a setting that is not there gets its default; `enabled` stays as it is. Lanes that only the store has
    are left alone, and so is every pause. Running it twice changes nothing the second time. `lanes diff`
    shows what it would do.
    """
    path, wanted = _wanted(client, file)
    changes = _plan(client, wanted) if dry_run else apply(client.store, wanted, actor=actor(), file=path)
    _print(changes, _left_alone(client, wanted), as_json=as_json, done=not dry_run)


@lanes.command()
@FILE
@json_option
@with_client
def diff(client: Client, file: Path | None, *, as_json: bool) -> None:
    """Show what `lanes apply FILE` would change.

    Exit: 0 nothing would change, 1 something would, 2 the file is wrong, 4 the store cannot be used.
    """
    _, wanted = _wanted(client, file)
    changes = _plan(client, wanted)
    _print(changes, _left_alone(client, wanted), as_json=as_json)
    if any(change.any for change in changes):
        raise click.exceptions.Exit(1)


def _wanted(client: Client, given: Path | None) -> tuple[Path, Declared]:
    path = files.find(given or click.get_current_context().params["config"], os.environ)
    if path is None:
        raise click.UsageError(f"name a file: there is no {files.FILE_NAME} here")
    file = files.read(path)
    wanted = declared(file, pools=client.store.pools())
    if not wanted.lanes and not wanted.pools:
        raise Misconfigured(
            f"{path} declares no lane and no pool: write [lanes.NAME] and its settings below it"
        )
    sinks = {*file.tables.get("sinks", {}), *_connections()}
    _warn(sink_warnings(file, wanted.lanes.values(), sinks))
    return path, wanted


def _connections() -> Iterable[str]:
    """Return the names of connections that the configuration has, whichever file lanes come from."""
    return look(click.get_current_context().params["config"], os.environ).sinks()


def _plan(client: Client, wanted: Declared) -> list[Change]:
    return plan(wanted, lanes=client.store.lanes(), pools=client.store.pools())


def _left_alone(client: Client, wanted: Declared) -> list[str]:
    lanes, pools = client.store.lanes(), client.store.pools()
    return [
        *(f"pool {name}" for name in sorted(pools) if name not in wanted.pools),
        *(f"lane {name}" for name in sorted(lanes) if name not in wanted.lanes),
    ]


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        note(f"warning: {warning}", fg="yellow")


def _print(
    changes: Sequence[Change], left_alone: Sequence[str], *, as_json: bool, done: bool = False
) -> None:
    if as_json:
        print_json({"changes": [_object(change) for change in changes], "left_alone": left_alone})
        return
    for change in changes:
        if change.any:
            mark, colour = ("+", "green") if change.created else ("~", "yellow")
            click.echo(styled(f"{mark} {change.kind} {change.name}", fg=colour))
            for setting, (before, after) in change.settings.items():
                click.echo(f"    {setting}: {_value(before)} -> {_value(after)}")
    same = sum(not change.any for change in changes)
    note(f"{len(changes) - same} {'changed' if done else 'to change'}, {same} as they should be")
    if left_alone:
        note(f"only in the store, left alone: {', '.join(left_alone)}")


def _object(change: Change) -> dict[str, object]:
    action = "create" if change.created else "update" if change.settings else "none"
    settings = {name: {"before": old, "after": new} for name, (old, new) in change.settings.items()}
    return {"kind": change.kind, "name": change.name, "action": action, "settings": settings}


def _value(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
