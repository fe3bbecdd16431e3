"""`penstock targets`: which targets are left alone, and until when."""

from datetime import datetime

import click

from penstock.cli.options import json_option, with_client
from penstock.cli.render import ago, on_terminal, print_json, print_table
from penstock.client import Client


@click.group()
def targets() -> None:
    """Look at targets that do not answer as they should."""


@targets.command("list")
@json_option
@with_client
def list_(client: Client, *, as_json: bool) -> None:
    """List targets whose breaker is not closed, or that asked to be left alone; their jobs wait.

    A target is a scheme, host and port. It is tried again by itself.
    """
    found = sorted(client.store.targets().values(), key=lambda target: target.name)
    if as_json:
        names = {"name": "target", "until": "open_until"}
        shown = [{names.get(name, name): value for name, value in one._asdict().items()} for one in found]
        print_json({"targets": shown})
        return
    now = client.store.now()
    rows = [
        (one.name, one.state, one.failures, _when(one.until, now), _when(one.slow_until, now))
        for one in found
    ]
    head = ("target", "breaker", "failures", "next try", "slow until")
    print_table(head, rows, empty="every target answers as it should")


def _when(at: datetime | None, now: datetime) -> object:
    return at if at is None or not on_terminal() else ago(at, now)
