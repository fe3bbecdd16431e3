"""`penstock targets`: which targets are left alone, until when, and a way to stop sending to one."""

from datetime import datetime

import click

from penstock.cli.options import (
    actor,
    if_told,
    json_option,
    note,
    reason_option,
    until_option,
    why_option,
    with_client,
)
from penstock.cli.render import ago, cell, on_terminal, print_json, print_table
from penstock.cli.times import HELP, time_option
from penstock.client import Client
from penstock.domain.pauses import Pause
from penstock.domain.targets import paused_name
from penstock.wire import pause_object, target_object


@click.group()
def targets() -> None:
    """Look at targets that do not answer as they should, and stop sending to one.

    A target is a scheme, host and port; of a longer URL the rest is left away.

    \b
    penstock targets pause https://api.example.org --until +2h --reason "they move house"
    penstock targets resume https://api.example.org
    """  # noqa: D301 - \b keeps click from filling the lines


@targets.command("list")
@json_option
@with_client
def list_(client: Client, *, as_json: bool) -> None:
    """List targets whose breaker is not closed, that asked to be left alone or are paused; their jobs wait.

    A breaker is tried again by itself, a pause ends at its time or when somebody resumes the target.
    """
    found = sorted(client.store.targets().values(), key=lambda target: target.name)
    if as_json:
        names = {"name": "target", "until": "open_until"}
        shown = [
            {names.get(name, name): value for name, value in target_object(one).items()} for one in found
        ]
        print_json({"targets": shown})
        return
    now = client.store.now()
    rows = [
        (
            one.name,
            one.state,
            one.failures,
            _when(one.until, now),
            _when(one.slow_until, now),
            f"{one.pause.actor}: {one.pause.reason}" if one.pause else None,
            _when(one.pause.until, now) if one.pause else None,
        )
        for one in found
    ]
    head = ("target", "breaker", "failures", "next try", "slow until", "paused by", "paused until")
    print_table(head, rows, empty="every target answers as it should")


@targets.command()
@click.argument("target", metavar="URL")
@reason_option
@json_option
@with_client
def reset(client: Client, target: str, *, reason: str, as_json: bool) -> None:
    """Close a target's breaker and end its slow-down; jobs that waited go within seconds."""
    name = paused_name(target)
    done = client.store.reset_target(name, actor=actor(), reason=reason)
    if as_json:
        print_json({"target": name, "reset": done})
    else:
        note(f"{name} is called again" if done else f"{name} was not left alone")


@targets.command(epilog=HELP)
@click.argument("target", metavar="URL")
@reason_option
@until_option
@json_option
@with_client
def pause(client: Client, target: str, *, reason: str, until: str | None, as_json: bool) -> None:
    """Stop sending to a target, whatever lane a job is of; its jobs wait and lose no attempt.

    Nodes stop within a second. What is already sent is not called back, and its outcome counts.
    """
    name, at = paused_name(target), time_option("--until", until, client.store.now(), future=True)
    found = client.store.pause_target(name, paused=True, actor=actor(), reason=reason, until=at)
    _print(name, found, "is paused" + (f" until {cell(at)}" if at else ""), as_json=as_json)


@targets.command()
@click.argument("target", metavar="URL")
@why_option
@json_option
@with_client
def resume(client: Client, target: str, *, reason: str, as_json: bool) -> None:
    """Let a paused target go on; jobs that waited go within seconds."""
    name = paused_name(target)
    known = if_told(client.store.targets)
    idle = known is not None and (name not in known or known[name].pause is None)
    found = client.store.pause_target(name, paused=False, actor=actor(), reason=reason)
    _print(name, found, "was not paused" if idle else "goes on", as_json=as_json)


def _print(name: str, pause: Pause | None, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"target": name, "pause": pause_object(pause)})
    else:
        note(f"{name} {said}")


def _when(at: datetime | None, now: datetime) -> object:
    return at if at is None or not on_terminal() else ago(at, now)
