"""`penstock dev`: a store on this machine, ready to be used, and what is in it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from penstock import __version__
from penstock.cli.errors import reported
from penstock.domain.lanes import lane
from penstock.ports.store import Store
from penstock.stores.connect import DEFAULT_URL, connect

LOOK_EVERY_S = 1.0
NEXT = """\
Jobs are kept, but nothing sends them yet: the dispatcher is still being built. Until then:

  penstock migrate --print                     the tables, as SQL
  penstock sim --family steady --seed 1        the store under crashes, pauses and lost replies
  sqlite3 penstock.db 'SELECT * FROM penstock_lanes'
"""


@click.command()
@click.option(
    "--store", "url", default=DEFAULT_URL, show_default=True, envvar="PENSTOCK_STORE", help="Where jobs wait."
)
@click.option("--once", is_flag=True, help="Set up, say what there is, and end.")
def dev(url: str, *, once: bool) -> None:
    """Set up a store on this machine and show what is in it, until Ctrl-C.

    Creates the file and its tables, brings older tables up to date, and makes the lane `hello` when there is
    no lane at all. Run it again at any time: nothing that is there is changed.
    """
    with reported(), _stopped_by_signal() as stop:
        store = connect(url)
        try:
            applied = store.migrate()
            if not store.lanes():
                store.put_lane(lane("hello"), actor="penstock dev")
            click.echo(f"Penstock {__version__}")
            click.echo(f"  store  {url} ({'created' if applied else 'up to date'})")
            click.echo(f"  lanes  {', '.join(store.lanes())}\n")
            click.echo(NEXT)
            _show(store, stop, once=once)
        finally:
            store.close()


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
