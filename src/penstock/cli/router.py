"""`penstock router`: a process that takes messages from queues and has them processed."""

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import click

from penstock.cli.errors import reported
from penstock.cli.options import config_option, store_option, store_url
from penstock.cli.serve import Duration
from penstock.config.settings import load
from penstock.stores.connect import reach

PORT = 7071


@click.command()
@store_option
@config_option
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME",
    help="Receive from the queues of this sink only; may be repeated. Default: all that can be.",
)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="The port of /api/router/messages, health and metrics; 0 picks a free one.",
)
@click.option(
    "--drain-timeout",
    "grace",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long a signal waits for calls that are under way.",
)
def router(
    *, url: str | None, config: Path | None, sources: Sequence[str], host: str, port: int, grace: timedelta
) -> None:
    """Take messages from queues and call their mediationTarget, until told to stop.

    Targets are checked as webhooks are; only router.processing_endpoint (default: the node of this
    configuration) may be on this machine or in a private network. Run as many as you like: pools limit them
    together. The first SIGTERM or Ctrl-C waits for calls and gives back the rest; the second does not wait.
    """
    with reported():
        settings = load(config, os.environ)
        url = store_url(url, config)
        reach(url)
        from penstock.app import configure_logs  # noqa: PLC0415 - servers are slow to import
        from penstock.routing import RouterApp, run  # noqa: PLC0415

        configure_logs(settings)
        app = RouterApp(settings, url, host, port, sources=sources, grace=grace)
        app.started = lambda address: click.echo(f"Penstock routes; messages may be posted to {address}")
        run(app)
