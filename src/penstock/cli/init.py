"""`penstock init`: files to begin with, with every line explained."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from penstock.cli.errors import Refused
from penstock.cli.options import note
from penstock.config.schema import schema_text

TEMPLATES: Final = files("penstock.cli") / "templates"
CONFIG: Final = ("penstock.toml",)
SYSTEMD: Final = ("penstock.service",)
PROMETHEUS: Final = ("prometheus.yml", "prometheus-rules.yml", "grafana.json")
SCHEMA: Final = ("penstock.schema.json",)


@click.command()
@click.option("--systemd", is_flag=True, help="A unit for one node instead: penstock.service.")
@click.option(
    "--prometheus", is_flag=True, help="Scrape configuration, rules, alerts and a Grafana dashboard instead."
)
@click.option(
    "--schema", is_flag=True, help="The JSON Schema of penstock.toml instead, for editors that complete TOML."
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.argument(
    "folder", type=click.Path(file_okay=False, path_type=Path), default=Path(), metavar="[FOLDER]"
)
def init(*, systemd: bool, prometheus: bool, schema: bool, force: bool, folder: Path) -> None:
    """Write a penstock.toml with every line explained, into this folder or another one.

    What is there already is left alone.
    """
    asked = ((systemd, SYSTEMD), (prometheus, PROMETHEUS), (schema, SCHEMA))
    names = tuple(name for wanted, files in asked if wanted for name in files) or CONFIG
    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        raise Refused(f"{', '.join(there)}: already there; look at it, or write over it with --force")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_text(_content(name), encoding="utf-8")
    except OSError as error:
        raise Refused(f"cannot write there: {error}; choose a folder of yours") from error
    for name in names:
        click.echo(folder / name)
    note(_next(names, folder))


def _content(name: str) -> str:
    if name in SCHEMA:
        return schema_text()
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _next(names: tuple[str, ...], folder: Path) -> str:
    """Return what to do with them."""
    told = {
        "penstock.toml": f"Next: penstock check --config {folder / 'penstock.toml'}, then penstock dev",
        "penstock.service": "Next: put it into /etc/systemd/system, then systemctl enable --now penstock",
        "penstock.schema.json": "Next: begin penstock.toml with the line #:schema ./penstock.schema.json",
        "prometheus.yml": "Next: name your nodes in prometheus.yml; import grafana.json into Grafana",
    }
    return "\n".join(told[name] for name in names if name in told)
