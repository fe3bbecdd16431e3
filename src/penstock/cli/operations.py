"""`penstock replay`, `penstock bulk`, `penstock operations`: one verb on all jobs that a filter finds.

First it is counted, then somebody says yes, then whoever leads carries it out; here it is only watched.
"""

import json
import sys
import threading
from typing import Any, Final

import click

from penstock.bulk import Preview
from penstock.cli import INTERRUPTED
from penstock.cli.options import confirmed, if_told, json_option, note, reason_option, with_client, yes_option
from penstock.cli.render import ago, on_terminal, print_facts, print_json, print_table
from penstock.client import Client
from penstock.domain.operations import MOST_RATE, OPEN, STATES, Operation
from penstock.wire import encode

VERBS: Final = [str(verb) for verb in STATES if str(verb) != "edit"]
LOOK_S: Final = 0.25
force_option: Final = click.option(
    "--out-of-order", is_flag=True, help="Even where jobs behind them in a group went already."
)
rate_option: Final = click.option(
    "--rate", metavar="N", type=click.IntRange(1, MOST_RATE), help="At most so many jobs a second."
)
dry_option: Final = click.option("--dry-run", is_flag=True, help="Say what it is about, and do nothing.")
wait_option: Final = click.option("--no-wait", is_flag=True, help="Begin it and leave; see operations show.")


@click.command()
@click.argument("line", metavar="FILTER")
@reason_option
@rate_option
@force_option
@dry_option
@wait_option
@yes_option
@json_option
@with_client
def replay(client: Client, line: str, *, out_of_order: bool, **how: Any) -> None:  # noqa: ANN401 - click's
    """Send dead letters again: all that FILTER finds, in the order of their groups.

    What it is about is counted first. The node that leads carries it out, no faster than --rate, across
    restarts; Ctrl-C stops watching, not the replay. Expired and cancelled jobs go again if FILTER names them;
    penstock dead replay is the same for dead letters alone.

    \b
    penstock replay "lane:orders error:timeout" --rate 50 --reason "the shop is back" --dry-run
    penstock replay "lane:orders error:timeout" --rate 50 --reason "the shop is back"
    penstock replay "fingerprint:5f0c1d2e3a4b finished<1d" --reason "fixed"
    """  # noqa: D301 - \b keeps click from filling the lines
    begin(client, "retry", line, force=out_of_order, **how)


@click.command()
@click.argument("verb", type=click.Choice(VERBS))
@click.argument("line", metavar="FILTER")
@reason_option
@rate_option
@click.option("--force", is_flag=True, help="Cancel what is out already; retry out of order.")
@dry_option
@wait_option
@yes_option
@json_option
@with_client
def bulk(client: Client, verb: str, line: str, *, force: bool, **how: Any) -> None:  # noqa: ANN401 - click's
    """Do one thing to all jobs that FILTER finds: cancel, skip, hold, release or retry them.

    \b
    penstock bulk cancel "lane:sms created>1d" --reason "too late to matter" --dry-run
    penstock bulk hold "lane:pay tenant:acme" --reason "the customer asked"
    """  # noqa: D301 - \b keeps click from filling the lines
    begin(client, verb, line, force=force, **how)


@click.group()
def operations() -> None:
    """Look at replays and other bulk operations, and stop them."""


@operations.command("list")
@click.option("--limit", metavar="N", type=click.IntRange(1, 500), default=20, show_default=True)
@json_option
@with_client
def list_(client: Client, *, limit: int, as_json: bool) -> None:
    """List bulk operations, the newest first."""
    found = client.operations(limit=limit).operations
    if as_json:
        print_json({"operations": [_object(one) for one in found]})
        return
    now = client.store.now()
    rows = [
        (
            one.id,
            one.verb,
            one.state,
            _progress(one),
            ago(one.created_at, now) if on_terminal() else one.created_at,
            one.actor,
            one.filter,
            one.reason,
        )
        for one in found
    ]
    head = ("id", "verb", "state", "jobs", "began", "by", "filter", "reason")
    print_table(
        head, rows, empty="no bulk operation yet\nTry: penstock replay FILTER --reason TEXT --dry-run"
    )


