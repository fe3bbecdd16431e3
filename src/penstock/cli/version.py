"""`penstock version`: what is installed here."""

import platform
import sqlite3

import click

from penstock import __version__
from penstock.cli.options import json_option
from penstock.cli.render import print_json


@click.command()
@json_option
def version(*, as_json: bool) -> None:
    """Print the version of Penstock that is installed here, like --version; with --json what it runs on, too.

    Which versions nodes run is in penstock nodes list.
    """
    if as_json:
        ground = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
        print_json({"version": __version__, **ground})
    else:
        click.echo(f"penstock, version {__version__}")
