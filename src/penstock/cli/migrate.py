"""`penstock migrate`: create or upgrade the database schema."""

import json
from contextlib import closing

import click

from penstock.cli.errors import reported
from penstock.errors import InvalidSetting
from penstock.stores.connect import DEFAULT_URL, connect, package_of
from penstock.stores.sql.migrate import render


def _store_url(_: click.Context, option: click.Parameter, value: str) -> str:
    try:
        package_of(value)
    except InvalidSetting as error:
        raise click.BadParameter(error.problem, param=option) from error
    return value


@click.command()
@click.option(
    "--store",
    "url",
    metavar="URL",
    envvar="PENSTOCK_STORE",
    default=DEFAULT_URL,
    show_default=True,
    show_envvar=True,
    callback=_store_url,
    help="The database: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
)
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
@click.option("--json", "as_json", is_flag=True, help="Print what was applied as JSON.")
def migrate(*, url: str, printed: bool, after: int, as_json: bool) -> None:
    """Create the tables, or bring them up to date. Safe to run twice, and by several at once."""
    if printed:
        click.echo(render(package_of(url), after=after), nl=False)
        return
    if after:
        raise click.UsageError(
            "--after goes with --print: without it Penstock looks at what the database has."
        )
    with reported(), closing(connect(url)) as store:
        applied = store.migrate()
    if as_json:
        click.echo(json.dumps({"applied": applied}))
    elif applied:
        click.echo("\n".join(f"applied {name}" for name in applied))
    else:
        click.echo("nothing to do: the database is up to date")
