"""`penstock jobs`: list them, look at one."""

from collections.abc import Sequence

import click

from penstock.cli.exports import export, watch
from penstock.cli.job_verbs import VERBS
from penstock.cli.options import json_option, paged, with_client
from penstock.cli.pages import Pages, print_pages
from penstock.cli.render import cell, print_facts, print_json, print_table
from penstock.client import Client
from penstock.config.file import hinted
from penstock.domain.filters import Order
from penstock.domain.states import JobState
from penstock.wire import encode, explanation_object, job_object, stamp, timeline_object

__all__ = ["Pages", "jobs", "print_pages"]
STATES = [state.label for state in JobState]


class States(click.ParamType[tuple[str, ...]]):
    """One state or several with commas between them, as the API takes them."""

    name = "states"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return their names."""
        found = tuple(part.strip() for part in str(value).split(",")) if isinstance(value, str) else ()
        for state in found:
            if state not in STATES:
                self.fail(hinted(f"{state!r} is no state", state, STATES), param, ctx)
        return found


@click.group()
def jobs() -> None:
    """List jobs, look at one, and act on it.

    \b
    penstock jobs list "lane:orders state:dead error:timeout"
    penstock jobs show ID
    penstock jobs explain ID
    penstock jobs timeline ID
    penstock jobs retry ID --reason "the address is fixed"
    """  # noqa: D301 - \b keeps click from filling the lines


for verb in (*VERBS, export, watch):
    jobs.add_command(verb)


@jobs.command("list")
@click.argument("line", metavar="[FILTER]", default="")
@click.option("--state", "states", metavar="A,B", type=States(), multiple=True, help="Several are possible.")
@click.option(
    "--group", metavar="NAME", help="Only ordered jobs of this group; immediate ones have no place in it."
)
@click.option("--tenant", metavar="NAME", help="Only of this tenant.")
@click.option("--key", metavar="TEXT", help="Only with this idempotency key.")
@click.option("--due", is_flag=True, help="Pending and waiting jobs, the next one first.")
@paged
@click.option("--payloads", is_flag=True, help="With --json: the payloads too.")
@json_option
@with_client
def list_(
    client: Client,
    line: str,
    *,
    lane: str | None,
    states: Sequence[Sequence[str]],
    group: str | None,
    tenant: str | None,
    key: str | None,
    due: bool,
    limit: int,
    after: str | None,
    everything: bool,
    payloads: bool,
    as_json: bool,
) -> None:
    """List jobs: what is not ended first, newest first; then what ended, last ended first.

    FILTER is a line like "lane:pay state:pending run<1h payload.amount>100 error:timeout"; the options below
    must hold as well.

    Columns: id, state, lane, group, when it is due or ended, attempts so far, why it is where it is.

    With --json the answer is {"jobs": [...], "next": CURSOR}, as of GET /api/jobs; next is null at the end.
    """
    if lane is not None:
        client.lane(lane)
    pages = Pages(
        client,
        {
            "filter": line,
            "lane": lane,
            "state": tuple(state for some in states for state in some),
            "group": group,
            "tenant": tenant,
            "key": key,
            "order": Order.DUE if due else Order.NEWEST,
            "payloads": payloads,
        },
        limit=None if everything else limit,
        after=after,
    )
    empty = "no job\nTry: penstock enqueue LANE JSON"
    print_pages(pages, client.store.now(), payloads=payloads, as_json=as_json, empty=empty)


@jobs.command()
@click.argument("id_", metavar="ID")
@json_option
@with_client
def show(client: Client, id_: str, *, as_json: bool) -> None:
    """Show everything about one job, live or finished."""
    job = client.get(id_)
    shown = job_object(job)
    if as_json:
        print_json(shown)
        return
    facts = [(name, value) for name, value in shown.items() if value is not None and value is not False]
    print_facts((name, encode(value) if isinstance(value, dict) else value) for name, value in facts)


@jobs.command()
@click.argument("id_", metavar="ID")
@json_option
@with_client
def explain(client: Client, id_: str, *, as_json: bool) -> None:
    """Say what holds a job: the gate, who set it, since when, until when, and when it will probably go.

    Gates: due, group, lane, store, pool, key, breaker, sink, lease, parent, held, final.
    """
    found = explanation_object(client.explain(id_))
    if as_json:
        print_json(found)
        return
    print_facts((name, value) for name, value in found.items() if value is not None)


@jobs.command()
@click.argument("id_", metavar="ID")
@json_option
@with_client
def timeline(client: Client, id_: str, *, as_json: bool) -> None:
    """Show what happened to a job, oldest first: tries, moves, and what operators did."""
    found = timeline_object(client.get(id_), client.timeline(id_))
    if as_json:
        print_json(found)
        return
    rows = []
    for event in found["events"]:
        at, what = event.pop("at"), event.pop("event")
        rows.append((stamp(at), what, "  ".join(f"{name}={cell(value)}" for name, value in event.items())))
    print_table(["at", "what", "facts"], rows)
