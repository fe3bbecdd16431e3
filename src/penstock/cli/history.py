"""`penstock history`: what ended, and how."""

from collections.abc import Sequence

import click

from penstock.cli.options import json_option, paged, with_client
from penstock.cli.pages import Pages, print_pages
from penstock.cli.times import HELP, METAVAR, time_option
from penstock.client import Client
from penstock.domain.filters import Span
from penstock.domain.states import TERMINAL

ENDED = [state.label for state in sorted(TERMINAL)]


@click.command(epilog=HELP)
@click.argument("line", metavar="[FILTER]", default="")
@click.option("--state", "states", type=click.Choice(ENDED), multiple=True, help="Several are possible.")
@click.option("--from", "since", metavar=METAVAR, help="Ended then or later.")
@click.option("--to", "until", metavar=METAVAR, help="Ended before.")
@paged
@click.option("--payloads", is_flag=True, help="With --json: the payloads too.")
@json_option
@with_client
def history(
    client: Client,
    *,
    line: str,
    lane: str | None,
    states: Sequence[str],
    since: str | None,
    until: str | None,
    limit: int,
    after: str | None,
    everything: bool,
    payloads: bool,
    as_json: bool,
) -> None:
    """List jobs that ended, the last one first.

    FILTER is a line like "lane:pay finished<1d payload.amount>100"; the options below must hold as well.

    \b
    penstock history --lane orders --state succeeded --from 2026-11-15T00:00:00Z
    penstock history "finished<1h error:timeout" --json
    """  # noqa: D301 - \b keeps click from filling the lines
    now = client.store.now()
    span = Span(time_option("--from", since, now), time_option("--to", until, now))
    if lane is not None:
        client.lane(lane)
    pages = Pages(
        client,
        {
            "filter": line,
            "lane": lane,
            "state": states or ENDED,
            "finished": span,
            "payloads": payloads,
        },
        limit=None if everything else limit,
        after=after,
    )
    print_pages(pages, now, payloads=payloads, as_json=as_json, empty="nothing has ended yet")
