"""`penstock dev`: everything in one process, on a store of this machine."""

import fcntl
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from penstock import __version__
from penstock.brokers.files import FILE
from penstock.cli.errors import Refused, reported
from penstock.cli.options import config_option, store_option, store_url
from penstock.cli.serve import overridden
from penstock.config.declared import declared
from penstock.config.keys import masked
from penstock.config.plan import apply
from penstock.config.profiles import VARIABLE as PROFILE
from penstock.config.settings import URL, Settings, Value, load, variable_of
from penstock.domain.lanes import lane
from penstock.stores.connect import connect, file_of

HERE = ("127.0.0.1", "localhost", "::1")
LOOPBACK = ("127.0.0.0/8", "::1/128")
NEXT = """\
Next, in another terminal:

{aside}  {penstock} enqueue {lane} '{{"n": 1}}'{again}
  {penstock} jobs list{again}
  {penstock} top{again}
"""


@click.command()
@store_option
@config_option
@click.option("--host", metavar="ADDRESS", help="Where the page listens. Default: 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Its port; 0 picks a free one. Default: 7070.")
@click.option("--demo", is_flag=True, help="Run believable traffic: orders, payments, a flaky sms provider.")
@click.option("--once", is_flag=True, help="Set up, say what there is, and end.")
def dev(*, url: str | None, config: Path | None, demo: bool, once: bool, **given: object) -> None:
    """Run everything in one process: a store on this machine, the dispatcher and its page, until Ctrl-C.

    Creates the file and its tables, brings older tables up to date, applies the lanes and pools of the
    configuration file, and makes the lane `hello` when there is no lane at all. Run it again at any time:
    what is there stays. Targets on this machine (127.0.0.1) may be called.
    """
    with reported():
        settings = overridden(load(config, os.environ), given)
        again = _again(url, config)
        url = store_url(url, config)
        with _alone(url, once=once):
            lanes = _set_up(url, settings, demo=demo)
            first = "hello" if "hello" in lanes else lanes[0]
            hint = NEXT.format(aside=_aside(again), penstock=_penstock(), lane=first, again=again)
            if once:
                click.echo(hint)
            else:
                _serve(url, settings, demo=demo, hint=hint)


@contextmanager
def _alone(url: str, *, once: bool) -> Iterator[None]:
    """Refuse a second `dev` on one file: each would take the other's jobs, and the other's demonstration."""
    file = file_of(url)
    if once or file is None or not Path(file).absolute().parent.is_dir():
        yield
        return
    with Path(f"{file}-dev").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(
                f"another penstock dev works on {file}: stop it, or give this one a store of its own,"
                " --store sqlite:///other.db --port 0"
            ) from None
        yield


def _penstock() -> str:
    """Return how to call Penstock: as it was called now, unless it is found by its name."""
    called = sys.argv[0]
    return called if Path(called).name == "penstock" and shutil.which("penstock") is None else "penstock"


def _set_up(url: str, settings: Settings, *, demo: bool = False) -> list[str]:
    """Make the store and its lanes, say what there is, and return the lanes."""
    store = connect(url)
    try:
        migrated = store.migrate()
        if settings.file is not None:
            wanted = declared(settings.file, pools=store.pools())
            apply(store, wanted, actor="penstock dev", file=settings.file.path)
        if not store.lanes():
            store.put_lane(lane("hello"), actor="penstock dev")
        lanes = list(store.lanes())
        click.echo(f"Penstock {__version__}")
        click.echo(f"  store  {masked('store', url)} ({'created' if migrated else 'up to date'})")
        if str(settings["host"]) in HERE:
            click.echo("  keys   none needed: only this machine can reach it")
        click.echo(
            f"  lanes  {', '.join([*lanes, *(name for name in _demo_lanes(demo) if name not in lanes)])}"
        )
        counts = {f"{name} {state.label}": n for (name, state), n in sorted(store.counts().items()) if n}
        click.echo(
            "  jobs   " + (", ".join(f"{name}: {n}" for name, n in counts.items()) or "none yet") + "\n"
        )
        return lanes
    finally:
        store.close()


def _demo_lanes(demo: bool) -> list[str]:  # noqa: FBT001 - whether there is one
    """Return the lanes that the demo makes once the node runs."""
    if not demo:
        return []
    from penstock.cli.demo import demo_lanes  # noqa: PLC0415 - only who asks for it pays for it

    return [each.name for each in demo_lanes("http://127.0.0.1", "http://127.0.0.1")]


def _serve(url: str, settings: Settings, *, demo: bool, hint: str) -> None:
    """Run the node, and say what to do next once its port is open.

    On a developer's machine targets on that machine are no danger.
    """
    from penstock.app import App, configure_logs, run  # noqa: PLC0415 - servers are slow to import

    if not settings["http.allow_networks"]:
        settings.values["http.allow_networks"] = Value(LOOPBACK, "penstock dev")
    configure_logs(settings)
    app = App(settings, url, str(settings["host"]), int(str(settings["port"])), routes=True)
    app.started = lambda address: click.echo(f"  page   {address}   (Ctrl-C stops)\n\n{hint}")
    if demo:
        from penstock.cli.demo import demonstrate  # noqa: PLC0415

        app.companion = demonstrate
    run(app)
    click.echo("stopped")


def _again(url: str | None, config: Path | None) -> str:
    """Return the options that the next commands need to find the same store; variables stay set."""
    given = [("--store", url, "PENSTOCK_STORE"), ("--config", config, "PENSTOCK_CONFIG")]
    return "".join(
        f" {option} {shlex.quote(str(value))}"
        for option, value, variable in given
        if value is not None and str(value) != os.environ.get(variable)
    )


def _aside(again: str) -> str:
    """Return the lines that set aside what would lead the next commands to another place than this store."""
    if "--store" in again:
        return ""
    named = any(os.environ.get(variable_of(key)) for key in ("store", f"store{FILE}"))
    elsewhere = (URL,) if named else (URL, PROFILE)
    return "".join(f"  unset {variable}\n" for variable in elsewhere if os.environ.get(variable))
