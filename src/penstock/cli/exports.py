"""`penstock jobs export` and `watch`: all of a list into a file, and one job until it has ended."""

import csv
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import click

from penstock.cli import INTERRUPTED
from penstock.cli.errors import Refused
from penstock.cli.options import json_option, note, with_client
from penstock.cli.pages import Pages
from penstock.cli.render import cell, counted
from penstock.client import Client
from penstock.domain.filters import Order
from penstock.domain.job import Job
from penstock.domain.masking import MASK
from penstock.domain.states import TERMINAL, JobState
from penstock.domain.texts import no_formula
from penstock.wire import encode, job_object, stamp, timeline_object

LOOK_S: Final = 0.5
COLUMNS: Final = (
    "id", "lane", "group", "sequence", "mode", "state", "reason", "run_at", "attempt", "send", "tenant",
    "key", "target", "last_error", "created_at", "sent_at", "finished_at", "duration_ms",
)  # fmt: skip
AGAIN: Final = (
    "lane", "payload", "group", "sequence", "mode", "tenant", "target", "headers", "pool",
    "max_attempts", "entity", "version", "event", "correlation",
)  # fmt: skip
TIMES: Final = ("run_at", "start_by", "finish_by")

WITHHELD: Final = (
    "without what they carry, which this key may not see, these would be other jobs:"
    " --enqueueable needs the scope payload"
)


@click.command()
@click.argument("line", metavar="[FILTER]", default="")
@click.option("--state", "states", type=click.Choice([state.label for state in JobState]), multiple=True)
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@click.option("--payloads", is_flag=True, help="The payloads too (jsonl).")
@click.option("--enqueueable", is_flag=True, help="Only what `penstock enqueue LANE -` reads (jsonl).")
@click.option("--keys", is_flag=True, help="With --enqueueable: the keys as they are, for another store.")
@with_client
def export(
    client: Client,
    *,
    line: str,
    states: Sequence[str],
    form: str,
    payloads: bool,
    enqueueable: bool,
    keys: bool,
) -> None:
    """Write every job that FILTER finds to stdout, one a line; memory stays flat.

    The order is that of `jobs list`: what is not ended first, newest first; then what ended, last ended
    first. Jobs move while it runs: one that ends meanwhile may be in it twice, as it was and then as it
    ended (the last line of an id counts), and one that is retried meanwhile not at all. With --enqueueable
    the order is by arrival, oldest first, so that groups keep theirs, and each job is in it once; what
    comes after the export began is not.

    What --enqueueable writes goes again as a new job, once: its key is `again-ID`, because its own one is
    taken by the job that is there. A job that has not ended keeps those of its times (run_at, start_by,
    finish_by) that are still to come; one that has ended goes at once. Headers with credentials are not
    shown, and `enqueue` refuses their masks: write their values in, or send such jobs again as they are,
    with `penstock jobs retry` or `dead retry`.

    \b
    penstock jobs export "lane:orders state:dead" > dead.jsonl
    penstock jobs export "lane:orders state:dead" --enqueueable | penstock enqueue orders -
    penstock jobs export "finished<1d" --format csv > yesterday.csv
    """  # noqa: D301 - \b keeps click from filling the lines
    if form == "csv" and (payloads or enqueueable):
        raise click.UsageError("payloads are for jsonl: leave out --format csv")
    if keys and not enqueueable:
        raise click.UsageError("--keys is for --enqueueable: without it keys are written as they are")
    whole = payloads or enqueueable
    # What is enqueued first goes first; lists of people have the newest on top.
    order = Order.OLDEST if enqueueable else Order.NEWEST
    jobs = Pages(
        client,
        {"filter": line, "state": states, "payloads": whole, "order": order},
        limit=None,
        after=None,
    )
    if form == "csv":
        wrote = _table(jobs)
    else:
        wrote = (
            _enqueueable(jobs, client.store.now(), keys=keys) if enqueueable else _lines(jobs, whole=whole)
        )
    if not wrote:
        note(jobs.why_empty() or "no job")


def _table(jobs: Pages) -> bool:
    writer, wrote = csv.writer(sys.stdout, lineterminator="\n"), False
    for job in jobs:
        if not wrote:
            writer.writerow(COLUMNS)
        shown, wrote = job_object(job, payload=False), True
        writer.writerow(_cell(shown[name]) for name in COLUMNS)
    if not wrote:
        writer.writerow(COLUMNS)
    return wrote


def _lines(jobs: Pages, *, whole: bool) -> bool:
    wrote = False
    for job in jobs:
        wrote = True
        click.echo(encode(job_object(job, payload=whole)))
    return wrote


def _enqueueable(jobs: Pages, now: datetime, *, keys: bool) -> bool:
    wrote, masked = False, 0
    for job in jobs:
        if job.hidden:
            raise Refused(WITHHELD)
        shown, wrote = job_object(job, payload=True), True
        key = shown["key"] if keys else f"again-{job.id}"  # repeated, the pipe sends nothing twice
        again = {name: shown[name] for name in AGAIN} | {"key": key} | _to_come(job, shown, now)
        click.echo(encode({name: value for name, value in again.items() if value is not None}))
        masked += f'"{MASK}"' in (shown["headers"] or "")
    if masked:
        note(
            f"{counted(masked, 'job')} with credentials in the headers, which are not shown: enqueue refuses"
            f" {MASK} until you write the values in; `penstock jobs retry` sends such jobs again as they are",
            fg="yellow",
        )
    return wrote


def _to_come(job: Job, shown: Mapping[str, Any], now: datetime) -> dict[str, datetime]:
    """Return the times of a job that still count; to one that has ended they happened."""
    if job.state in TERMINAL:
        return {}
    return {name: shown[name] for name in TIMES if shown[name] is not None and shown[name] > now}


def _cell(value: object) -> str:
    text = "" if value is None else cell(value)
    return no_formula(text) if isinstance(value, str) else text


@click.command()
@click.argument("id_", metavar="ID")
@json_option
@with_client
def watch(client: Client, id_: str, *, as_json: bool) -> None:
    """Tell what happens to a job as it happens, until it has ended or Ctrl-C."""
    told: set[str] = set()
    pause = threading.Event()
    try:
        while True:
            job = client.get(id_)
            for event in timeline_object(job, client.timeline(id_))["events"]:
                text = encode(event) if as_json else _told(event)
                if text not in told:
                    told.add(text)
                    click.echo(text)
            if job.state in TERMINAL:
                return
            pause.wait(LOOK_S)
    except KeyboardInterrupt:
        note("no longer watching; the job stays")
        raise click.exceptions.Exit(INTERRUPTED) from None


def _told(event: dict[str, object]) -> str:
    facts = dict(event)
    at, what = facts.pop("at"), facts.pop("event")
    more = "  ".join(f"{name}={cell(value)}" for name, value in facts.items())
    return f"{stamp(at)}\t{what}\t{more}"  # type: ignore[arg-type]
