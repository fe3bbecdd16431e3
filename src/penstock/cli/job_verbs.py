"""What an operator can do to jobs: cancel, skip, hold, release, retry, settle, edit."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from penstock.cli.errors import Missing
from penstock.cli.options import confirmed, json_option, reason_option, with_client, yes_option
from penstock.cli.render import print_json, printable
from penstock.cli.times import HELP, METAVAR, time_option
from penstock.client import Client
from penstock.domain.payloads import Json
from penstock.domain.states import Effect
from penstock.errors import NotFound
from penstock.ports.store import Done
from penstock.wire import done_object

Command = TypeVar("Command", bound=Callable[..., Any])
IDS: Final = click.argument("ids", metavar="ID...", nargs=-1, required=True)


def each(
    ids: Sequence[str], act: Callable[[str], Done], *, as_json: bool, ask: str = "", yes: bool = True
) -> None:
    """Do it to each job and print what happened; exit 1 when one was refused, 3 when one is not there."""
    if ask:
        confirmed(f"{ask} {', '.join(ids) if len(ids) < 4 else f'{len(ids)} jobs'}?", yes=yes)
    code, results = 0, []
    for id_ in ids:
        try:
            done = act(id_)
        except NotFound as error:
            if len(ids) == 1:
                raise Missing(str(error)) from error
            done = Done(Effect.REFUSED, None, str(error))
        results.append(done_object(id_, done))
        if done.effect is Effect.REFUSED:
            code = max(code, 3 if done.state is None else 1)
        if not as_json:
            click.echo(_line(id_, done))
    if as_json:
        print_json({"results": results})
    if code:
        raise click.exceptions.Exit(code)


def _line(id_: str, done: Done) -> str:
    state = "" if done.state is None else done.state.label
    match done.effect:
        case Effect.NOW:
            said = state
        case Effect.REQUESTED:
            said = f"requested: it is {state}, whoever holds it is asked"
        case Effect.REFUSED:
            said = f"refused: {done.text or f'it is {state}'}"
    return f"{printable(id_)}\t{printable(said)}"


@click.command()
@IDS
@reason_option
@click.option(
    "--force",
    is_flag=True,
    help="End it now even if it was sent: an outcome that comes later is recorded and changes nothing. Of a "
    "claimed job its node is asked.",
)
@yes_option
@json_option
@with_client
def cancel(client: Client, ids: Sequence[str], *, reason: str, force: bool, yes: bool, as_json: bool) -> None:
    """End jobs that were not sent, and ask for those that were.

    A claimed job is about to be sent or being sent: its node is asked, and does not send it if there is time.
    """
    act = lambda id_: client.cancel(id_, reason=reason, force=force)  # noqa: E731
    each(ids, act, as_json=as_json, ask="Cancel", yes=yes)


@click.command()
@IDS
@reason_option
@yes_option
@json_option
@with_client
def skip(client: Client, ids: Sequence[str], *, reason: str, yes: bool, as_json: bool) -> None:
    """Pass over jobs that wait or are dead; their groups go on. It cannot be undone."""
    each(ids, lambda id_: client.skip(id_, reason=reason), as_json=as_json, ask="Skip", yes=yes)


@click.command()
@IDS
@reason_option
@json_option
@with_client
def hold(client: Client, ids: Sequence[str], *, reason: str, as_json: bool) -> None:
    """Park jobs until they are released; an ordered group waits with its job."""
    each(ids, lambda id_: client.hold(id_, reason=reason), as_json=as_json)


@click.command()
@IDS
@reason_option
@json_option
@with_client
def release(client: Client, ids: Sequence[str], *, reason: str, as_json: bool) -> None:
    """Let held jobs go."""
    each(ids, lambda id_: client.release(id_, reason=reason), as_json=as_json)


@click.command()
@IDS
@reason_option
@click.option("--out-of-order", is_flag=True, help="Even if jobs behind it in its group have gone already.")
@json_option
@with_client
def retry(client: Client, ids: Sequence[str], *, reason: str, out_of_order: bool, as_json: bool) -> None:
    """Send waiting jobs now, and dead, expired or cancelled ones again.

    Refused where another job has its key by now, or where jobs behind it in its group went already.
    """
    each(ids, lambda id_: client.retry(id_, reason=reason, out_of_order=out_of_order), as_json=as_json)


@click.command()
@IDS
@click.option(
    "--as", "outcome", type=click.Choice(["succeeded", "dead"]), required=True, help="What became of it."
)
@reason_option
@yes_option
@json_option
@with_client
def settle(
    client: Client, ids: Sequence[str], *, outcome: str, reason: str, yes: bool, as_json: bool
) -> None:
    """Say what became of jobs that are out, held or dead, when nobody else will. It cannot be undone."""
    act = lambda id_: client.settle(id_, outcome, reason=reason)  # noqa: E731
    each(ids, act, as_json=as_json, ask=f"Settle as {outcome}:", yes=yes)


@click.command(epilog=HELP)
@click.argument("id_", metavar="ID")
@click.option("--payload", metavar="JSON|-", help="The new payload; - reads it from stdin.")
@click.option("--target", metavar="URL", help="Where it is sent; empty: where the lane says.")
@click.option("--at", metavar=METAVAR, help="When it is due.")
@click.option("--replay", is_flag=True, help="Needed for an ended job: it goes again.")
@click.option("--out-of-order", is_flag=True, help="Even if jobs behind it in its group have gone already.")
@reason_option
@json_option
@with_client
def edit(
    client: Client,
    id_: str,
    *,
    payload: str | None,
    target: str | None,
    at: str | None,
    replay: bool,
    out_of_order: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Change what a job sends, where or when; what it was before is kept."""
    content: dict[str, Any] = {}
    if payload is not None:
        content["payload"] = Json(sys.stdin.read() if payload == "-" else payload)
    if target is not None:
        content["target"] = target or None
    run_at = time_option("--at", at, client.store.now())
    if not content and run_at is None:
        raise click.UsageError("say what to change: --payload, --target or --at")

    def act(each: str) -> Done:
        return client.edit(
            each, reason=reason, run_at=run_at, replay=replay, out_of_order=out_of_order, **content
        )

    each([id_], act, as_json=as_json)


VERBS: Final = (cancel, skip, hold, release, retry, settle, edit)
