"""`penstock migrate`: create or upgrade the database schema."""

import json
from contextlib import closing

import click

from penstock.cli.errors import reported
from penstock.cli.options import chosen_way, config_option, json_option, profile_option, store_option
from penstock.ports.store import Store
from penstock.stores.connect import connect, file_of, package_of, reach
from penstock.stores.sql.migrate import render


def _opened(url: str) -> Store:
    """Open a store that may have no tables yet; of SQLite not even the file."""
    if file_of(url) is None:
        reach(url)
    return connect(url)


@click.command()
@store_option
@profile_option
@config_option
@click.option(
    "--print", "printed", is_flag=True, help="Print the SQL for a DBA to apply; connect to nothing."
)
@click.option(
    "--after",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=0,
    help="With --print: only what comes after this migration, which the database already has.",
)
@json_option
def migrate(*, printed: bool, after: int, as_json: bool, **_ways: object) -> None:
    """Create the tables, or bring them up to date. Safe to run twice, and by several at once."""
    if printed:
        if as_json:
            raise click.UsageError("--print prints SQL: leave out --json")
        with reported():
            click.echo(render(package_of(chosen_way(here=True).url), after=after), nl=False)
        return
    if after:
        raise click.UsageError(
            "--after goes with --print: without it Penstock looks at what the database has."
        )
    with reported(), closing(_opened(chosen_way(here=True).url)) as store:
        applied = store.migrate()
    if as_json:
        click.echo(json.dumps({"applied": applied}))
    elif applied:
        click.echo("\n".join(f"applied {name}" for name in applied))
    else:
        click.echo("nothing to do: the database is up to date")
