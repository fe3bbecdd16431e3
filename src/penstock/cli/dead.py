"""`penstock dead`: dead letters by cause, and sending them again once that is fixed."""

from collections.abc import Sequence
from typing import Any, Final

import click

from penstock.cli.errors import Missing
from penstock.cli.job_verbs import each
from penstock.cli.operations import begin, dry_option, force_option, rate_option, wait_option
from penstock.cli.options import confirmed, json_option, note, reason_option, with_client, yes_option
from penstock.cli.pages import Pages
from penstock.cli.render import ago, counted, on_terminal, print_json, print_table
from penstock.client import Client
from penstock.domain.causes import causes

MOST: Final = 10_000
ONLY: Final = "state:dead"
HEAD: Final = ("cause", "lane", "jobs", "reason", "last", "error", "one of them")


@click.group()
def dead() -> None:
    """Look at dead letters by their cause, send them again, or give them up.

    `retry` takes causes and goes through their jobs from here; `replay` and `discard` take a filter, and the
    node that leads goes through what it finds, however much that is.

    \b
    penstock dead list
    penstock dead show 5f0c1d2e3a4b
    penstock dead retry 5f0c1d2e3a4b --reason "the address is fixed"
    penstock dead replay "lane:orders error:timeout" --rate 50 --reason "the shop is back"
    penstock dead discard "lane:sms finished>1d" --reason "too late to matter"
    """  # noqa: D301 - \b keeps click from filling the lines


def _dead(client: Client, line: str, limit: int | None = MOST) -> Pages:
    return Pages(client, {"filter": line, "state": "dead"}, limit=limit, after=None)


@dead.command("list")
@click.argument("line", metavar="[FILTER]", default="")
@click.option("--lane", metavar="NAME", help="Only of this lane.")
@json_option
@with_client
def list_(client: Client, *, line: str, lane: str | None, as_json: bool) -> None:
    """List what jobs died of: how many, since when, and one of them. Of the last 10,000 dead letters.

    FILTER is a line like "lane:pay finished<1d error:timeout". Errors that differ only in numbers, ids,
    addresses and quoted text have one cause.
    """
    if lane is not None:
        line = f"{line} lane:{client.lane(lane).name}"
    pages = _dead(client, line)
    found = causes(iter(pages))
    if as_json:
        print_json({"causes": [cause.as_object() for cause in found], "more": pages.next is not None})
        return
    now = client.store.now()
    rows = [
        (
            cause.fingerprint,
            cause.lane,
            cause.jobs,
            cause.reason,
            ago(cause.last, now) if on_terminal() else cause.last,
            cause.error,
            cause.sample,
        )
        for cause in found
    ]
    print_table(HEAD, rows, empty=(None if rows else pages.why_empty()) or "no dead letters")
    if pages.next is not None:
        note(f"older ones than the last {MOST:,} are not counted: narrow it, for example finished<1d")


@dead.command()
@click.argument("cause")
@click.option("--limit", metavar="N", type=click.IntRange(1, MOST), default=50, show_default=True)
@json_option
@with_client
def show(client: Client, cause: str, *, limit: int, as_json: bool) -> None:
    """List the dead letters of one cause, the last one first, with their errors as they were."""
    pages = _dead(client, f"fingerprint:{cause}", limit)
    jobs = list(pages)
    if not jobs:
        raise Missing(f"no dead letter has the cause {cause}: see penstock dead list")
    if as_json:
        shown = [
            {"id": job.id, "lane": job.lane, "group": job.group, "at": job.finished_at, "error": job.error}
            for job in jobs
        ]
        print_json({"jobs": shown, "more": pages.next is not None})
        return
    print_table(
        ("id", "lane", "group", "at", "attempts", "error"),
        [(job.id, job.lane, job.group, job.finished_at, job.live.attempt, job.error) for job in jobs],
    )
    if pages.next is not None:
        note("there are more: raise --limit")


@dead.command()
@click.argument("cause", nargs=-1, required=True, metavar="CAUSE...")
@reason_option
@click.option(
    "--out-of-order", is_flag=True, help="Even where jobs behind them in their groups went already."
)
@click.option("--dry-run", is_flag=True, help="Say how many there are, and do nothing.")
@yes_option
@json_option
@with_client
def retry(
    client: Client,
    cause: Sequence[str],
    *,
    reason: str,
    out_of_order: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Send the dead letters of a cause again, the first one first. CAUSE is what `dead list` shows.

    Of a cause at most 10,000. For many of them `penstock dead replay` goes slowly, and can be stopped.
    """
    jobs = list(_dead(client, f"fingerprint:{','.join(cause)}"))
    if not jobs:
        raise Missing(f"no dead letter has the cause {', '.join(cause)}: see penstock dead list")
    if dry_run:
        groups = len({(job.lane, job.live.grp) for job in jobs if job.live.grp})
        if as_json:
            print_json({"jobs": len(jobs), "groups": groups})
        else:
            click.echo(
                f"{counted(len(jobs), 'job')} of {counted(groups, 'ordered group')} would be sent again"
            )
        return
    confirmed(f"Send {counted(len(jobs), 'dead letter')} again?", yes=yes)
    ids = [job.id for job in reversed(jobs)]
    each(ids, lambda id_: client.retry(id_, reason=reason, out_of_order=out_of_order), as_json=as_json)


@dead.command()
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
    """Send the dead letters that FILTER finds again, in the order of their groups.

    What it is about is counted first. The node that leads carries it out, no faster than --rate, across
    restarts; Ctrl-C stops watching, not the replay: see penstock operations.

    \b
    penstock dead replay "fingerprint:5f0c1d2e3a4b" --reason "fixed" --dry-run
    """  # noqa: D301 - \b keeps click from filling the lines
    begin(client, "retry", f"{line} {ONLY}", force=out_of_order, **how)


@dead.command()
@click.argument("line", metavar="FILTER")
@reason_option
@rate_option
@dry_option
@wait_option
@yes_option
@json_option
@with_client
def discard(client: Client, line: str, **how: Any) -> None:  # noqa: ANN401 - click's
    """Give up the dead letters that FILTER finds: they are skipped, and what waits behind them goes on.

    What it is about is counted first; begun, watched and stopped it is as penstock dead replay. A job that is
    skipped stays in the history and cannot be sent again.

    \b
    penstock dead discard "lane:sms finished>1d" --reason "too late to matter" --dry-run
    """  # noqa: D301 - \b keeps click from filling the lines
    begin(client, "skip", f"{line} {ONLY}", **how)
