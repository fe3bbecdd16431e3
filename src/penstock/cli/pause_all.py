"""`penstock pause-all` and `resume-all`: stop every lane at once, and let them go again."""

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
from penstock.cli.render import cell, print_json
from penstock.cli.times import HELP, time_option
from penstock.client import Client
from penstock.domain.pauses import Pause
from penstock.wire import pause_object


@click.command("pause-all", epilog=HELP)
@reason_option
@until_option
@json_option
@with_client
def pause_all(client: Client, *, reason: str, until: str | None, as_json: bool) -> None:
    """Stop sending from every lane; jobs are still taken in and wait.

    Nodes stop within a second. What is already sent is not called back, and its outcome counts.
    """
    at = time_option("--until", until, client.store.now(), future=True)
    pause = client.store.pause_store(paused=True, actor=actor(), reason=reason, until=at)
    _print(pause, "all lanes are paused" + (f" until {cell(at)}" if at else ""), as_json=as_json)


@click.command("resume-all")
@why_option
@json_option
@with_client
def resume_all(client: Client, *, reason: str, as_json: bool) -> None:
    """Let every lane go on that is not paused itself."""
    idle = if_told(lambda: client.store.store_pause() is None)
    pause = client.store.pause_store(paused=False, actor=actor(), reason=reason)
    _print(pause, "the store was not paused" if idle else "all lanes go on", as_json=as_json)


def _print(pause: Pause | None, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"pause": pause_object(pause)})
    else:
        note(said)
