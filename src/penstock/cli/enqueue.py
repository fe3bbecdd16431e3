"""`penstock enqueue`: one job from the command line, or a stream of them from stdin."""

import math
import os
import stat
import sys
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from penstock.cli import INTERRUPTED
from penstock.cli.bulk import Stream
from penstock.cli.errors import printing
from penstock.cli.options import if_told, json_option, note, page_of, with_client
from penstock.cli.order import advice, lost
from penstock.cli.render import print_json
from penstock.cli.times import HELP, METAVAR, time_option
from penstock.client import Client
from penstock.domain.durations import parse_duration
from penstock.domain.job import Enqueued, Job
from penstock.domain.notes import alive
from penstock.domain.ordering import Mode
from penstock.domain.payloads import BadPayload, Json, checked
from penstock.domain.states import TERMINAL, JobState
from penstock.errors import Forbidden, PenstockError
from penstock.wire import enqueued_object, job_object

if TYPE_CHECKING:
    from penstock.cli.lines import Source


def _json_text(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    try:
        return value if value in (None, "-") else checked(str(value))
    except BadPayload as error:
        hint = "\nput it in single quotes, so that the shell leaves it alone: '{\"n\": 1}'"
        unread = str(error).startswith("is not JSON")
        raise click.BadParameter(f"{error}{hint if unread else ''}", param=option) from error


def _duration(_: click.Context, option: click.Parameter, value: str | None) -> timedelta | None:
    try:
        return None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from error


@click.command(
    epilog=f"{HELP}\n\nExit: 0 done, 1 something was refused, 2 the job is wrong, 3 no such lane,"
    " 4 store unreachable, 5 done but not printed, 130 interrupted."
)
@click.argument("lane")
@click.argument("payload", metavar="[JSON|-]", required=False, callback=_json_text)
@click.option(
    "--group", metavar="NAME", help="Ordered jobs (see --mode) of one group go one after the other."
)
@click.option(
    "--sequence",
    metavar="N",
    type=int,
    help="Place of an ordered job within its group; lower goes first. [default: 99]",
)
@click.option(
    "--mode",
    type=click.Choice([mode.label for mode in Mode]),
    help="immediate keeps no order; next_on_error waits for the jobs before it in its group, block_on_error"
    " for dead ones too. Default: the lane's.",
)
@click.option("--at", metavar=METAVAR, help="Not before this time. Default: now.")
@click.option(
    "--start-by",
    metavar=METAVAR,
    help="Expire if it has not gone by then; a retry counts, and a repeated send.",
)
@click.option("--key", metavar="TEXT", help="Idempotency key: the same key again is not enqueued twice.")
@click.option("--tenant", metavar="NAME", help="Tenants of a lane share it fairly.")
@click.option("--target", metavar="URL", help="Where it is finally sent. Default: the lane's.")
@click.option("--wait", is_flag=True, help="Wait until the job has ended; exit 1 unless it succeeded.")
@click.option("--timeout", metavar="DURATION", callback=_duration, help="With --wait: no longer than this.")
@click.option("--stop-on-error", is_flag=True, help="With -: stop after the batch that holds a refused line.")
@click.option(
    "--progress/--no-progress", default=None, help="With -: default is on when stderr is a terminal."
)
@json_option
@with_client
def enqueue(  # noqa: PLR0917 - click passes by name
    client: Client,
    lane: str,
    payload: str | None,
    at: str | None,
    start_by: str | None,
    wait: bool,  # noqa: FBT001
    timeout: timedelta | None,
    stop_on_error: bool,  # noqa: FBT001
    progress: bool | None,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    **fields: Any,  # noqa: ANN401
) -> None:
    """Put a job into LANE; with - as many as stdin has lines.

    \b
    penstock enqueue hello '{"n": 1}'
    penstock enqueue orders '{"id": 7}' --group customer-7 --mode block_on_error
    penstock enqueue orders '{"id": 7}' --key order-7 --at +5m
    penstock enqueue orders - < orders.ndjson

    The id of the job is printed. With - every line is one enqueue object, as in the API:

    \b
    {"payload": {"n": 1}, "key": "order-7", "run_at": "2026-11-15T10:00:00Z"}
    {"payload": {"n": 2}, "group": "customer-7", "mode": "block_on_error"}

    LANE and the options hold for lines that do not say otherwise. A line that is refused is reported with its
    number and the others go on. Lines are written in batches; Ctrl-C finishes the one at hand and says how to
    go on.
    """  # noqa: D301 - \b keeps click from filling the lines
    if timeout is not None and not wait:
        raise click.UsageError("--timeout goes with --wait")
    now = client.store.now()
    given = {
        "lane": lane,
        **{name: value for name, value in fields.items() if value is not None},
        **({"run_at": run_at} if (run_at := time_option("--at", at, now)) else {}),
        **({"start_by": by} if (by := time_option("--start-by", start_by, now)) else {}),
    }
    if payload == "-":
        if wait or "key" in given:
            raise click.UsageError("--wait and --key are for one job; in a stream each line has its own key")
        _check_lane(client, lane)
        if not sys.stdin:
            raise click.UsageError("stdin is closed: give the lines, as in < jobs.ndjson")
        stream = Stream(as_json=as_json, stop_on_error=stop_on_error, progress=progress)
        stream.run(client, given, cast("Source", sys.stdin.buffer))
        return
    answer = client.enqueue(**given, payload=None if payload is None else Json(payload))
    _tell(client, given, now)
    if payload is None and _unread(sys.stdin):
        note(
            "note: the job has no payload; to enqueue what stdin holds, a job per line, write -", fg="yellow"
        )
    with printing(f"the job is in: {answer.id}"):
        if wait:
            _wait(client, answer, timeout, as_json=as_json)
        else:
            _print(answer, as_json=as_json)


def _check_lane(client: Client, lane: str) -> None:
    """End here if nobody knows the lane; a key that may only enqueue learns it line by line."""
    with suppress(Forbidden):
        client.lane(lane)


def _tell(client: Client, given: dict[str, Any], now: datetime) -> None:
    """Tell of what is allowed and may not be what was meant."""
    if field := lost(client, given):
        note(
            f"note: --{field} has no effect on a job of mode immediate: {advice(given['lane'])}", fg="yellow"
        )
    if given.get("start_by", now) < now:
        note("note: --start-by is past already: the job expires instead of going", fg="yellow")


def _unread(stdin: TextIO | None) -> bool:
    """Return whether somebody redirected stdin: `penstock enqueue LANE < FILE` forgot the dash."""
    try:
        mode = 0 if stdin is None else os.fstat(stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _print(answer: Enqueued, *, as_json: bool) -> None:
    if as_json:
        print_json(enqueued_object(answer))
        return
    click.echo(answer.id)
    if answer.duplicate:
        note("this key had already made that job; nothing was added")


def _wait(client: Client, answer: Enqueued, timeout: timedelta | None, *, as_json: bool) -> None:
    if not as_json:
        click.echo(answer.id)
    try:
        job = _waited(client, answer.id, timeout)
    except (PenstockError, click.exceptions.Exit):
        if as_json:  # whoever reads this must learn of the job, or would send it again
            print_json(enqueued_object(answer))
        raise
    if as_json:
        print_json(job_object(job))
    note(_ended(job), fg="green" if job.state is JobState.SUCCEEDED else "red")
    if job.state is not JobState.SUCCEEDED:
        raise click.exceptions.Exit(1)


def _waited(client: Client, id_: str, timeout: timedelta | None) -> Job:
    """Return the job as it ended; whatever comes between, it is in."""
    try:
        _count_down(client, id_, timeout)
        return client.wait(id_, timeout)
    except KeyboardInterrupt:
        note(f"no longer waiting; the job stays\nTry: penstock jobs show {id_}")
        raise click.exceptions.Exit(INTERRUPTED) from None
    except PenstockError:
        note(f"the job is in: {id_}; how it ends is not known here", fg="yellow")
        raise


def _count_down(client: Client, id_: str, timeout: timedelta | None) -> None:
    """Tell a person who watches how long it is until the job is due; it may be cancelled meanwhile."""
    job, now = client.get(id_), client.store.now()
    left = (job.live.due_at - now).total_seconds()
    if job.state not in TERMINAL and if_told(lambda: not alive(client.store.nodes(), now)):
        note("note: no node is running that would send it; start one: penstock serve", fg="yellow")
    if not sys.stderr.isatty() or (timeout is not None and timeout.total_seconds() < left):
        return
    pause = threading.Event()
    while left > 0 and job.state not in TERMINAL:
        click.echo(f"\r\x1b[Kdue in {math.ceil(left)} s", err=True, nl=False)
        pause.wait(min(1.0, left))
        job, now = client.get(id_), client.store.now()
        left = (job.live.due_at - now).total_seconds()
    click.echo("\r\x1b[K", err=True, nl=False)


def _ended(job: Job) -> str:
    if job.state not in TERMINAL:
        return f"still {job.state.label}\nTry: penstock jobs show {job.id}"
    why = [text for text in (job.live.reason, job.error) if text]
    sent, due = job.live.sent_at or job.live.claimed_at, job.live.due_at
    late = f", sent {max(0, (sent - due) // timedelta(milliseconds=1))} ms after it was due" if sent else ""
    told = ": ".join([f"{job.state.label}{late}", *why])
    page = page_of(job.id)
    return f"{told}\nSee: penstock jobs timeline {job.id}{f', or {page}' if page else ''}"
