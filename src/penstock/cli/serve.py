"""`penstock serve`: a node that dispatches, with its API and dashboard."""

import os
from datetime import timedelta
from pathlib import Path

import click

from penstock.cli.errors import Misconfigured, reported
from penstock.cli.options import config_option, store_option, store_url
from penstock.config.settings import Settings, Value, load
from penstock.domain.durations import BadDuration, parse_duration
from penstock.errors import InvalidSetting
from penstock.stores.connect import reach


class Duration(click.ParamType[timedelta]):
    """A duration as people write it."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the timedelta."""
        try:
            return parse_duration(value)
        except BadDuration as error:
            self.fail(str(error), param, ctx)


@click.command()
@store_option
@config_option
@click.option("--host", metavar="ADDRESS", help="Where the API and the page listen. Default: 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Their port; 0 picks a free one. Default: 7070.")
@click.option("--lanes", metavar="A,B", help="Dispatch only these lanes. Default: all.")
@click.option("--standby", is_flag=True, help="Dispatch only while this node leads.")
@click.option(
    "--drain-timeout",
    "grace",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long a signal waits for what is being sent.",
)
def serve(*, url: str | None, config: Path | None, grace: timedelta, **given: object) -> None:
    """Dispatch jobs until told to stop.

    Run as many nodes on one PostgreSQL database as you like: they share the work, the order and the limits.
    The first SIGTERM or Ctrl-C finishes what is being sent and gives back the rest; the second does not wait.
    SIGHUP reads the configuration again: what is logged changes at once, other keys need a restart.
    """
    with reported():
        settings = overridden(load(config, os.environ), given)
        url = store_url(url, config)
        reach(url)
        from penstock.app import App, configure_logs, run  # noqa: PLC0415 - servers are slow to import

        configure_logs(settings)
        host, port = str(settings["host"]), settings["port"]
        app = App(settings, url, host, int(str(port)), grace=grace)
        app.read_again = lambda: overridden(load(config, os.environ), given)
        app.started = lambda address: click.echo(f"Penstock serves {address}")
        try:
            run(app)
        except InvalidSetting as error:  # found out only when it starts: a mistake of usage all the same
            raise Misconfigured(str(error)) from error


def overridden(settings: Settings, given: dict[str, object]) -> Settings:
    """Return the settings with what the command line says in their place."""
    for name in ("host", "port"):
        if given.get(name) is not None:
            settings.values[name] = Value(given[name], f"--{name}")  # type: ignore[arg-type]
    if given.get("lanes"):
        lanes = tuple(part.strip() for part in str(given["lanes"]).split(",") if part.strip())
        settings.values["lanes_served"] = Value(lanes, "--lanes")
    if given.get("standby"):
        settings.values["standby.enabled"] = Value(value=True, source="--standby")
    return settings