@operations.command()
@click.argument("id_", metavar="ID")
@json_option
@with_client
def show(client: Client, id_: str, *, as_json: bool) -> None:
    """Show one bulk operation: how far it is, and why jobs were refused."""
    shown = _object(client.operation(id_))
    if as_json:
        print_json(shown)
        return
    facts = [(name, value) for name, value in shown.items() if value not in (None, False, {})]
    print_facts((name, encode(value) if isinstance(value, dict) else value) for name, value in facts)


@operations.command()
@click.argument("id_", metavar="ID")
@reason_option
@json_option
@with_client
def stop(client: Client, id_: str, *, reason: str, as_json: bool) -> None:
    """Stop a bulk operation where it is; what is done is done."""
    stopped = client.stop(id_, reason=reason)
    if as_json:
        print_json(_object(stopped))
    else:
        click.echo(f"{stopped.id}\t{stopped.state}, {_progress(stopped)}")


def begin(
    client: Client,
    verb: str,
    line: str,
    *,
    reason: str,
    rate: int | None,
    force: bool = False,
    dry_run: bool,
    no_wait: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Count what is meant, ask, begin the operation and watch it."""
    preview = client.preview(verb, line)
    if dry_run:
        if as_json:
            print_json({**preview._asdict(), "verb": str(preview.verb)})
        else:
            click.echo(_about(preview))
        return
    if not preview.matched:
        note("no job is meant: nothing to do")
        if as_json:
            print_json(None)
        return
    note(_about(preview))
    confirmed(f"{verb.capitalize()} them?", yes=yes)
    begun = client.start(verb, line, reason=reason, rate=rate, force=force)
    if not as_json:
        click.echo(begun.id)
    ended = begun if no_wait else _watch(client, begun)
    if as_json:
        print_json(_object(ended))
    if not no_wait:
        note(f"{ended.state}: {_progress(ended)}")
        for why, number in json.loads(ended.refusals).items():
            note(f"  {number} refused: {why}")
        if ended.state != "done":
            raise click.exceptions.Exit(1)


def _watch(client: Client, operation: Operation) -> Operation:
    """Return the operation once it has ended; Ctrl-C leaves it to itself."""
    pause, shown = threading.Event(), sys.stderr.isatty()
    try:
        if if_told(lambda: client.store.leader() is None):
            note("no node leads now: it begins when one does")
        while operation.state in OPEN:
            if shown:
                click.echo(f"\r\x1b[K{operation.state}: {_progress(operation)}", err=True, nl=False)
            pause.wait(LOOK_S)
            operation = client.operation(operation.id)
    except KeyboardInterrupt:
        note(
            f"\nno longer watching; it goes on\nSee: penstock operations show {operation.id}\n"
            f"Stop it: penstock operations stop {operation.id} --reason TEXT"
        )
        raise click.exceptions.Exit(INTERRUPTED) from None
    if shown:
        click.echo("\r\x1b[K", err=True, nl=False)
    return operation


def _about(preview: Preview) -> str:
    more = "more than " if preview.capped else ""
    lanes = ", ".join(f"{name}: {number}" for name, number in sorted(preview.lanes.items()))
    states = ", ".join(f"{number} {name}" for name, number in sorted(preview.states.items()))
    return f"{more}{preview.matched} jobs" + (f" ({states}; {lanes})" if preview.matched else "")


def _progress(operation: Operation) -> str:
    meant = "?" if operation.matched is None else f"{operation.matched:,}"
    parts = [f"{operation.done:,} of {meant}"]
    parts += [f"{operation.requested:,} requested"] if operation.requested else []
    parts += [f"{operation.refused:,} refused"] if operation.refused else []
    return ", ".join(parts)


def _object(operation: Operation) -> dict[str, Any]:
    hidden = ("place", "next_at", "found")
    shown = {name: value for name, value in operation._asdict().items() if name not in hidden}
    return shown | {
        "change": None if operation.change is None else json.loads(operation.change),
        "refusals": json.loads(operation.refusals),
    }
