"""`penstock dev`: a store on this machine, ready to be used, and what is in it."""

import os
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from penstock import __version__
from penstock.cli.errors import reported
from penstock.cli.options import config_option, store_option, store_url
from penstock.config.declared import declared
from penstock.config.keys import masked
from penstock.config.plan import apply
from penstock.config.settings import load
from penstock.domain.lanes import lane
from penstock.ports.store import Store
from penstock.stores.connect import connect

LOOK_EVERY_S = 1.0
NEXT = """\
Jobs are kept, but nothing sends them yet: the dispatcher is still being built. Next:

  penstock enqueue {lane} '{{"n": 1}}'{again}
  penstock jobs list{again}
  penstock lanes show {lane}{again}
"""


@click.command()
@store_option
@config_option
@click.option("--once", is_flag=True, help="Set up, say what there is, and end.")
def dev(*, url: str | None, config: Path | None, once: bool) -> None:
    """Set up a store on this machine and show what is in it, until Ctrl-C.

    Creates the file and its tables, brings older tables up to date, applies the lanes and pools of the
    configuration file, and makes the lane `hello` when there is no lane at all. Run it again at any time:
    what is there stays.
    """
    with reported(), _stopped_by_signal() as stop:
        settings = load(config, os.environ)
        again = _again(url, config)
        url = store_url(url, config)
        store = connect(url)
        try:
            migrated = store.migrate()
            if settings.file is not None:
                apply(store, declared(settings.file, pools=store.pools()), actor="penstock dev")
            if not store.lanes():
                store.put_lane(lane("hello"), actor="penstock dev")
            lanes = list(store.lanes())
            click.echo(f"Penstock {__version__}")
            click.echo(f"  store  {masked('store', url)} ({'created' if migrated else 'up to date'})")
            click.echo(f"  lanes  {', '.join(lanes)}\n")
            click.echo(NEXT.format(lane="hello" if "hello" in lanes else lanes[0], again=again))
            _show(store, stop, once=once)
        finally:
            store.close()


def _again(url: str | None, config: Path | None) -> str:
    """Return the options that the next commands need to find the same store; variables stay set."""
    given = [("--store", url, "PENSTOCK_STORE"), ("--config", config, "PENSTOCK_CONFIG")]
    return "".join(
        f" {option} {shlex.quote(str(value))}"
        for option, value, variable in given
        if value is not None and str(value) != os.environ.get(variable)
    )


def _show(store: Store, stop: threading.Event, *, once: bool) -> None:
    """Print the counts whenever they change."""
    shown = None
    while not stop.is_set():
        counts = store.counts()
        if counts != shown:
            shown = counts
            click.echo(_line({f"{name} {state.label}": n for (name, state), n in sorted(counts.items())}))
        if once:
            return
        stop.wait(LOOK_EVERY_S)
    click.echo("stopped")


def _line(counts: dict[str, int]) -> str:
    return "jobs   " + (", ".join(f"{name}: {n}" for name, n in counts.items()) or "none yet")


@contextmanager
def _stopped_by_signal() -> Iterator[threading.Event]:
    stop = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
